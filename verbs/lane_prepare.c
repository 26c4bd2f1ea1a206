/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A phase checked against a port, and a lane made for it: its effective options, its streams, their
 * queue pairs.
 */
#include "lane.h"
#include "latency_probes.h"
#include "pingpong.h"
#include "prober.h"
#include "rdma_cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNAL_MOST 32
#define RING_BYTES (32u << 20) /* of one queue pair, if that is at least two messages ... */
#define LANE_SHARE 4           /* ... and of all of a lane such a part of the port's memory */
#define RING_LEAST 2u
#define SLOTS_BY_DEPTH 2u /* places for one depth while the credit for another is on its way */
#define STEPS_SLOTS 17u   /* pieces of a schedule's messages that are ahead, and the end mark */
#define PINGPONG_SLOTS 4u /* late ones of an unreliable service need a place, too */
#define QUEUE_PAIRS_MOST 64
#define DEPTH_MOST 16384
#define PROBE_STREAM 128 /* of the queue pairs of probes: behind all that a flow can have */
#define PROBE_PAIRS 2u   /* of each flow */
static_assert(QUEUE_PAIRS_MOST < PROBE_STREAM && PROBE_STREAM + PROBE_PAIRS <= UINT8_MAX,
              "a message's header has 8 bits for its stream");

/* --- checks --- */

static const char *const service_names[] = {"rc", "uc", "ud"};
static const char *const operation_names[] = {"send", "write", "read"};

static int check_words(const struct verbs_lane *lane, struct err *err)
{
    static const bool possible[3][3] = {
        [VERBS_RC] = {true, true, true},
        [VERBS_UC] = {[VERBS_WRITE] = true},
        [VERBS_UD] = {[VERBS_SEND] = true},
    };
    const struct verbs_options *o = &lane->options;
    const char *label = lane->port->label;

    if (!possible[o->service][o->operation])
        return err_set(err, -EINVAL,
                       "%s: verbs service %s has no operation %s; rc has send, write and read, uc "
                       "has write, ud has send",
                       label, service_names[o->service], operation_names[o->operation]);
    if (o->connect == VERBS_CONNECT_CM && o->service != VERBS_RC)
        return err_set(err, -EINVAL, "%s: connect: cm is for service rc; use connect: exchange",
                       label);
    if (o->connect == VERBS_CONNECT_EXCHANGE && lane->port->iwarp)
        return err_set(err, -EINVAL, "%s: an iWARP device is connected by connect: cm only", label);
    if (lane->port->iwarp &&
        (o->service != VERBS_RC || (o->operation == VERBS_WRITE && o->immediate)))
        return err_set(err, -EOPNOTSUPP,
                       "%s: iWARP has service rc only, and no write with immediate; use "
                       "immediate: false",
                       label);
    if (o->retry > 6 || o->rnr_retry > 6)
        return err_set(err, -EINVAL, "%s: retry and rnr_retry are 0 to 6: 7 never ends", label);
    if (o->depth < 1 || o->depth > DEPTH_MOST || o->queue_pairs < 1 ||
        o->queue_pairs > QUEUE_PAIRS_MOST || o->timeout < 1 || o->timeout > 31 ||
        o->service_level > 15)
        return err_set(err, -EINVAL,
                       "%s: depth %u, queue_pairs %u, timeout %u or service_level %u is out of "
                       "range: 1 to %u, 1 to %u, 1 to 31, 0 to 15",
                       label, o->depth, o->queue_pairs, o->timeout, o->service_level, DEPTH_MOST,
                       QUEUE_PAIRS_MOST);
    return 0;
}

