/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The tcp transport inside: the kernel's TCP over a kernel interface, by sockets in the
 * interface's own network namespace. No privilege is needed where the port is in the process's own
 * namespace.
 *
 * A port (port.c) is one address, a listening socket on it, and the connections that have arrived
 * but belong to no lane yet. A lane (tcp.c) calls its partners and takes over those that called it
 * (connect.c); a worker moves the bytes (stream.c). Each stream is a connection; two streams that
 * answer each other share one, each end with a descriptor of its own for each.
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
#define TCP_REJECTED_TEXT 128 /**< "10.0.0.2 port 4001: it does not ..." */

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
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    unsigned claim_bytes; /**< read so far */
    struct tcp_place place;
};

TAILQ_HEAD(tcp_arrivals, tcp_arrival); /**< the oldest first */

struct transport_port {
    struct ip_port ip;          /**< first; its socket is the listener */
    uint8_t key[TCP_KEY_BYTES]; /**< since the first lane was prepared; no arrival is read before */
    bool keyed;
    int epoll; /**< over the listener (data: NULL), the arrivals, and connections out that are not
                    ready yet (data: the port) */
    bool listening;                  /**< the listener wakes whoever waits for `epoll` */
    struct tcp_arrivals arrivals[2]; /**< half open; proven */
    unsigned counts[2];
    unsigned half_open_most; /**< more wait in the kernel's backlog */
    /** @brief Connections that were dropped because they did not prove that they hold the key. */
    struct {
        uint64_t count;
        struct sockaddr_storage from; /**< of the last one */
        const char *why;
        int64_t warned_ns; /**< when the log last spoke of one; 0: never */
        int64_t turn_ns;   /**< when the present turn began ... */
        unsigned in_turn;  /**< ... and how many were dropped in it */
    } rejected;
};

int tcp_port_open(struct transport_port **port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err);
void tcp_port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void tcp_port_close(struct transport_port *port);
/** @brief Accepts, reads claims, rejects who does not hold the key. Never blocks. */
void tcp_acceptor_work(struct transport_port *port, int64_t now_ns);
/** @brief The next proven connection of a phase, or NULL. The caller owns it (fd and memory). */
struct tcp_arrival *tcp_acceptor_take(struct transport_port *port, const struct phase *phase);
/** @brief How many connections were dropped without the run's key; if any, who the last one was
 * and why. */
uint64_t tcp_port_rejected(struct transport_port *port, char last[TCP_REJECTED_TEXT]);

/* --- a lane --- */

/** @brief TCP_OUT_LOST: a check's, whose partner can't be reached; it has ended before it began. */
enum tcp_out_state { TCP_OUT_CHALLENGE, TCP_OUT_PROOF, TCP_OUT_READY, TCP_OUT_LOST };

struct tcp_out {
    struct message_out base;
    int fd; /**< -1: to be called */
    enum tcp_out_state state;
    bool writable;      /**< until the kernel says that it is full */
    bool is_passive;    /**< the partner calls */
    uint32_t mark_sent; /**< bytes of the end mark that are sent */
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    struct tcp_proof proof;
    unsigned answer_bytes; /**< read of the challenge or the proof, whichever is due */
    int64_t closed_ns;     /**< when the partner first closed it in the handshake; 0: it did not */
    int64_t recall_ns;     /**< not called before */
};

struct tcp_in {
    struct message_in base;
    int fd;            /**< -1: not there yet */
    bool lost;         /**< a check's that never came: the lane does not wait for it */
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
    unsigned outs_ready, ins_ready;
    int epoll; /**< of streams: events carry an index: outs, then ins */
    int wakes; /**< the same of streams that are answered beside a load, which wake a sleeping
                    worker; -1: none are */
    unsigned loads_left; /**< streams of a load that are still to come whole */
    int64_t connect_since_ns;
    uint64_t rejected_before; /**< dropped by the port when the lane began to connect */
    int64_t look_ns;          /**< what comes may gather for so long before it is read */
    size_t most_read;         /**< in the present poll from one connection ... */
    bool more;                /**< ... and there is probably more */
    uint32_t segment;         /**< of a forwarder's connection out */
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

/* --- connect.c --- */

/** @brief Sets all that the phase asks of a socket that sends. 0 or a refusal. */
int tcp_set_options(const struct tcp_lane *lane, int fd, struct err *err);
/** @brief Calls the partners that are due. 0 or a failure with the sentence. */
int tcp_lane_call(struct tcp_lane *lane, int64_t now_ns, struct err *err);
int tcp_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
/** @brief What a socket may hold unsent, in bytes. */
uint32_t tcp_unsent_most(const struct lane_request *request);
/** @brief A connection in poll: sets the lane's error; `why` 0: it ended early. */
void tcp_fault(struct message_lane *lane, const struct lane_flow *flow, int why);
/** @brief Payload bytes among the bytes that a full segment takes at layer 1; `segment` takes its
 * bytes. */
double tcp_payload_share(int fd, uint32_t *segment);
void tcp_lane_read_flow(struct lane *lane, const struct lane_flow *flow,
                        struct flow_reading *reading);

/* --- stream.c --- */

extern const struct message_hooks tcp_hooks;
int64_t tcp_lane_poll(struct lane *lane, int64_t now_ns);
bool tcp_lane_wait(struct lane *lane, int64_t until_ns);

#endif
