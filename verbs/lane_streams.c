/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_streams.h"

#include "adaptive_poll.h"
#include "connection_pool.h"
#include "lane_options.h"
#include "pingpong.h"

#include <errno.h>
#include <stdlib.h>

#define SIGNAL_MAX 32
#define RING_BYTES (32u << 20) /* of one queue pair, if that is at least two messages ... */
#define LANE_SHARE 4           /* ... and of the whole lane such a part of the port's memory */
#define RING_MIN 2u
#define SLOTS_BY_DEPTH 2u /* places for one depth while the credit for another is on its way */

/* --- streams --- */

static uint32_t largest(const struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    uint32_t most = 0;

    if (lane->traffic->largest != NULL)
        return lane->traffic->largest(lane);
    if (phase->traffic == TRAFFIC_PINGPONG && phase->pingpong.max_size > 0)
        return phase->pingpong.max_size;
    for (uint32_t i = 0; i < phase->size_count; i++)
        most = lane->sizes[i] > most ? lane->sizes[i] : most;
    return most;
}

static uint32_t stride_of(const struct verbs_lane *lane)
{
    uint32_t bytes = largest(lane);

    if (bytes < sizeof(struct verbs_notice))
        bytes = sizeof(struct verbs_notice);
    if (lane->context.options.service == VERBS_UD)
        bytes += VERBS_GRH_BYTES;
    return (bytes + 63) / 64 * 64;
}

/* Places in a receiver's ring: two depths, or a few where few messages are in flight; within the
 * bytes above, but never less than two, and no more than the device's queues hold. A rank may have
 * no flow at all. */
static uint32_t slots_of(const struct verbs_lane *lane)
{
    const struct transport_port *port = lane->context.port;
    uint64_t ends = verbs_lane_endpoints(lane);
    uint64_t most = port->memory.max / LANE_SHARE / (ends > 0 ? ends : 1);
    uint32_t stride = stride_of(lane);
    uint64_t device = (uint64_t)port->limits.max_qp_wr;
    uint64_t slots = lane->traffic->slots > 0 ? lane->traffic->slots
                                              : lane->context.options.depth * SLOTS_BY_DEPTH;

    most = most < RING_BYTES ? most : RING_BYTES;
    if (slots * stride > most)
        slots = most / stride;
    if (slots > device)
        slots = device;
    return slots > RING_MIN ? (uint32_t)slots : RING_MIN;
}

/* Each so many-th message: four times in what can be in flight, which is less than the depth where
 * the ring has fewer places. */
static void choose_signals(struct verbs_lane *lane)
{
    struct verbs_options *o = &lane->context.options;
    uint32_t slots = slots_of(lane);
    uint32_t quarter = (slots < o->depth ? slots : o->depth) / 4;

    if (o->signal_every == 0)
        o->signal_every = (uint16_t)(quarter < SIGNAL_MAX ? quarter : SIGNAL_MAX);
    if (o->signal_every == 0)
        o->signal_every = 1;
    if (o->signal_every > o->depth)
        o->signal_every = o->depth;
}

static struct qp_config config_of(const struct verbs_lane *lane, const struct lane_flow *flow,
                                  enum qp_role role, uint16_t stream)
{
    const struct verbs_options *o = &lane->context.options;
    const struct transport_port *port = lane->context.port;
    struct qp_config config = {
        .options = *o,
        .gid = o->gid_index == VERBS_AUTOMATIC ? port->gid : verbs_port_gid(port, o->gid_index),
        .role = role,
        .stream = stream,
        .mtu = lane->mtu,
        .slots = slots_of(lane),
        .stride = stride_of(lane),
        .forwards = role == QP_SENDER && flow->role == PATTERN_FORWARD,
    };

    verbs_address_read(&config.partner, &flow->partner);
    if (role == QP_RECEIVER)
        return config;
    if (o->service == VERBS_UD) {
        config.slots = VERBS_CREDIT_SLOTS;
        config.stride = VERBS_CREDIT_STRIDE;
    } else {
        config.slots = 0;
    }
    return config;
}

/* `stream`: of its flow; the reply stream is the one behind them. */
static void init_endpoint(struct verbs_lane *lane, struct verbs_endpoint *endpoint,
                          struct lane_flow *flow, enum qp_role role, unsigned stream)
{
    const struct phase *phase = lane->lane.request.phase;
    bool is_reply = stream == lane->streams;
    uint16_t number = (uint16_t)(stream + lane->traffic->first_stream);

    endpoint->context = &lane->context;
    endpoint->flow = flow;
    endpoint->is_reply = is_reply;
    endpoint->script = (struct verbs_script){
        .sizes = lane->sizes,
        .size_count = phase->size_count,
        .drawn = pingpong_drawn(phase, flow),
        .total = flow_load_bytes(phase, lane->sizes, lane->streams, stream),
        .stream = number,
        .tag = phase->tag,
        .src = (uint16_t)(is_reply ? flow->dst : flow->src),
        .dst = (uint16_t)(is_reply ? flow->src : flow->dst),
    };
    endpoint->config = config_of(lane, flow, role, number);
}