static int check_device(struct verbs_lane *lane, struct err *err)
{
    const struct verbs_options *o = &lane->options;
    struct transport_port *port = lane->port;
    uint32_t active = verbs_mtu_bytes(port->attributes.active_mtu);
    enum ibv_mtu code;

    if (o->mtu != 0 && !verbs_mtu_code(o->mtu, &code))
        return err_set(err, -EINVAL, "%s: mtu %u; a path MTU is 256, 512, 1024, 2048 or 4096",
                       port->label, o->mtu);
    if (o->mtu > active)
        return err_set(err, -EINVAL,
                       "%s: mtu %u is larger than the port's active MTU %u; use at most that, or "
                       "raise the MTU of the link (on RoCE that of %s, and of the switch)",
                       port->label, o->mtu, active,
                       port->netdev[0] != '\0' ? port->netdev : "its interface");
    lane->mtu = (uint16_t)(o->mtu != 0 ? o->mtu : active);
    if ((int)o->depth + (int)VERBS_CONTROL_WRS > port->limits.max_qp_wr)
        return err_set(err, -EINVAL, "%s: depth %u; the device's queue pairs hold %d at most",
                       port->label, o->depth, port->limits.max_qp_wr - (int)VERBS_CONTROL_WRS);
    if (o->operation == VERBS_READ && port->limits.max_qp_rd_atom < 1)
        return err_set(err, -EOPNOTSUPP, "%s: the device has no RDMA read; use send or write",
                       port->label);
    if (o->pkey_index >= port->attributes.pkey_tbl_len && o->pkey_index > 0)
        return err_set(err, -EINVAL, "%s: pkey_index %u; the port's table has %u", port->label,
                       o->pkey_index, port->attributes.pkey_tbl_len);
    return 0;
}

static int check_gid(struct verbs_lane *lane, struct err *err)
{
    struct transport_port *port = lane->port;
    int index = lane->options.gid_index;
    char list[256] = "";
    size_t used = 0;

    if (index == VERBS_AUTOMATIC && (port->gid != NULL || port->iwarp))
        return 0;
    if (index != VERBS_AUTOMATIC && verbs_port_gid(port, index) != NULL)
        return 0;
    for (size_t i = 0; i < port->gid_count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", i > 0 ? ", " : "",
                                 port->gids[i].index);
    if (port->gid_count == 0)
        return err_set(err, -EADDRNOTAVAIL,
                       "%s: the port has no GID; give %s an address and bring it up", port->label,
                       port->netdev[0] != '\0' ? port->netdev : "its interface");
    return err_set(
        err, -EINVAL,
        "%s: gid_index %d is not in the port's GID table, which has %s: use one of these, or "
        "leave it out",
        port->label, index, list);
}

static int check_size(const struct verbs_lane *lane, uint32_t size, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    uint32_t device = lane->port->attributes.max_msg_sz;
    const char *label = lane->port->label;

    if (size == 0)
        return err_set(err, -EINVAL, "verbs: a message of 0 bytes; 1 is the least");
    if (size > VERBS_MESSAGE_MAX || size > device)
        return err_set(err, -EMSGSIZE,
                       "%s: a message of %u bytes; %u are the most that this device sends at once: "
                       "use smaller message_sizes",
                       label, size, device < VERBS_MESSAGE_MAX ? device : VERBS_MESSAGE_MAX);
    if (lane->options.service == VERBS_UD && size > lane->mtu && phase->traffic != TRAFFIC_PROBE)
        return err_set(err, -EMSGSIZE,
                       "%s: a message of %u bytes; with service ud a message is one packet, "
                       "and %u, the path MTU, is the most",
                       label, size, lane->mtu);
    return 0;
}

static bool draws_sizes(const struct phase *phase)
{
    return phase->traffic == TRAFFIC_PINGPONG && phase->pingpong.size_most > 0;
}

static int check_sizes(const struct verbs_lane *lane, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    int rc = 0;

    if (phase->size_count == 0 || phase->size_count > TRANSPORT_SIZES_MAX)
        return err_set(err, -EINVAL, "verbs: %u message sizes; 1 to %d are possible",
                       phase->size_count, TRANSPORT_SIZES_MAX);
    if (phase->traffic == TRAFFIC_STREAM && !phase->load.unlimited && phase->load.rate_bps <= 0 &&
        phase->load.rate_fps <= 0)
        return err_set(err, -EINVAL, "verbs: a stream needs a load");
    if (draws_sizes(phase))
        return check_size(lane, phase->pingpong.size_most, err);
    for (uint32_t i = 0; i < phase->size_count && rc == 0; i++)
        rc = check_size(lane, phase->sizes[i], err);
    return rc;
}

