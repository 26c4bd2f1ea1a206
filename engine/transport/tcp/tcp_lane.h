/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Internal interface of the tcp transport: the kernel's TCP over a kernel interface, by
 * sockets in the interface's own network namespace. No privilege is needed where the port is in the
 * process's own namespace.
 *
 * A port is one address, a listening socket on it, and the connections that have arrived but belong
 * to no lane yet. A lane connects to its partners and takes over connections from them (connect.c);
 * a worker moves the bytes (tcp.c). Each stream is a connection. Two streams that answer each other
 * share one connection; each end then has a descriptor per stream.
 */
#ifndef ENGINE_TCP_LANE_H
#define ENGINE_TCP_LANE_H

#include "handshake.h"
#include "ip_port.h"
#include "message_lane.h"

#include <sys/queue.h>
#include <sys/uio.h>

#define TCP_READ_BYTES (256u * 1024) /**< bytes per read, and the lead of a forwarder's input */
#define TCP_BATCH_IOVS 1024

/** @brief Options of a trial below `tcp`. */
struct tcp_options {
    uint16_t streams;     /**< connections per flow */
    uint32_t send_buffer; /**< SO_SNDBUF and SO_RCVBUF in bytes; 0: the kernel's autotuning */
    uint32_t receive_buffer;
    char congestion[16]; /**< TCP_CONGESTION; "": the system's */
};

/**
 * @brief Return the options of the tcp transport in a phase.
 *
 * @param phase Phase.
 * @return Options; the phase's.
 */
static inline const struct tcp_options *tcp_options(const struct phase *phase)
{
    return phase->options;
}

/* --- connect.c: main thread only --- */

/**
 * @brief Incoming connection that no lane has taken over yet. It is half open until its claim is
 * verified; then it waits for the claimed lane, because a partner may be a phase ahead.
 */
struct tcp_arrival {
    TAILQ_ENTRY(tcp_arrival) link;
    int fd;
    bool proven;
    int64_t came_ns;
    struct sockaddr_storage from;
    struct tcp_handshake shake;
    unsigned shaken; /**< bytes of the handshake that have passed */
};

TAILQ_HEAD(tcp_arrivals, tcp_arrival); /**< oldest first */

struct transport_port {
    struct ip_port ip;          /**< first member; its socket is the listener */
    uint8_t key[TCP_KEY_BYTES]; /**< key of the last prepared lane; no arrival is read before */
    /**
     * @brief epoll descriptor that watches the listener (event data NULL), accepted connections,
     * and outgoing connections that are not established yet (event data: the port).
     */
    int epoll;
    bool listening;                  /**< the listener wakes threads that wait for `epoll` */
    struct tcp_arrivals arrivals[2]; /**< half open; proven */
    unsigned half_open;
    unsigned half_open_most; /**< further connections wait in the kernel's backlog */
    int64_t turn_ns;         /**< begin of the present turn; turn_rejected is the count before it */
    uint64_t turn_rejected;
};

int tcp_port_open(struct transport_port *port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err);
void tcp_port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void tcp_port_close(struct transport_port *port);

struct tcp_lane;
/** @brief Check that the lane's partners have addresses that can be reached, and that the kernel
 * accepts the lane's socket options. */
int tcp_lane_check(struct tcp_lane *lane, struct err *err);
/** @brief Connect the streams of a lane to its partners (`connect` in struct transport). */
int tcp_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
/** @brief Close the incoming connections whose claims name the lane's phase and which the lane has
 * not taken over. */
void tcp_lane_hang_up(struct tcp_lane *lane);
/** @brief Return the maximum number of unsent bytes that a socket of the lane may hold. */
uint32_t tcp_unsent_most(const struct lane_request *request);

/** @brief Addresses of both ends of a flow's connection as text. */
struct tcp_names {
    char here[ADDRESS_TEXT_MAX], there[ADDRESS_TEXT_MAX];
    uint32_t rank; /**< rank of the other end */
};
struct tcp_names tcp_end_names(const struct message_end *end);
struct tcp_info;
/** @brief Read the kernel's TCP_INFO of a connection; return false if there is none. */
bool tcp_info_read(int fd, struct tcp_info *info);

/* --- a lane --- */

struct tcp_end {
    struct message_end base;
    int fd; /**< -1: none */
    bool connected;
    bool is_passive;  /**< it sends, and the partner connects */
    bool open;        /**< the kernel probably has room to write, or data to read */
    unsigned recalls; /**< number of repeated connection attempts; the next is at recall_ns */
    int64_t recall_ns;
    uint32_t mark_sent; /**< sent bytes of the end mark */
    struct tcp_handshake shake;
    unsigned shaken; /**< bytes of the handshake that have passed */
};

/** @brief Batch of messages that one system call sends. */
struct tcp_batch {
    struct iovec iov[TCP_BATCH_IOVS];
    struct message_header headers[TCP_BATCH_IOVS];
    unsigned count; /**< length of iov */
    size_t bytes;
};

struct tcp_lane {
    struct message_lane base;
    struct transport_port *port;
    int epoll; /**< over the streams: events carry an end's number */
    /**
     * @brief epoll descriptor of the latency probes' streams, which wakes a sleeping worker; -1:
     * none.
     */
    int wakes;
    int64_t connect_since_ns;
    int64_t look_ns;  /**< time for which received data may gather before they are read */
    size_t most_read; /**< bytes read from one connection in the present poll */
    bool more;        /**< a connection probably has more data */
    unsigned polls;
    uint8_t *buffer; /**< TCP_READ_BYTES */
    struct tcp_batch batch;
};

/** @brief Return the stream end at an index of a lane: first the sending ends, then the receiving
 * ends. */
static inline struct tcp_end *tcp_lane_end(const struct tcp_lane *lane, unsigned index)
{
    return (struct tcp_end *)(void *)message_lane_end(&lane->base, index);
}

/**
 * @brief Return the stream end that uses the same connection in the opposite direction; NULL: the
 * connection has one direction.
 *
 * A stream's answers use its own connection. Messages of a schedule's steps share one connection in
 * both directions, so that they carry the acknowledgements of received messages; there the lower
 * rank connects.
 */
static inline struct tcp_end *tcp_other_way(const struct tcp_end *end)
{
    return end->base.lane->forwards ? NULL : (struct tcp_end *)(void *)end->base.pair;
}

#endif
