/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The tcp transport inside: the kernel's TCP over a kernel interface, by sockets in the
 * interface's own network namespace. No privilege is needed where the port is in the process's own
 * namespace.
 *
 * A port is one address, a listening socket on it, and the connections that have arrived but belong
 * to no lane yet. A lane calls its partners and takes over those that called it (connect.c); a
 * worker moves the bytes (tcp.c). Each stream is a connection; two streams that answer each other
 * share one, each end with a descriptor of its own for each.
 */
#ifndef ENGINE_TCP_LANE_H
#define ENGINE_TCP_LANE_H

#include "handshake.h"
#include "ip_port.h"
#include "message_lane.h"

#include <sys/queue.h>
#include <sys/uio.h>

#define TCP_READ_BYTES (256u * 1024) /**< one read, and what a forwarder may be ahead */
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

/* --- connect.c: all of it is the main thread's --- */

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

struct tcp_lane;
/** @brief Checks the partners and the options, then calls those partners that do not call. */
int tcp_lane_call(struct tcp_lane *lane, struct err *err);
/** @brief As the table's `connect`. */
int tcp_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
/** @brief Closes all that has come for the lane and was not taken. */
void tcp_lane_hang_up(struct tcp_lane *lane);
/** @brief What a socket may hold unsent, in bytes. */
uint32_t tcp_unsent_most(const struct lane_request *request);

/** @brief Both ends of a flow's connection, in words. */
struct tcp_names {
    char here[IP_ADDRESS_TEXT], there[IP_ADDRESS_TEXT];
    uint32_t rank; /**< there */
};
struct tcp_names tcp_end_names(const struct message_end *end);
struct tcp_info;
/** @brief Reads what the kernel knows of a connection; false: nothing. */
bool tcp_info_read(int fd, struct tcp_info *info);

/* --- a lane --- */

struct tcp_end {
    struct message_end base;
    int fd; /**< -1: there is none yet, or none any more */
    bool connected;
    bool is_passive;  /**< it sends, and the partner calls */
    bool open;        /**< the kernel has room to write, or something to read, as far as is known */
    unsigned recalls; /**< how often the partner is called again; next at recall_ns */
    int64_t recall_ns;
    uint32_t mark_sent; /**< bytes of the end mark that are sent */
    struct tcp_handshake shake;
    unsigned shaken; /**< bytes of it that have passed */
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
    int epoll; /**< of streams: events carry an end's number */
    int wakes; /**< the same of streams that are answered beside a load, which wake a sleeping
                    worker; -1: none are */
    int64_t connect_since_ns;
    int64_t look_ns;  /**< what comes may gather for so long before it is read */
    size_t most_read; /**< in the present poll from one connection ... */
    bool more;        /**< ... and there is probably more */
    unsigned polls;
    uint8_t *buffer; /**< TCP_READ_BYTES */
    struct tcp_batch batch;
};

/** @brief The lane's ends: those that send, then those that receive. */
static inline struct tcp_end *tcp_lane_end(const struct tcp_lane *lane, unsigned index)
{
    return (struct tcp_end *)(void *)message_lane_end(&lane->base, index);
}

/** @brief The end of the other way that uses the same connection; NULL: the connection goes one
 * way. A stream's answers go by its own connection. Messages of steps answer each other: by one
 * connection they carry the acknowledgements of those that came, which would be packets of their
 * own; there the lower rank calls. */
static inline struct tcp_end *tcp_other_way(const struct tcp_end *end)
{
    return end->base.lane->forwards ? NULL : (struct tcp_end *)(void *)end->base.pair;
}

#endif