static bool forwards(const struct lane_request *request)
{
    for (uint32_t i = 0; i < request->send_count; i++)
        if (request->sends[i].role == PATTERN_FORWARD)
            return true;
    return false;
}

static int check_forward(const struct verbs_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;

    if (!lane->forwards)
        return 0;
    if (request->send_count != 1 || request->receive_count != 1)
        return err_set(err, -EINVAL,
                       "%s: verbs forwards one flow into one other, not %u into %u in a phase",
                       lane->port->label, request->receive_count, request->send_count);
    if (!lane->reliable)
        return err_set(err, -EINVAL,
                       "%s: a chain is forwarded over service rc only: what %s loses could not be "
                       "sent on",
                       lane->port->label, service_names[lane->options.service]);
    return 0;
}

/* What stays in this host would say nothing about the network. */
static int check_partner(const struct verbs_lane *lane, const struct lane_flow *flow, bool sends,
                         struct err *err)
{
    const struct transport_port *port = lane->port;
    uint32_t rank = sends ? flow->dst : flow->src;
    struct verbs_address reach;
    char gid[VERBS_GID_TEXT];

    if (!verbs_address_read(&reach, &flow->partner))
        return err_set(err, -EINVAL, "%s: rank %u gave no verbs address", port->label, rank);
    if (reach.ethernet != port->ethernet || reach.iwarp != port->iwarp)
        return err_set(err, -EINVAL,
                       "%s: rank %u's port is %s, this one is %s: they can't reach each other; put "
                       "them into different networks",
                       port->label, rank,
                       reach.iwarp      ? "iWARP"
                       : reach.ethernet ? "RoCE"
                                        : "InfiniBand",
                       port->iwarp      ? "iWARP"
                       : port->ethernet ? "RoCE"
                                        : "InfiniBand");
    if (port->gid != NULL && memcmp(reach.gid, port->gid->bytes, sizeof reach.gid) == 0)
        return err_set(err, -EINVAL,
                       "%s: rank %u is this same port, so the bytes would never leave it",
                       port->label, rank);
    if (port->software && port->ethernet &&
        verbs_route_is_local(port->iwarp ? reach.ip : reach.gid, port->netdev))
        return err_set(err, -EINVAL,
                       "%s: rank %u (%s) is on this same host, and a software device keeps what is "
                       "for it inside, so the bytes would never leave it; use ports of two hosts, "
                       "or route between the two interfaces over the wire",
                       port->label, rank, verbs_gid_text(reach.gid, gid));
    return 0;
}

static int check_partners(const struct verbs_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    int rc = 0;

    for (uint32_t i = 0; i < request->send_count && rc == 0; i++)
        rc = check_partner(lane, &request->sends[i], true, err);
    for (uint32_t i = 0; i < request->receive_count && rc == 0; i++)
        rc = check_partner(lane, &request->receives[i], false, err);
    return rc;
}

/* --- effective options --- */

static void name_variant(struct verbs_lane *lane)
{
    const struct verbs_options *o = &lane->options;

    snprintf(lane->lane.variant, sizeof lane->lane.variant, "%s %s%s%s, %s, %s%s",
             service_names[o->service], operation_names[o->operation],
             o->immediate ? " immediate" : "", lane->forwards ? " forward" : "",
             o->connect == VERBS_CONNECT_CM ? "cm" : "exchange", lane->events ? "event" : "poll",
             lane->port->memory.huge ? ", hugepages" : "");
}

/* --- streams --- */

static uint32_t largest(const struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    uint32_t most = 0;

    if (lane->schedule != NULL)
        return verbs_schedule_piece(lane);
    if (draws_sizes(phase))
        return phase->pingpong.size_most;
    for (uint32_t i = 0; i < phase->size_count; i++)
        most = lane->sizes[i] > most ? lane->sizes[i] : most;
    return most;
}

