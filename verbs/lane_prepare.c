/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_prepare.h"

#include "connection_pool.h"
#include "pingpong.h"
#include "port_address.h"
#include "reply_streams.h"
#include "request_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SIGNAL_MAX 32
#define RING_BYTES (32u << 20) /* of one queue pair, if that is at least two messages ... */
#define LANE_SHARE 4           /* ... and of the whole lane such a part of the port's memory */
#define RING_MIN 2u
#define SLOTS_BY_DEPTH 2u  /* places for one depth while the credit for another is on its way */
#define CHECK_BYTES 10000u /* of a message of the connectivity check, max */

/* --- effective options --- */

static void choose_options(struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct verbs_options *o = &lane->context.options;
    uint32_t active = verbs_mtu_bytes(request->port->attributes.active_mtu);

    *o = request->phase->verbs;
    if (o->operation != VERBS_WRITE)
        o->immediate = false;
    lane->mtu = (uint16_t)(o->mtu != 0 ? o->mtu : active);
    lane->context.reliable = o->service == VERBS_RC;
    lane->context.has_replies = lane->traffic->has_replies;
    lane->context.may_rest = lane->traffic->may_rest;
    lane->events = o->completion == VERBS_COMPLETION_EVENT ||
                   (o->completion == VERBS_COMPLETION_AUTO && request->sleeps);
    lane->forwards = request_forwards(request);
}

static const struct verbs_mode *choose_mode(const struct verbs_lane *lane)
{
    const struct verbs_options *o = &lane->context.options;

    if (lane->lane.request.phase->traffic == TRAFFIC_SCHEDULE)
        return &verbs_mode_send_scheduled;
    if (o->operation == VERBS_READ)
        return &verbs_mode_read;
    if (o->operation == VERBS_WRITE)
        return o->immediate ? &verbs_mode_write : &verbs_mode_write_polled;
    return o->service == VERBS_UD && lane->context.has_replies ? &verbs_mode_send_numbered
                                                               : &verbs_mode_send;
}

static void choose_sizes(struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    const struct verbs_options *o = &lane->context.options;
    bool check = phase->traffic == TRAFFIC_PROBE;
    uint32_t most = o->service == VERBS_UD && lane->mtu < CHECK_BYTES ? lane->mtu : CHECK_BYTES;

    for (uint32_t i = 0; i < phase->size_count; i++)
        lane->sizes[i] = check && phase->sizes[i] > most ? most : phase->sizes[i];
    lane->streams = check ? 1 : o->queue_pairs;
}

/* Bytes at layer 1 that a message of `bytes` takes: InfiniBand Architecture 5.2, RoCEv2 annex A17.
 * Ethernet: preamble to gap and FCS 38, IPv4 20 or IPv6 40, UDP 8; transport 12 and the checksum 4;
 * InfiniBand: local header 8, both checksums 6. First or only packets hold what the operation
 * needs (16); datagrams 8. */
double verbs_line_bytes(const struct verbs_lane *lane, uint32_t bytes)
{
    const struct verbs_gid *gid = lane->context.port->gid;
    double packet = 12 + 6 + 8;
    uint32_t packets = (bytes + lane->mtu - 1) / lane->mtu;
    double once = lane->context.options.operation != VERBS_SEND ? 16 : 0;

    if (lane->context.port->ethernet)
        packet = 12 + 4 + 38 + 8 + (gid != NULL && verbs_gid_is_ipv4(gid->bytes) ? 20 : 40);
    if (lane->context.options.service == VERBS_UD)
        packet += 8;
    return bytes + packets * packet + once;
}

static void name_variant(struct verbs_lane *lane)
{
    const struct verbs_options *o = &lane->context.options;

    snprintf(lane->lane.variant, sizeof lane->lane.variant, "%s %s%s%s, %s, %s%s",
             verbs_service_names[o->service], verbs_operation_names[o->operation],
             o->immediate ? " immediate" : "", lane->forwards ? " forward" : "",
             o->connect == VERBS_CONNECT_CM ? "cm" : "exchange", lane->events ? "event" : "poll",
             lane->context.port->memory.huge ? ", hugepages" : "");
}

/* --- streams --- */

static uint32_t largest(const struct verbs_lane *lane)
{
    uint32_t most = 0;

    if (lane->traffic->largest != NULL)
        return lane->traffic->largest(lane);
    for (uint32_t i = 0; i < lane->lane.request.phase->size_count; i++)
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
 * the ring has fewer places. Reads would otherwise wait until a whole ring has come. */
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
    } else if (o->operation == VERBS_READ && !config.forwards) {
        config.slots++; /* no common divisor: what is old in a receiver's place has other payload */
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

/* One more of each: an empty list is not NULL. */
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
        (replies && verbs_replies_make(lane) < 0))
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

/* --- the lane --- */

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
    choose_options(l);
    l->context.mode = choose_mode(l);
    rc = verbs_lane_check(l, err);
    if (rc == 0) {
        choose_sizes(l);
        rc = traffic->make != NULL ? traffic->make(l, err) : 0;
    }
    if (rc == 0)
        rc = make_streams(l);
    if (rc == 0)
        rc = acquire_queue_pairs(l, err);
    if (rc < 0) {
        verbs_lane_free(l);
        return err_set(err, rc, "%s: out of memory", request->port->label);
    }
    l->keep_max = l->context.options.reuse;
    name_variant(l);
    *lane = l;
    return 0;
}

/* --- and its end --- */

/* The queue pair is at rest, in the same state as its partner's end. */
static bool is_clean(struct verbs_endpoint *endpoint)
{
    struct ibv_wc completion;

    while (endpoint->control_busy && ibv_poll_cq(endpoint->qp->cq, 1, &completion) > 0)
        if (completion.status == IBV_WC_SUCCESS && verbs_work_of(&completion) == VERBS_WORK_CONTROL)
            endpoint->control_busy = false;
    return endpoint->context->reliable && endpoint->link == VERBS_LINK_READY &&
           endpoint->finished && !endpoint->failed && !endpoint->control_busy;
}

/* `messages` have passed by it. */
static void release(struct verbs_lane *lane, struct verbs_endpoint *endpoint, uint64_t messages)
{
    struct verbs_qp *qp = endpoint->qp;

    if (qp == NULL)
        return;
    verbs_cm_forget(qp->port, &endpoint->call, qp);
    if (lane->keep_max == 0 || qp->port->fatal || !is_clean(endpoint)) {
        verbs_qp_free(qp);
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
    verbs_replies_free(lane);
    free(lane->flows);
    free(lane->senders);
    free(lane->receivers);
    free(lane);
}
