/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include "adaptive_poll.h"
#include "addresses.h"
#include "eal.h"
#include "forward.h"
#include "lane_request.h"
#include "lane_sizes.h"
#include "partner.h"
#include "pingpong_lane.h"
#include "prober.h"
#include "receiver_setup.h"
#include "rx.h"
#include "sender_setup.h"
#include "tx.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdlib.h>

#define RECEIVE_BURST 64u /* at least: vector drivers return nothing for less than 4, some 32 */

/* In the records' words. */
static void describe(struct dpdk_lane *lane)
{
    const struct receiver *receiver = &lane->receiver;
    const char *times = receiver->delay_stats == NULL ? ""
                        : receiver->sampled ? ", time of 2 in " RTE_STR(LANE_SAMPLE_OF) " frames"
                                            : ", time of every frame";
    char probes[64] = "";

    if (lane->prober.count > 0)
        snprintf(probes, sizeof probes, ", %.3g probes/s a flow%s", lane->prober.rate_fps,
                 lane->port->arrival.runs ? " by the device's clock" : "");
    snprintf(lane->lane.variant, sizeof lane->lane.variant, "send %s, receive %s%s%s",
             sender_variant_name(lane), frame_kind_name(lane->shape.kind), times, probes);
}

static int make_streams(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct dpdk_lane *first = (const struct dpdk_lane *)request->first_queue_lane;
    const struct phase *phase = request->phase;
    int rc;

    if ((rc = lane_choose_sizes(lane, err)) != 0)
        return rc;
    lane->receiver.sources = lane->pingpong != NULL ? 1 : dpdk_options(phase)->udp_sources;
    for (uint32_t i = 0; i < request->send_count; i++) {
        struct frame_end end;

        if ((rc = partner_check(lane, &request->sends[i], request->sends[i].dst, &end, err)) != 0)
            return rc;
    }
    if ((rc = receiver_make(lane, err)) != 0 || lane->pingpong != NULL)
        return rc;
    if ((rc = sender_make(lane)) != 0 ||
        (rc = frame_prober_make(&lane->prober, &lane->lane.request,
                                first != NULL ? &first->prober : NULL)) != 0)
        return rc;
    if (request->send_count == 1 && request->sends[0].role == PATTERN_FORWARD) {
        lane->forwarder.queue = calloc(FORWARD_QUEUE, sizeof *lane->forwarder.queue);
        if (lane->forwarder.queue == NULL)
            return -ENOMEM;
        lane->responds = true;
    }
    lane->receiver.accounting.streams =
        calloc((size_t)request->receive_count * lane->receiver.sources + 1,
               sizeof *lane->receiver.accounting.streams);
    lane->sender.accounting.streams =
        calloc(lane->sender.count + 1, sizeof *lane->sender.accounting.streams);
    if (lane->receiver.accounting.streams == NULL || lane->sender.accounting.streams == NULL)
        return -ENOMEM;
    lane->lane.accounts = true;
    lane->receive = receiver_variant(lane);
    describe(lane);
    return 0;
}

static int make(struct dpdk_lane *lane, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    int rc = addresses_prepare(lane, err);

    if (rc != 0)
        return rc;
    frame_shape(&lane->shape, dpdk_options(phase), phase->tag);
    lane->burst = dpdk_options(phase)->burst;
    lane->receive_burst = RTE_MAX(lane->burst, RECEIVE_BURST);
    lane->send = sender_wait;
    if (phase->traffic == TRAFFIC_PINGPONG && (rc = pingpong_lane_make(lane, err)) != 0)
        return rc;
    return make_streams(lane, err);
}

static void free_lane(struct dpdk_lane *lane)
{
    frame_prober_free(&lane->prober);
    pingpong_lane_free(lane);
    free(lane->receiver.accounting.streams);
    free(lane->sender.accounting.streams);
    free(lane->forwarder.queue);
    receiver_free(lane);
    sender_free(&lane->sender);
    free(lane);
}

static bool woken_by_probes(const struct dpdk_lane *lane)
{
    /* With several queues one lane would take what tells another. */
    return lane->pingpong == NULL && lane->lane.request.sleeps && lane->prober.answers &&
           lane->port->kernel && lane->port->queue_count == 1 && lane->port->iface.wakes &&
           strcmp(lane->port->driver, "net_af_packet") == 0;
}

/* A stream's frames may gather; who waits for one message wants to know at once, and so does a
 * probe. Only AF_PACKET has descriptors that tell. */
static int wake_fd(const struct dpdk_lane *lane)
{
    const struct iface *iface = &lane->port->iface;

    if (lane->pingpong == NULL)
        return woken_by_probes(lane) ? iface->packet_fd : -1;
    if (!lane->port->kernel || lane->queue->number >= iface->ring_count)
        return -1;
    return iface->ring_fds[lane->queue->number];
}