static uint32_t stride_of(const struct verbs_lane *lane)
{
    uint32_t bytes = largest(lane);

    if (bytes < sizeof(struct verbs_eof))
        bytes = sizeof(struct verbs_eof);
    if (lane->options.service == VERBS_UD)
        bytes += VERBS_GRH_BYTES;
    return (bytes + 63) / 64 * 64;
}

static unsigned sender_count(const struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;

    return request->send_count * lane->streams +
           (lane->replies != NULL ? request->receive_count : 0);
}

static unsigned receiver_count(const struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;

    return request->receive_count * lane->streams +
           (lane->replies != NULL ? request->send_count : 0);
}

static uint32_t slots_wanted(const struct verbs_lane *lane)
{
    if (lane->carries != NULL)
        return VERBS_PROBES_OUT + 1; /* the end mark takes one */
    if (lane->schedule != NULL)
        return STEPS_SLOTS;
    return lane->pingpong != NULL ? PINGPONG_SLOTS : lane->options.depth * SLOTS_BY_DEPTH;
}

/* Places in a sink's ring: two depths, or a few where few messages are under way; within the bytes
 * above, but never less than two, and no more than the device's queues hold. A rank may have no
 * flow at all. */
static uint32_t slots_of(const struct verbs_lane *lane)
{
    uint64_t ends = sender_count(lane) + receiver_count(lane);
    uint64_t most = lane->port->memory.most / LANE_SHARE / (ends > 0 ? ends : 1);
    uint64_t slots = slots_wanted(lane);
    uint32_t stride = stride_of(lane);
    uint64_t device = (uint64_t)lane->port->limits.max_qp_wr;

    most = most < RING_BYTES ? most : RING_BYTES;
    if (slots * stride > most)
        slots = most / stride;
    if (slots > device)
        slots = device;
    return slots > RING_LEAST ? (uint32_t)slots : RING_LEAST;
}

/* Each so many-th message: four times in what can be under way, which is less than the depth where
 * the ring has fewer places. Reads would otherwise wait until a whole ring has come. */
static uint16_t signals(const struct verbs_lane *lane)
{
    uint32_t most = lane->options.depth;
    uint32_t slots = slots_of(lane);

    most = (slots < most ? slots : most) / 4;
    return (uint16_t)(most == 0 ? 1 : most < SIGNAL_MOST ? most : SIGNAL_MOST);
}

static void plan(struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    struct verbs_options *o = &lane->options;
    bool probe = phase->traffic == TRAFFIC_PROBE;
    uint32_t probe_most = VERBS_PROBE_BYTES;

    if (o->service == VERBS_UD && lane->mtu < probe_most)
        probe_most = lane->mtu;
    for (uint32_t i = 0; i < phase->size_count; i++) {
        lane->sizes[i] = phase->sizes[i];
        if (probe && lane->sizes[i] > probe_most)
            lane->sizes[i] = probe_most;
    }
    lane->streams = probe ? 1 : o->queue_pairs;
    if (o->signal_every == 0)
        o->signal_every = signals(lane);
    if (o->signal_every > o->depth)
        o->signal_every = o->depth;
    lane->events = o->completion == VERBS_COMPLETION_EVENT ||
                   (o->completion == VERBS_COMPLETION_AUTO && lane->lane.request.sleeps);
    if (o->operation != VERBS_WRITE)
        o->immediate = false;
}

static struct qp_config need_of(const struct verbs_lane *lane,
                                const struct verbs_endpoint *endpoint)
{
    const struct verbs_options *o = &lane->options;
    struct qp_config config = {
        .options = o,
        .gid = o->gid_index == VERBS_AUTOMATIC ? lane->port->gid
                                               : verbs_port_gid(lane->port, o->gid_index),
        .role = endpoint->source ? QP_SENDER : QP_RECEIVER,
        .stream = endpoint->script.stream,
        .mtu = lane->mtu,
        .slots = slots_of(lane),
        .stride = stride_of(lane),
    };

    verbs_address_read(&config.partner, &endpoint->flow->partner);
    if (!endpoint->source)
        return config;
    config.relays = endpoint->flow->role == PATTERN_FORWARD;
    if (o->service == VERBS_UD) {
        config.slots = VERBS_CREDIT_SLOTS;
        config.stride = VERBS_CREDIT_STRIDE;
    } else if (o->operation == VERBS_READ && !config.relays) {
        config.slots++; /* no common divisor: what is old in a sink's place has another payload */
    } else {
        config.slots = 0;
    }
    return config;
}