static int init_sender(struct verbs_lane *lane, unsigned index)
{
    struct verbs_sender *sender = &lane->senders[index];
    uint32_t place = index / lane->streams;
    struct verbs_flow *flow = &lane->flows[place];

    if (place >= lane->lane.request.send_count) {
        init_endpoint(lane, &sender->base, &lane->replies[place], QP_SENDER, lane->streams);
        return verbs_sender_init(sender);
    }
    flow->flow = &lane->lane.request.sends[place];
    flow->senders = &lane->senders[index - index % lane->streams];
    init_endpoint(lane, &sender->base, flow->flow, QP_SENDER, index % lane->streams);
    if (sender->base.config.forwards)
        sender->from = &lane->receivers[index];
    return verbs_sender_init(sender);
}

static int init_receiver(struct verbs_lane *lane, unsigned index)
{
    const struct lane_request *request = &lane->lane.request;
    struct verbs_receiver *receiver = &lane->receivers[index];
    uint32_t place = index / lane->streams;
    bool is_reply = place >= request->receive_count;
    struct lane_flow *flow =
        is_reply ? &lane->replies[place - request->receive_count] : &request->receives[place];

    init_endpoint(lane, &receiver->base, flow, QP_RECEIVER,
                  is_reply ? lane->streams : index % lane->streams);
    receiver->forwards = lane->forwards;
    return verbs_receiver_init(receiver, request->phase->traffic != TRAFFIC_STREAM);
}

/* One more of each here and below: an empty list is not NULL. */
int verbs_flows_copy(const struct lane_request *request, struct lane_flow **flows,
                     struct flow_side **sides)
{
    uint32_t sends = request->send_count;
    uint32_t count = sends + request->receive_count;

    *flows = calloc((size_t)count + 1, sizeof **flows);
    *sides = calloc((size_t)count + 1, sizeof **sides);
    if (*flows == NULL || *sides == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        (*flows)[i] = i < sends ? request->sends[i] : request->receives[i - sends];
        (*flows)[i].side = &(*sides)[i];
    }
    return 0;
}

static int allocate(struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    uint32_t sends = request->send_count, receives = request->receive_count;
    bool replies = lane->traffic->has_replies;
    unsigned senders = sends * lane->streams + (replies ? receives : 0);
    unsigned receivers = receives * lane->streams + (replies ? sends : 0);

    lane->flows = calloc(sends + 1, sizeof *lane->flows);
    lane->senders = calloc(senders + 1, sizeof *lane->senders);
    lane->receivers = calloc(receivers + 1, sizeof *lane->receivers);
    if (lane->flows == NULL || lane->senders == NULL || lane->receivers == NULL ||
        (replies && verbs_flows_copy(request, &lane->replies, &lane->reply_sides) < 0))
        return -ENOMEM;
    lane->sender_count = senders;
    lane->receiver_count = receivers;
    return 0;
}

static int make_streams(struct verbs_lane *lane)
{
    int rc = allocate(lane);

    if (rc < 0)
        return rc;
    choose_signals(lane);
    for (unsigned i = 0; i < lane->receiver_count && rc == 0; i++)
        rc = init_receiver(lane, i);
    for (unsigned i = 0; i < lane->sender_count && rc == 0; i++)
        rc = init_sender(lane, i);
    return rc;
}

/* --- making it --- */

static int acquire_queue_pairs(struct verbs_lane *lane, struct err *err)
{
    struct transport_port *port = lane->context.port;
    int rc = verbs_port_payload(port, largest(lane), err);

    for (unsigned i = 0; i < verbs_lane_endpoints(lane) && rc == 0; i++) {
        struct verbs_endpoint *endpoint = verbs_lane_endpoint(lane, i);

        rc = connection_pool_acquire(port, &endpoint->config, &endpoint->qp, err);
    }
    return rc;
}