int lane_prepare(struct lane **out, const struct lane_request *request, struct err *err)
{
    struct dpdk_lane *lane;
    int rc;

    if ((rc = lane_check_request(request, err)) != 0)
        return rc;
    lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", request->port->conf->name);
    lane->lane.request = *request;
    lane->port = request->port;
    lane->queue = &request->port->queues[request->queue];
    lane->shape.payload = FRAME_ETHERNET;
    lane->push_ns = CLOCK_NEVER;
    if ((rc = make(lane, err)) != 0) {
        free_lane(lane);
        return err_set(err, rc, "%s: out of memory", request->port->conf->name);
    }
    lane->lane.wake_fd = wake_fd(lane);
    *out = &lane->lane;
    return 0;
}

/* The port speaks as this phase does: header kind and VLAN. */
static void introduce(struct dpdk_lane *lane, int64_t now_ns)
{
    struct arp_nd_responder *responder = port_responder_lock(lane->port);

    responder->kind = lane->shape.kind;
    responder->vlan = lane->shape.vlan;
    responder->vlan_tci = lane->shape.vlan_tci;
    port_responder_unlock(lane->port);
    if (lane->queue->number == 0)
        queue_announce(lane->queue, now_ns);
    lane->connecting_ns = now_ns;
    lane->announced = true;
}

/* Receives what waits while no worker polls the queue: for its lane, if one is connected. */
static void listen_between(struct port_queue *queue, int64_t now_ns)
{
    struct dpdk_lane *lane = queue->lane;

    if (lane == NULL)
        queue_receive_idle(queue);
    /* Bounded as queue_receive_idle is. */
    for (unsigned bursts = 0; lane != NULL && bursts < QUEUE_IDLE_BURSTS; bursts++)
        if (lane->receive(lane, now_ns) == 0)
            break;
    queue_announce_again(queue, now_ns);
}

/* Makes what comes on the queue the lane's, also before its worker is there: partners may be at
 * their start when this node is not. */
static void build(struct dpdk_lane *lane)
{
    struct port_queue *queue = lane->queue;
    struct port_count *count = lane->lane.request.count;

    sender_build(lane);
    if (lane->pingpong != NULL)
        pingpong_lane_build(lane);
    count->foreign += queue->idle.foreign;
    count->arp_nd_sent += queue->idle.arp_nd_sent;
    count->arp_nd_received += queue->idle.arp_nd_received;
    queue->idle = (struct port_count){0};
    queue->count = count;
    queue->lane = lane;
}

int lane_connect(struct lane *base, int64_t now_ns, struct err *err)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct port_queue *queue = lane->queue;
    int rc;

    pthread_mutex_lock(&lane->port->lock);
    if (!lane->announced)
        introduce(lane, now_ns);
    listen_between(queue, now_ns);
    rc = partner_find_gateway(lane, now_ns, err);
    if (rc == 0)
        rc = addresses_learn(lane, now_ns);
    if (rc == 0 && queue->lane != lane)
        build(lane);
    pthread_mutex_unlock(&lane->port->lock);
    return rc;
}

/* What this queue has of a transfer that several receive. */
static void publish_received(const struct dpdk_lane *lane)
{
    atomic_store_explicit(&lane->queues_received[lane->queue->number].frames,
                          lane->receiver.all - lane->receiver.left, memory_order_relaxed);
}

void lane_start(struct lane *base, int64_t now_ns)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    const struct phase *phase = base->request.phase;
    uint64_t seed;

    eal_thread();
    pthread_mutex_lock(&lane->port->lock);
    iface_cork(&lane->port->iface, lane->forwarder.queue == NULL);
    lane->start_ns = lane->receiver.limit.start_ns = phase->start_ns;
    listen_between(lane->queue, now_ns); /* a late worker finds here what its partners have sent */
    if (lane->queues_received != NULL)
        publish_received(lane);
    lane->started = true;
    pthread_mutex_unlock(&lane->port->lock);
    seed = sender_begin(lane);
    if (woken_by_probes(lane))
        iface_wake_by(&lane->port->iface, lane->prober.tags,
                      lane->shape.payload + (uint32_t)offsetof(struct signature, tag),
                      lane->shape.vlan);
    if (lane->pingpong == NULL)
        frame_prober_start(&lane->prober, &base->request, seed);
    base->stop_ns = phase->stop_ns;
    lane->turn_ns = lane->start_ns;
    base->rx_done = lane->receiver.left == 0;
}