/* `stream`: of its flow; the way back is the one behind them. */
static void begin_end(struct verbs_lane *lane, struct verbs_endpoint *endpoint,
                      struct lane_flow *flow, unsigned stream)
{
    const struct phase *phase = lane->lane.request.phase;

    endpoint->lane = lane;
    endpoint->flow = flow;
    endpoint->is_reply = stream == lane->streams;
    endpoint->script = (struct verbs_script){
        .sizes = lane->sizes,
        .size_count = phase->size_count,
        .drawn = pingpong_drawn(phase, flow),
        .total = flow_load_bytes(phase, lane->sizes, lane->streams, stream),
        .stream = (uint16_t)(stream + (lane->carries != NULL ? PROBE_STREAM : 0)),
        .tag = phase->tag,
        .src = (uint16_t)(endpoint->is_reply ? flow->dst : flow->src),
        .dst = (uint16_t)(endpoint->is_reply ? flow->src : flow->dst),
    };
    endpoint->config = need_of(lane, endpoint);
}

/* Those of its flows come first, then the ways back of what it receives. */
static void begin_out_end(struct verbs_lane *lane, unsigned index)
{
    struct verbs_sender *sender = &lane->senders[index];
    uint32_t place = index / lane->streams;
    struct verbs_flow *group;

    sender->endpoint.source = true;
    if (place >= lane->lane.request.send_count) {
        begin_end(lane, &sender->endpoint, &lane->replies[place], lane->streams);
        return;
    }
    group = &lane->flows[place];
    group->flow = &lane->lane.request.sends[place];
    group->senders = &lane->senders[index - index % lane->streams];
    group->open++;
    begin_end(lane, &sender->endpoint, group->flow, index % lane->streams);
}

static int begin_out(struct verbs_lane *lane, unsigned index)
{
    struct verbs_sender *sender = &lane->senders[index];

    begin_out_end(lane, index);
    verbs_cursor_start(&sender->at, &sender->endpoint.script);
    if (sender->endpoint.config.relays)
        sender->from = &lane->receivers[index];
    /* Reads are completed by the sink: as many are out as this end has places. */
    sender->span = lane->options.depth;
    if (lane->options.operation == VERBS_READ)
        sender->span = sender->from != NULL ? slots_of(lane) : sender->endpoint.config.slots;
    sender->bytes_after = calloc((size_t)sender->span + 1, sizeof *sender->bytes_after);
    sender->works = calloc(VERBS_BATCH, sizeof *sender->works);
    sender->gathers = calloc(2 * (size_t)VERBS_BATCH, sizeof *sender->gathers);
    verbs_sender_variant(sender);
    return sender->bytes_after != NULL && sender->works != NULL && sender->gathers != NULL
               ? 0
               : -ENOMEM;
}

static int begin_in(struct verbs_lane *lane, unsigned index)
{
    struct verbs_receiver *receiver = &lane->receivers[index];
    const struct phase *phase = lane->lane.request.phase;
    const struct lane_request *request = &lane->lane.request;
    uint32_t place = index / lane->streams;
    bool back = place >= request->receive_count;
    struct lane_flow *flow =
        back ? &lane->replies[place - request->receive_count] : &request->receives[place];
    size_t slots;

    begin_end(lane, &receiver->endpoint, flow, back ? lane->streams : index % lane->streams);
    receiver->verifier = (struct verbs_verifier){
        .script = receiver->endpoint.script,
        .side = flow->side,
        .count = lane->lane.request.count,
        .reliable = lane->reliable,
        .places = lane->options.operation == VERBS_READ,
        .whole = phase->traffic != TRAFFIC_STREAM,
    };
    verbs_verify_start(&receiver->verifier);
    if (lane->forwards)
        receiver->onward = &lane->senders[index];
    slots = receiver->endpoint.config.slots;
    receiver->receives = calloc(slots, sizeof *receiver->receives);
    receiver->scatters = calloc(slots + VERBS_BATCH, sizeof *receiver->scatters);
    receiver->lengths = calloc(slots, sizeof *receiver->lengths);
    receiver->works = calloc(VERBS_BATCH, sizeof *receiver->works);
    verbs_receiver_variant(receiver);
    return receiver->receives != NULL && receiver->scatters != NULL && receiver->lengths != NULL &&
                   receiver->works != NULL
               ? 0
               : -ENOMEM;
}

