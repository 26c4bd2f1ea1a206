/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The tcp transport inside: the kernel's TCP over a kernel interface, by sockets in the
 * interface's own network namespace. No privilege is needed where the port is in the process's own
 * namespace.
 *
 * A port (port.c) is one address, a listening socket on it, and the connections that have arrived
 * but belong to no lane yet. A lane (tcp.c) calls its partners and takes over those that called it;
 * a worker moves the bytes (stream.c). Each stream is a connection; two streams that answer each
 * other share one, each end with a descriptor of its own for each.
 *
 * Offered bytes are those that a socket took. TCP_NOTSENT_LOWAT bounds what a socket holds unsent
 * (30 ms of line): a paced flow holds next to nothing, an unpaced one as much when the window
 * closes as when it opened, so that buffered bytes do not make the window's offered load larger.
 */
#ifndef ENGINE_TCP_LANE_H
#define ENGINE_TCP_LANE_H

#include "handshake.h"
#include "ip_port.h"
#include "message_lane.h"

#include <sys/queue.h>
#include <sys/uio.h>

#define TCP_READ_BYTES (256u * 1024) /**< one read, and a forwarder's buffer */
#define TCP_BATCH_IOVS 1024

/** @brief What a trial may say below `tcp`. */
struct tcp_options {
    uint16_t streams;     /**< connections per flow */
    uint32_t send_buffer; /**< SO_SNDBUF and SO_RCVBUF in bytes; 0: the kernel's autotuning */
    uint32_t receive_buffer;
    char congestion[16]; /**< TCP_CONGESTION; "": the system's */
    bool nodelay;
    bool zero_copy; /**< MSG_ZEROCOPY */
};

/**
 * @brief Return the phase's options of `tcp`.
 *
 * @param phase Phase.
 * @return Options; the phase's.
 */
static inline const struct tcp_options *tcp_options(const struct phase *phase)
{
    return phase->options;
}

/* --- port.c: all of it is the main thread's --- */

/** @brief A connection on its way in. It is half open until its claim is verified; then it waits
 * for the lane that it claims, because a partner may be a phase ahead. */
struct tcp_arrival {
    TAILQ_ENTRY(tcp_arrival) link;
    int fd;
    bool proven;
    int64_t came_ns;
    struct sockaddr_storage from;
    struct tcp_handshake shake;
    unsigned shaken; /**< bytes of it that have passed */
};

TAILQ_HEAD(tcp_arrivals, tcp_arrival); /**< the oldest first */

struct transport_port {
    struct ip_port ip;          /**< first; its socket is the listener */
    uint8_t key[TCP_KEY_BYTES]; /**< of the lane prepared last; no arrival is read before */
    int epoll; /**< over the listener (data: NULL), the arrivals, and connections out that are not
                    ready yet (data: the port) */
    bool listening;                  /**< the listener wakes whoever waits for `epoll` */
    struct tcp_arrivals arrivals[2]; /**< half open; proven */
    unsigned half_open;
    unsigned half_open_most; /**< more wait in the kernel's backlog */
    uint64_t rejected;       /**< connections that did not prove that they hold the key */
    struct sockaddr_storage rejected_from; /**< the last one's */
    const char *rejected_why;
    int64_t turn_ns; /**< when the present turn began, and how many were rejected before it */
    uint64_t turn_rejected;
};

int tcp_port_open(struct transport_port **port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err);
void tcp_port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void tcp_port_close(struct transport_port *port);
/** @brief Accepts, reads claims, rejects who does not hold the key. Never blocks. */
void tcp_port_accept(struct transport_port *port, int64_t now_ns);
/** @brief The next proven connection of a phase, or NULL. The caller owns it (fd and memory). */
struct tcp_arrival *tcp_port_take(struct transport_port *port, const struct phase *phase);

/** @brief Reads a handshake up to `end`, as far as it has come. 1: whole, 0: not yet, or a negative
 * errno; -ECONNABORTED: the partner has closed the connection. */
int tcp_handshake_read(int fd, struct tcp_handshake *shake, unsigned *shaken, unsigned end);
/** @brief Sends a handshake up to `end`. False: the connection is broken. */
bool tcp_handshake_send(int fd, const struct tcp_handshake *shake, unsigned *shaken, unsigned end);

/** @brief Both ends of a flow's connection, in words. */
struct tcp_ends {
    char here[IP_ADDRESS_TEXT], there[IP_ADDRESS_TEXT];
};
struct tcp_ends tcp_port_ends(const struct transport_port *port, const struct lane_flow *flow);

/* --- a lane --- */

struct tcp_out {
    struct message_out base;
    int fd; /**< -1: there is none yet, or none any more */
    bool ready;
    bool writable;    /**< until the kernel says that it is full */
    bool is_passive;  /**< the partner calls */
    unsigned recalls; /**< how often the partner is called again; next at recall_ns */
    int64_t recall_ns;
    uint32_t mark_sent; /**< bytes of the end mark that are sent */
    struct tcp_handshake shake;
    unsigned shaken; /**< bytes of it that have passed */
};

struct tcp_in {
    struct message_in base;
    int fd;            /**< -1: not there yet */
    bool readable;     /**< a schedule's, as far as is known */
    uint8_t *ring;     /**< TCP_READ_BYTES that a forwarder holds; NULL: it does not forward */
    uint64_t received; /**< bytes, by a forwarder */
};

/** @brief What one system call is to send. */
struct tcp_batch {
    struct iovec iov[TCP_BATCH_IOVS];
    struct message_header headers[TCP_BATCH_IOVS];
    unsigned count; /**< of iov */
    size_t bytes;
};

struct tcp_lane {
    struct message_lane base;
    struct transport_port *port;
    struct tcp_out *outs; /**< the base's */
    struct tcp_in *ins;
    int epoll; /**< of streams: events carry an index: outs, then ins */
    int wakes; /**< the same of streams that are answered beside a load, which wake a sleeping
                    worker; -1: none are */
    int64_t connect_since_ns;
    int64_t look_ns;  /**< what comes may gather for so long before it is read */
    size_t most_read; /**< in the present poll from one connection ... */
    bool more;        /**< ... and there is probably more */
    uint32_t segment; /**< of a forwarder's connection out */
    unsigned polls;
    uint8_t *buffer; /**< TCP_READ_BYTES */
    struct tcp_batch batch;
};

/** @brief The end that receives by the connection of one that sends; NULL: the connection goes one
 * way. A stream's answers go by its own connection. Messages of steps answer each other: by one
 * connection they carry the acknowledgements of those that came, which would be packets of their
 * own; there the lower rank calls. */
static inline struct tcp_in *tcp_back(const struct tcp_out *out)
{
    return out->base.lane->forwards ? NULL : (struct tcp_in *)(void *)out->base.pair;
}

/** @brief The end that sends by the connection of one that receives; NULL: none does. */
static inline struct tcp_out *tcp_way(const struct tcp_in *in)
{
    return in->base.lane->forwards ? NULL : (struct tcp_out *)(void *)in->base.pair;
}

/* --- stream.c --- */

struct tcp_info;
extern const struct message_hooks tcp_hooks;
int64_t tcp_lane_poll(struct lane *lane, int64_t now_ns);
bool tcp_lane_wait(struct lane *lane, int64_t until_ns);
/** @brief Reads what the kernel knows of a connection; false: nothing. */
bool tcp_info_read(int fd, struct tcp_info *info);
/** @brief Bytes at layer 1 of a full segment beside its payload. */
double tcp_segment_overhead(int fd, const struct tcp_info *info);

#endif
