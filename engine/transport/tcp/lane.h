/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A tcp lane inside.
 *
 * The main thread makes the lane (tcp.c) and its connections (connect.c), a worker moves the bytes
 * (stream.c), the main thread reads what the kernel knows of them (flow_metrics.c). Each stream is
 * a connection; two streams that answer each other share one, each end with two descriptors.
 *
 * Offered bytes are those that a socket took. TCP_NOTSENT_LOWAT bounds what a socket holds unsent
 * (30 ms of line): a paced flow holds next to nothing, an unpaced one as much when the window
 * closes as when it opened, so that buffered bytes do not make the window's offered load larger.
 */
#ifndef ENGINE_TCP_LANE_H
#define ENGINE_TCP_LANE_H

#include "message_lane.h"
#include "port.h"
#include "tcp_options.h"

#include <stddef.h>
#include <sys/uio.h>

#define TCP_READ_BYTES (256u * 1024) /**< one read, and a forwarder's buffer */
#define TCP_BATCH_IOVS 1024

/** @brief TCP_OUT_LOST: a check's, whose partner can't be reached; it has ended before it began. */
enum tcp_out_state { TCP_OUT_CHALLENGE, TCP_OUT_PROOF, TCP_OUT_READY, TCP_OUT_LOST };

struct tcp_out {
    struct message_out base;
    int fd;
    enum tcp_out_state state;
    bool writable;      /**< until the kernel says that it is full */
    bool is_passive;    /**< the partner calls */
    uint32_t mark_sent; /**< bytes of the end mark that are sent */
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    struct tcp_proof proof;
    unsigned answer_bytes; /**< read of the challenge or the proof, whichever is due */
    int64_t closed_ns;     /**< when the partner first closed it in the handshake; 0: it did not */
    int64_t recall_ns; /**< when it is called again (fd -1), and the wait before the next call */
    int64_t recall_gap_ns;
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
    int epoll;           /**< of streams: events carry an index: outs, then ins */
    int wakes;           /**< the same of streams that are answered beside a load; -1: none are */
    unsigned loads_left; /**< streams of a load that are still to come whole */
    int64_t connect_since_ns;
    uint64_t rejected_before; /**< dropped by the port when the lane began to connect */
    int64_t look_ns;          /**< what comes may gather for so long before it is read */
    size_t most_read;         /**< in the present poll from one connection ... */
    bool more;                /**< ... and there is probably more */
    uint32_t segment;         /**< of a forwarder's connection out */
    int64_t moved_ns; /**< schedules: when something last moved, or partners were looked at */
    bool waits;       /**< ... the worker comes by way of tcp_lane_wait */
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

/** @brief The same of an end that receives. */
static inline struct tcp_out *tcp_way(const struct tcp_in *in)
{
    return in->base.lane->forwards ? NULL : (struct tcp_out *)(void *)in->base.pair;
}

/**
 * @brief A stream that is answered beside a load wakes a sleeping worker by a descriptor of its
 * own.
 */
static inline bool tcp_is_probe(const struct tcp_lane *lane, const struct message_script *script)
{
    return script->stream >= lane->base.streams && lane->base.probe_fps > 0;
}

/* --- connect.c --- */

/**
 * @brief Calls the partners.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int tcp_lane_call(struct tcp_lane *lane, struct err *err);
int tcp_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
/** @brief What a socket may hold unsent. */
uint32_t tcp_unsent_most(const struct lane_request *request);
/** @brief A connection in poll: sets the lane's error; `why` 0: it ended early. */
void tcp_fault(struct message_lane *lane, const struct lane_flow *flow, int why);

/* --- stream.c --- */

extern const struct message_hooks tcp_hooks;
void tcp_lane_start(struct lane *lane, int64_t now_ns);
int64_t tcp_lane_poll(struct lane *lane, int64_t now_ns);
bool tcp_lane_wait(struct lane *lane, int64_t until_ns);

/* --- flow_metrics.c: what the kernel knows of a connection --- */

/** @brief Payload bytes among the bytes that a full segment takes at layer 1. */
double tcp_payload_share(int fd);
/** @brief Bytes of a full segment. */
uint32_t tcp_segment_bytes(int fd);
/** @brief The kernel still tries to connect (as opposed to: the partner does not answer). */
bool tcp_connecting(int fd);
unsigned tcp_lane_flow_metrics(struct lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room);

#endif