/* Chooses how it sends; with that goes whether its flows have ways back. */
static int choose(struct verbs_lane *lane)
{
    bool pingpong = lane->lane.request.phase->traffic == TRAFFIC_PINGPONG;
    bool steps = lane->lane.request.phase->traffic == TRAFFIC_SCHEDULE;
    int rc = 0;

    lane->send = lane->carries != NULL ? verbs_probes_send
                 : pingpong            ? verbs_pingpong_send
                 : steps               ? verbs_schedule_send
                                       : verbs_stream_send;
    if (pingpong)
        rc = verbs_pingpong_make(lane);
    if (steps)
        rc = verbs_schedule_make(lane);
    if (rc == 0 && (pingpong || lane->carries != NULL))
        rc = verbs_replies_make(lane);
    return rc;
}

static int allocate(struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    unsigned senders, receivers;
    int rc = choose(lane);

    if (rc < 0)
        return rc;
    senders = sender_count(lane);
    receivers = receiver_count(lane);

    /* One more of each: an empty list is not NULL. */
    lane->flows = calloc(request->send_count + 1, sizeof *lane->flows);
    lane->senders = calloc(senders + 1, sizeof *lane->senders);
    lane->receivers = calloc(receivers + 1, sizeof *lane->receivers);
    if (lane->flows == NULL || lane->senders == NULL || lane->receivers == NULL)
        return -ENOMEM;
    lane->sender_count = senders;
    lane->receiver_count = receivers;
    for (unsigned i = 0; i < receivers && rc == 0; i++)
        rc = begin_in(lane, i);
    for (unsigned i = 0; i < senders && rc == 0; i++)
        rc = begin_out(lane, i);
    return rc;
}

struct verbs_endpoint *verbs_lane_endpoint(struct verbs_lane *lane, unsigned index)
{
    return index < lane->sender_count ? &lane->senders[index].endpoint
                                      : &lane->receivers[index - lane->sender_count].endpoint;
}

/* --- the lane --- */

static int check(struct verbs_lane *lane, struct err *err)
{
    int rc = check_words(lane, err);

    if (rc == 0)
        rc = check_device(lane, err);
    if (rc == 0)
        rc = check_gid(lane, err);
    if (rc == 0)
        rc = check_sizes(lane, err);
    if (rc == 0)
        rc = check_forward(lane, err);
    if (rc == 0 && lane->lane.request.phase->traffic == TRAFFIC_PINGPONG)
        rc = verbs_pingpong_check(lane, err);
    if (rc == 0 && lane->lane.request.phase->traffic == TRAFFIC_SCHEDULE)
        rc = verbs_schedule_check(lane, err);
    return rc == 0 ? check_partners(lane, err) : rc;
}

static int make_pairs(struct verbs_lane *lane, struct err *err)
{
    int rc = verbs_port_pattern(lane->port, largest(lane), err);

    for (unsigned i = 0; i < lane->sender_count + lane->receiver_count && rc == 0; i++)
        rc = verbs_endpoint_acquire(verbs_lane_endpoint(lane, i), err);
    return rc;
}

int verbs_lane_make(struct verbs_lane **lane, const struct lane_request *request,
                    struct verbs_probes *carries, struct err *err)
{
    struct verbs_lane *l = calloc(1, sizeof *l);
    int rc;