static void begin_sending(struct dpdk_lane *lane, int64_t now_ns)
{
    bool generates = lane->sender.count > 0 && lane->forwarder.queue == NULL;

    lane->lane.started_ns = now_ns;
    lane->state = generates ? LANE_SENDS : LANE_LISTENS;
    lane->send = generates ? sender_variant(lane) : sender_rest;
    if (lane->forwarder.queue != NULL)
        lane->send = forwarder_send;
    if (lane->pingpong != NULL) {
        lane->state = LANE_PLAYS;
        lane->send = pingpong_lane_send;
    }
}

static void end_sending(struct dpdk_lane *lane, int64_t now_ns)
{
    int64_t end_ns = lane->lane.stop_ns < now_ns ? lane->lane.stop_ns : now_ns;

    sender_missing(lane, end_ns);
    lane->send = sender_rest;
    lane->state = LANE_LISTENS;
    lane_push_later(lane, now_ns - LANE_PUSH_NS);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* Times are measured in the window; where there is none but the whole phase, in that. Returns when
 * that changes. */
static int64_t time_frames(struct dpdk_lane *lane, int64_t now_ns)
{
    const struct phase *phase = lane->lane.request.phase;
    bool window = phase_is_timed(phase);
    int64_t open_ns = window ? phase->open_ns : phase->start_ns;
    int64_t close_ns = window ? phase->close_ns : CLOCK_NEVER;
    bool timing = now_ns >= open_ns && now_ns < close_ns;

    if (lane->receiver.delay_stats == NULL)
        return CLOCK_NEVER;
    if (timing != lane->timing) {
        lane->timing = timing;
        lane->receive = receiver_variant(lane);
    }
    if (now_ns < open_ns)
        return open_ns;
    return timing ? close_ns : CLOCK_NEVER;
}

/* What happens at certain times only. A worker that wakes after the stop still sends what was due
 * before it, within catch_up. */
static void take_turn(struct dpdk_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;
    int64_t announce_ns =
        atomic_load_explicit(&lane->port->announced_ns, memory_order_relaxed) + PORT_ANNOUNCE_NS;

    if (lane->state == LANE_WAITS && base->stop_ns <= lane->start_ns)
        end_sending(lane, lane->start_ns); /* ended before it began */
    if (lane->state == LANE_WAITS && now_ns >= lane->start_ns)
        begin_sending(lane, now_ns);
    if (lane->state == LANE_SENDS && now_ns >= base->stop_ns && !sender_ends_burst(lane)) {
        (void)lane->send(lane, base->stop_ns - 1);
        end_sending(lane, now_ns);
    }
    if (base->stopped_ns == 0 && now_ns >= base->stop_ns)
        base->stopped_ns = now_ns;
    if (lane->queue->number != 0)
        announce_ns = CLOCK_NEVER;
    else if (now_ns >= announce_ns)
        queue_announce(lane->queue, now_ns);
    lane->turn_ns = now_ns >= announce_ns ? now_ns + PORT_ANNOUNCE_NS : announce_ns;
    lane->turn_ns = earlier(lane->turn_ns, time_frames(lane, now_ns));
    lane->turn_ns = earlier(lane->turn_ns, prober_turn(lane, now_ns));
    if (lane->state == LANE_WAITS && lane->start_ns < lane->turn_ns)
        lane->turn_ns = lane->start_ns;
}

/* Asked when nothing came: then the other queues' lines are still, too, at the end of a transfer.
 */
static bool all_received(const struct dpdk_lane *lane)
{
    uint64_t frames = 0;

    for (uint16_t i = 0; i < lane->port->queue_count; i++)
        frames += atomic_load_explicit(&lane->queues_received[i].frames, memory_order_relaxed);
    return frames >= lane->receiver.all;
}

static bool received_all(struct dpdk_lane *lane, uint32_t received)
{
    const struct receiver *receiver = &lane->receiver;

    if (lane->queues_received == NULL)
        return receiver->left == 0 && !prober_waits(lane);
    if (received == 0)
        return all_received(lane);
    publish_received(lane);
    return false;
}

int64_t lane_poll(struct lane *base, int64_t now_ns)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    int64_t next_ns = CLOCK_NEVER;
    uint32_t received;

    if (unlikely(base->woken)) {
        base->woken = false;
        if (lane->pingpong == NULL)
            iface_wake_clear(&lane->port->iface);
    }
    if (now_ns >= lane->turn_ns || now_ns >= base->stop_ns)
        take_turn(lane, now_ns);
    if (lane->pingpong == NULL)
        next_ns = lane->send(lane, now_ns);
    received = lane->receive(lane, now_ns);
    if (lane->pingpong != NULL || (received > 0 && lane->responds))
        next_ns = lane->send(lane, now_ns);
    if (lane->sender.left == 0 && lane->state == LANE_SENDS && !sender_next_burst(lane, now_ns)) {
        base->stopped_ns = now_ns;
        end_sending(lane, now_ns);
    }
    base->rx_done = received_all(lane, received);
    if (unlikely(now_ns >= lane->push_ns))
        lane->push_ns = iface_push(&lane->port->iface) ? now_ns + LANE_PUSH_NS : CLOCK_NEVER;
    if (lane->state == LANE_LISTENS)
        base->tx_done =
            lane->forwarder.head == lane->forwarder.tail && lane->push_ns == CLOCK_NEVER;
    next_ns = earlier(next_ns, earlier(lane->prober.next_ns, lane->push_ns));
    if (lane->pingpong != NULL && base->wake_fd < 0)
        next_ns = earlier(next_ns, adaptive_poll(&lane->look_gap_ns, received > 0, now_ns));
    return received == lane->receive_burst ? now_ns : next_ns;
}

