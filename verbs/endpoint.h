/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a stream: what a sender and a receiver have in common. Each queue pair of a flow is a
 * stream of its own: messages in order, then an eof.
 */
#ifndef VERBS_ENDPOINT_H
#define VERBS_ENDPOINT_H

#include "message.h"
#include "qp.h"

#define VERBS_BATCH 64u /* messages posted, and completions polled, at once */

/* What a completion is of: the top byte of its work request's id. Receives have none: their id is
 * their place in the ring. The rest is a count of messages. */
enum verbs_work { VERBS_WORK_RECEIVE, VERBS_WORK_MESSAGE, VERBS_WORK_CONTROL, VERBS_WORK_EOF };
#define VERBS_WORK_SHIFT 56
#define VERBS_WORK_ID(kind, count) ((uint64_t)(kind) << VERBS_WORK_SHIFT | (count))
static inline enum verbs_work verbs_work_of(const struct ibv_wc *completion)
{
    return (enum verbs_work)(completion->wr_id >> VERBS_WORK_SHIFT);
}
static inline uint64_t verbs_work_count(const struct ibv_wc *completion)
{
    return completion->wr_id & ~VERBS_WORK_ID(UINT8_MAX, 0);
}

/* Immediate data: the low bits of the message's sequence, or that it is the eof. */
#define VERBS_IMMEDIATE_MASK 0x7fffffffu
#define VERBS_IMMEDIATE_EOF 0x80000000u

struct verbs_mode; /* mode.h */

/* What the streams of a lane have in common. */
struct stream_context {
    struct lane *lane; /* its error and its times */
    struct transport_port *port;
    struct verbs_options options; /* effective: nothing is automatic but where said */
    const struct verbs_mode *mode;
    bool reliable;
    bool has_replies; /* messages are answered, and no credits are sent */
    bool may_rest;    /* silence of an unreliable service does not mean that all is over */
};

struct verbs_endpoint {
    struct stream_context *context;
    struct lane_flow *flow;
    struct verbs_qp *qp;
    struct qp_config config;
    struct verbs_script script;
    struct qp_info mine;
    struct qp_info theirs;
    bool connected;    /* else our info is out, and the partner's is awaited */
    bool is_reply;     /* of a reply stream: its sender is the flow's destination */
    bool control_busy; /* a credit or an eof is on its way to the partner */
    bool finished;     /* sender: the eof has arrived; receiver: it has come */
    bool failed;
};

static inline bool verbs_endpoint_sends(const struct verbs_endpoint *endpoint)
{
    return endpoint->config.role == QP_SENDER;
}

/* Whether this is the flow's source; else it is its destination. */
static inline bool verbs_endpoint_at_source(const struct verbs_endpoint *endpoint)
{
    return verbs_endpoint_sends(endpoint) != endpoint->is_reply;
}

/* The rank at the other end. */
static inline uint32_t verbs_endpoint_partner(const struct verbs_endpoint *endpoint)
{
    return verbs_endpoint_at_source(endpoint) ? endpoint->flow->dst : endpoint->flow->src;
}

/* Gives a count of messages as a credit; `finished`: the eof has come. */
void verbs_endpoint_credit(struct verbs_endpoint *endpoint, bool finished, uint64_t messages);
/* Tells the partner that the stream is at its end, and what it was. */
void verbs_endpoint_eof(struct verbs_endpoint *endpoint, uint64_t messages, uint64_t bytes);

/* A completion that failed: sets the lane's error, unless it only follows from another. */
void verbs_fault(struct verbs_endpoint *endpoint, const struct ibv_wc *completion);
/* The same for a post that was refused. */
void verbs_fault_post(struct verbs_endpoint *endpoint, int code);

/* Where a work request of datagrams goes: to the partner. */
static inline void verbs_endpoint_address(const struct verbs_endpoint *endpoint,
                                          struct ibv_send_wr *work)
{
    work->wr.ud.ah = endpoint->qp->ah;
    work->wr.ud.remote_qpn = endpoint->theirs.number;
    work->wr.ud.remote_qkey = endpoint->theirs.queue_key;
}

/* Posts the first `count` of linked work requests. */
static inline void verbs_endpoint_post(struct verbs_endpoint *endpoint, struct ibv_send_wr *works,
                                       uint32_t count)
{
    struct ibv_send_wr *last = &works[count - 1];
    struct ibv_send_wr *next = last->next;
    struct ibv_send_wr *bad;
    int code;

    last->next = NULL;
    code = ibv_post_send(endpoint->qp->ibv, works, &bad);
    last->next = next;
    if (code != 0)
        verbs_fault_post(endpoint, code);
}

#endif