    if (l == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", request->port->label);
    l->lane.request = *request;
    l->port = request->port;
    l->carries = carries;
    l->forwards = forwards(request);
    l->options = request->phase->verbs;
    l->reliable = l->options.service == VERBS_RC;
    rc = check(l, err);
    if (rc == 0) {
        plan(l);
        rc = allocate(l);
        if (rc < 0)
            err_set(err, rc, "%s: out of memory", l->port->label);
    }
    if (rc == 0)
        rc = verbs_schedule_register(l, err);
    if (rc == 0)
        rc = make_pairs(l, err);
    if (rc < 0)
        verbs_lane_destroy(&l->lane);
    else
        *lane = l;
    return rc;
}

int verbs_lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err)
{
    struct verbs_lane *l = NULL;
    int rc = verbs_lane_make(&l, request, NULL, err);

    if (l == NULL)
        return rc;
    name_variant(l);
    rc = verbs_probes_make(l, err);
    if (rc < 0)
        verbs_lane_destroy(&l->lane);
    else
        *lane = &l->lane;
    return rc;
}

/* --- and its end --- */

/* The pair is at rest, in the same state as its partner's end. */
static bool is_clean(const struct verbs_lane *lane, struct verbs_endpoint *endpoint)
{
    struct ibv_wc completion;

    while (endpoint->control_busy && ibv_poll_cq(endpoint->qp->cq, 1, &completion) > 0)
        if (completion.status == IBV_WC_SUCCESS &&
            completion.wr_id >> VERBS_WORK_SHIFT == VERBS_WORK_CONTROL)
            endpoint->control_busy = false;
    return lane->reliable && endpoint->link == VERBS_LINK_READY && endpoint->finished &&
           !endpoint->failed && !endpoint->control_busy;
}

/* With the queue pairs of its load a flow keeps those of its probes. */
static size_t keeps(const struct verbs_lane *lane)
{
    bool probes = lane->probes != NULL || lane->carries != NULL;

    return (size_t)lane->options.reuse * (probes ? 1 + PROBE_PAIRS : 1);
}

static void let_go(struct verbs_lane *lane, struct verbs_endpoint *endpoint, uint32_t messages)
{
    struct verbs_qp *qp = endpoint->qp;

    if (qp == NULL)
        return;
    endpoint->qp = NULL;
    if (lane->options.reuse == 0 || qp->port->fatal) {
        verbs_qp_free(qp);
        return;
    }
    qp->turn += messages;
    verbs_qp_keep(qp, keeps(lane));
}

static void finish_end(struct verbs_lane *lane, struct verbs_endpoint *endpoint, uint32_t messages)
{
    verbs_link_end(endpoint);
    if (endpoint->qp != NULL && !is_clean(lane, endpoint)) {
        verbs_qp_free(endpoint->qp);
        endpoint->qp = NULL;
    }
    let_go(lane, endpoint, messages);
}

void verbs_lane_destroy(struct lane *lane)
{
    struct verbs_lane *l = (struct verbs_lane *)lane;

    for (unsigned i = 0; i < l->sender_count; i++) {
        finish_end(l, &l->senders[i].endpoint, (uint32_t)l->senders[i].at.sequence);
        free(l->senders[i].bytes_after);
        free(l->senders[i].works);
        free(l->senders[i].gathers);
    }
    for (unsigned i = 0; i < l->receiver_count; i++) {
        struct verbs_receiver *receiver = &l->receivers[i];

        if (receiver->endpoint.qp != NULL)
            receiver->endpoint.qp->place = receiver->place;
        receiver->endpoint.finished = receiver->endpoint.finished && receiver->whole &&
                                      receiver->held == 0 && receiver->to_post == 0;
        finish_end(l, &receiver->endpoint, (uint32_t)receiver->verifier.at.sequence);
        free(receiver->receives);
        free(receiver->lengths);
        free(receiver->scatters);
        free(receiver->works);
    }
    verbs_probes_free(l);
    verbs_pingpong_free(l);
    verbs_schedule_free(l);
    verbs_replies_free(l);
    free(l->flows);
    free(l->senders);
    free(l->receivers);
    free(l);
}