void lane_idle(struct transport_port *port, int64_t now_ns)
{
    eal_thread();
    pthread_mutex_lock(&port->lock);
    for (uint16_t i = 0; i < port->queue_count; i++) {
        struct port_queue *queue = &port->queues[i];

        if (queue->lane == NULL || !queue->lane->started)
            listen_between(queue, now_ns);
    }
    pthread_mutex_unlock(&port->lock);
}

/* Some more streams; true: all are now. */
static bool account_streams(struct dpdk_lane *lane, struct accounting *accounting, uint32_t count,
                            void (*account)(struct dpdk_lane *lane, uint32_t number))
{
    uint32_t most = RTE_MIN(ACCOUNT_SOME, count - accounting->next);

    for (uint32_t i = 0; i < most; i++)
        account(lane, accounting->next++);
    if (accounting->next < count)
        return false;
    accounting->marked = false;
    return true;
}

bool lane_account_some(struct lane *base)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct receiver *receiver = &lane->receiver;
    struct sender *sender = &lane->sender;
    bool forwards = lane->forwarder.queue != NULL;
    bool received = account_streams(lane, &receiver->accounting,
                                    receiver->count * receiver->sources, receiver_account_stream);
    bool sent = account_streams(lane, &sender->accounting, forwards ? 0 : sender->count,
                                sender_account_stream);

    if (!received || !sent)
        return false;
    if (forwards)
        base->offered = sender->streams->side->live.payload_bytes;
    receiver->accounting.next = sender->accounting.next = 0;
    return true;
}

void lane_mark_window(struct lane *base)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    bool opens = lane->receiver.accounting.marks == 0;

    accounting_mark(&lane->receiver.accounting);
    accounting_mark(&lane->sender.accounting);
    if (lane->forwarder.queue == NULL)
        return;
    /* One flow each way. */
    if (opens)
        lane->sender.streams->side->window.open = lane->sender.streams->side->live;
    else
        lane->sender.streams->side->window.close = lane->sender.streams->side->live;
    while (!lane_account_some(base))
        ;
}

void lane_account(struct lane *base)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;

    if (lane->pingpong != NULL)
        return; /* frames count as they go and come */
    lane->receiver.accounting.next = lane->sender.accounting.next = 0;
    while (!lane_account_some(base))
        ;
    sender_account_end(lane);
}

unsigned lane_flow_metrics(struct lane *base, const struct lane_flow *flow, struct flow_metric *out,
                           unsigned room)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;

    return flow->src == base->request.rank ? sender_flow_metrics(lane, flow, out, room)
                                           : receiver_flow_metrics(lane, flow, out, room);
}

bool lane_latency(struct lane *base, const struct lane_flow *flow, enum latency_kind kind,
                  struct latency *sum)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    const struct receiver *receiver = &lane->receiver;
    uint32_t index;

    if (lane->pingpong != NULL)
        return kind == LATENCY_PINGPONG && pingpong_lane_latency(lane, flow, sum);
    index = flow->src < PATTERN_RANKS_MAX ? receiver->flow_of[flow->src] : 0;
    if (kind == LATENCY_ROUND_TRIP)
        return frame_prober_sum(&lane->prober, flow, sum);
    if (receiver->delay_stats == NULL || index == 0 || kind == LATENCY_PINGPONG)
        return false;
    delay_stats_sum(&receiver->delay_stats[(size_t)(index - 1) * receiver->sources],
                    receiver->sources, receiver->buckets,
                    kind == LATENCY_ONE_WAY ? DELAY_ONE_WAY : DELAY_IPDV, &sum->histogram);
    return true;
}

void lane_destroy(struct lane *base)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct port_queue *queue = lane->queue;

    /* Its worker has let go of it; one that visits the queue may still receive for it. */
    pthread_mutex_lock(&lane->port->lock);
    forwarder_drop(lane);
    if (queue->lane == lane) {
        queue->lane = NULL;
        queue->count = &queue->idle;
    }
    pthread_mutex_unlock(&lane->port->lock);
    free_lane(lane);
}