int verbs_lane_make(struct verbs_lane **lane, const struct lane_request *request,
                    const struct verbs_traffic *traffic, struct err *err)
{
    struct verbs_lane *l = calloc(1, sizeof *l);
    int rc;

    if (l == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", request->port->label);
    l->lane.request = *request;
    l->traffic = traffic;
    l->context.lane = &l->lane;
    l->context.port = request->port;
    rc = verbs_lane_choose(l, err);
    if (rc == 0 && traffic->make != NULL)
        rc = traffic->make(l, err);
    if (rc == 0)
        rc = make_streams(l);
    if (rc == 0)
        rc = acquire_queue_pairs(l, err);
    if (rc < 0) {
        verbs_lane_free(l);
        return err_set(err, rc, "%s: out of memory", request->port->label);
    }
    l->keep_max = l->context.options.reuse;
    verbs_lane_name_variant(l);
    *lane = l;
    return 0;
}

/* --- the worker's rounds --- */

static bool poll_streams(struct verbs_lane *lane, int64_t now_ns)
{
    bool moved = false;

    for (unsigned i = 0; i < lane->receiver_count; i++)
        moved |= verbs_receiver_poll(&lane->receivers[i], now_ns) > 0;
    for (unsigned i = 0; i < lane->sender_count; i++)
        if (!lane->senders[i].base.finished)
            moved |= verbs_sender_reap(&lane->senders[i], now_ns);
    return moved;
}

/* From now on completions wake the worker; those that have come meanwhile are taken here. */
static bool arm(struct verbs_lane *lane, int64_t now_ns)
{
    lane->armed = true;
    for (unsigned i = 0; i < verbs_lane_endpoints(lane); i++)
        ibv_req_notify_cq(verbs_lane_endpoint(lane, i)->qp->cq, 0);
    return poll_streams(lane, now_ns);
}

void verbs_lane_start(struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;

    lane->lane.stop_ns = phase->stop_ns;
    lane->lane.tx_done = lane->sender_count == 0;
    lane->lane.rx_done = lane->receiver_count == 0;
    lane->opens_ns = pingpong_opens_ns(phase);
    for (unsigned i = 0; i < lane->sender_count; i++)
        lane->senders[i].moved_ns = phase->start_ns;
    if (lane->traffic->start != NULL)
        lane->traffic->start(lane);
}

static bool all_sent(const struct verbs_lane *lane)
{
    unsigned i = 0;

    while (i < lane->sender_count && lane->senders[i].base.finished)
        i++;
    return i == lane->sender_count;
}

static bool all_received(const struct verbs_lane *lane)
{
    unsigned i = 0;

    while (i < lane->receiver_count && lane->receivers[i].base.finished)
        i++;
    return i == lane->receiver_count;
}

int64_t verbs_lane_work(struct verbs_lane *lane, int64_t now_ns)
{
    bool moved = poll_streams(lane, now_ns);
    int64_t send_ns = CLOCK_NEVER;
    int64_t poll_ns;

    if (now_ns < lane->opens_ns)
        return lane->opens_ns;
    if (lane->lane.started_ns == 0)
        lane->lane.started_ns = now_ns;
    if (!all_sent(lane) || lane->traffic->polls_to_the_end)
        send_ns = lane->traffic->send(lane, now_ns);
    lane->lane.tx_done = all_sent(lane);
    lane->lane.rx_done = all_received(lane);
    if (lane->lane.stopped_ns == 0 && lane->lane.tx_done &&
        (lane->sender_count > 0 || now_ns >= lane->lane.stop_ns))
        lane->lane.stopped_ns = now_ns;
    if (lane->lane.tx_done && lane->lane.rx_done)
        return CLOCK_NEVER;
    if (!moved && lane->events && arm(lane, now_ns))
        return now_ns;
    poll_ns = adaptive_poll(&lane->poll_gap_ns, moved, now_ns);
    return send_ns > now_ns && send_ns < poll_ns ? send_ns : poll_ns;
}

/* --- freeing it --- */

/* The queue pair is at rest, in the same state as its partner's end. */
static bool is_clean(struct verbs_endpoint *endpoint)
{
    struct ibv_wc completion;

    while (endpoint->control_busy && ibv_poll_cq(endpoint->qp->cq, 1, &completion) > 0)
        if (completion.status == IBV_WC_SUCCESS && verbs_work_of(&completion) == VERBS_WORK_CONTROL)
            endpoint->control_busy = false;
    return endpoint->context->reliable && endpoint->connected && endpoint->finished &&
           !endpoint->failed && !endpoint->control_busy;
}

/* `messages` have passed by it. */
static void release(struct verbs_lane *lane, struct verbs_endpoint *endpoint, uint64_t messages)
{
    struct verbs_qp *qp = endpoint->qp;

    if (qp == NULL)
        return;
    if (lane->keep_max == 0 || qp->port->fatal || !is_clean(endpoint)) {
        connection_pool_free(qp);
        return;
    }
    qp->turn += (uint32_t)messages;
    connection_pool_keep(qp, lane->keep_max);
}

void verbs_lane_free(struct verbs_lane *lane)
{
    if (lane == NULL)
        return;
    for (unsigned i = 0; i < lane->sender_count; i++) {
        release(lane, &lane->senders[i].base, lane->senders[i].at.sequence);
        verbs_sender_free(&lane->senders[i]);
    }
    for (unsigned i = 0; i < lane->receiver_count; i++) {
        struct verbs_receiver *receiver = &lane->receivers[i];

        if (receiver->base.qp != NULL)
            receiver->base.qp->place = receiver->place;
        receiver->base.finished = receiver->base.finished && receiver->whole &&
                                  receiver->held == 0 && receiver->to_post == 0;
        release(lane, &receiver->base, receiver->verifier.at.sequence);
        verbs_receiver_free(receiver);
    }
    if (lane->traffic->free != NULL)
        lane->traffic->free(lane);
    free(lane->replies);
    free(lane->reply_sides);
    free(lane->flows);
    free(lane->senders);
    free(lane->receivers);
    free(lane);
}
