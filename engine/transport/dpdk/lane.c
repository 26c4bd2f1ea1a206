/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The dpdk transport: raw Ethernet frames, run to completion.
 *
 *     frame, arp_nd_responder                frames, ARP and neighbour discovery: pure functions
 *     eal, iface, port_device                DPDK, the kernel's interface, a device and its queues
 *     port, port_queue                       a port: facts, control frames
 *     lane                                   a phase: a lane of frames (traffic/frame_lane.h)
 *     hot                                    its hot path
 */
#include "dpdk_lane.h"

#include "eal.h"
#include "ethtool.h"

#include <errno.h>
#include <stdlib.h>

#define SETTLE_NS (200 * NS_PER_MS) /* a switch's processor may be behind */
#define CATCH_UP_S 0.005            /* more at once would exceed the rate */
#define ASK_NS (200 * NS_PER_MS)
#define IDLE_BURSTS 64u
#define IDLE_BURST 128u
/* Interval at which a port announces its address: below any switch's ageing time (300 s by default,
 * at least 10 s; IEEE 802.1Q 8.8.3). */
#define ANNOUNCE_NS (8 * NS_PER_S)
#define GATEWAY_NS (5 * NS_PER_S)
#define EVERY_MAX                                                                                  \
    8u /* flows of which every frame is timed: the buckets of more fit into no cache */

/* --- partners ----------------------------------------------------------------------------------*/

static int resolve(struct frame_lane *base, uint32_t place, void *partner, uint64_t *line_bps,
                   struct err *err)
{
    struct dpdk_lane *lane = dpdk_lane_of(base);
    const struct lane_flow *flow = &base->lane.request.flows[place];
    uint32_t rank = frame_partner_rank(base, place);
    const char *name = lane->port->conf->name;
    enum header_kind kind = lane->shape.kind;
    struct frame_end *end = partner;
    struct port_blob peer = {.version = 0};
    uint32_t frame_max;

    if (flow->partner.size == sizeof peer)
        memcpy(&peer, flow->partner.bytes, sizeof peer);
    if (peer.version != 1)
        return err_set(err, -EINVAL, "%s: rank %u has sent no address of a dpdk port", name, rank);
    if ((kind == HEADER_IPV4_UDP && !peer.has_ipv4) || (kind == HEADER_IPV6_UDP && !peer.has_ipv6))
        return err_set(err, -EINVAL, "%s: its partner, rank %u, has no address for %s frames", name,
                       rank, frame_kind_name(kind));
    end->rank = (uint16_t)rank;
    memcpy(end->mac, peer.mac, sizeof end->mac);
    memcpy(end->ipv4, peer.ipv4, sizeof end->ipv4);
    memcpy(end->ipv6, peer.ipv6, sizeof end->ipv6);
    memcpy(line_bps, peer.line_bps, sizeof *line_bps);
    *line_bps = be64toh(*line_bps);
    memcpy(&frame_max, peer.frame_max, sizeof frame_max);
    frame_max = be32toh(frame_max) + (lane->shape.vlan ? FRAME_VLAN : 0);
    for (uint32_t i = 0; i < base->size_count; i++)
        if (base->sizes[i].frame_bytes > frame_max)
            return err_set(err, -EINVAL,
                           "%s: its partner, rank %u, takes frames of %u bytes at most, not %u",
                           name, rank, frame_max - (lane->shape.vlan ? FRAME_VLAN : 0),
                           base->sizes[i].frame_bytes);
    return 0;
}

/* Fill the addresses of the two ends of a flow's frames: this rank, and the partner. The partner's
 * MAC is the gateway's if the partner is not on this link. */
static void find_ends(const struct dpdk_lane *lane, uint32_t place, struct frame_end ends[2])
{
    /* A worker that visits the port between phases may learn the gateway at this moment. */
    const struct arp_nd_responder *responder = port_responder_lock(lane->port);

    ends[0].rank = (uint16_t)lane->frame.lane.request.rank;
    memcpy(ends[0].mac, responder->mac, sizeof ends[0].mac);
    memcpy(ends[0].ipv4, responder->ipv4, sizeof ends[0].ipv4);
    memcpy(ends[0].ipv6, responder->ipv6, sizeof ends[0].ipv6);
    ends[1] = *(const struct frame_end *)frame_partner(&lane->frame, place);
    if (!responder_on_link(responder, &ends[1]))
        memcpy(ends[1].mac, responder->gateway_mac, sizeof ends[1].mac);
    port_responder_unlock(lane->port);
}

/* Resolve the gateway's MAC address, if a partner is reached through the gateway by sent frames or
 * answers; return -EAGAIN until the gateway has replied. */
static int find_gateway(struct dpdk_lane *lane, int64_t now_ns, struct err *err)
{
    const struct lane_request *request = &lane->frame.lane.request;
    struct transport_port *port = lane->port;
    struct arp_nd_responder *responder = port_responder_lock(port);
    uint32_t count =
        request->send_count + (lane->frame.prober.answers ? request->receive_count : 0);
    uint8_t frame[RESPONDER_FRAME_MAX];
    uint32_t length, direct = 0;
    bool found;

    while (direct < count && responder_on_link(responder, frame_partner(&lane->frame, direct)))
        direct++;
    found = responder->gateway_known || direct == count;
    length = found ? 0 : responder_request(responder, frame);
    port_responder_unlock(port);
    if (found)
        return 0;
    if (now_ns - lane->connecting_ns > GATEWAY_NS)
        return err_set(err, -EHOSTUNREACH, "%s: the gateway %s does not answer within 5 s",
                       port->conf->name, port->conf->gateway);
    if (now_ns - lane->asked_ns >= ASK_NS) {
        queue_send(lane->queue, frame, length);
        lane->asked_ns = now_ns;
    }
    return -EAGAIN;
}

/* --- several addresses, and frames to all ------------------------------------------------------*/

static int learn_addresses(struct dpdk_lane *lane, int64_t now_ns)
{
    const struct phase *phase = lane->frame.lane.request.phase;
    const struct dpdk_options *options = dpdk_options(phase);
    struct learning *learning = &lane->learning;
    uint16_t rank = (uint16_t)lane->frame.lane.request.rank;
    uint8_t frame[RESPONDER_FRAME_MAX];
    struct frame_end ends[2];
    uint32_t due, length, sent = 0;

    if (options->addresses <= 1 || phase->traffic == TRAFFIC_PROBE)
        return 0;
    if (learning->until_ns == 0) {
        pace_init(&learning->pace, options->learning_rate,
                  1 + (uint32_t)(options->learning_rate * CATCH_UP_S), now_ns);
        learning->until_ns =
            now_ns + (int64_t)(options->addresses * 1e9 / options->learning_rate) + SETTLE_NS;
        learning->next = lane->frame.lane.request.receive_count > 0 && lane->queue->number == 0
                             ? 0
                             : options->addresses;
    }
    due = learning->next < options->addresses
              ? pace_allow(&learning->pace, now_ns, 1, options->addresses - learning->next)
              : 0; /* a pace without frames left would give up due ones */
    if (due > 0)
        find_ends(lane, lane->frame.lane.request.send_count, ends); /* the test port */
    for (; sent < due; sent++, learning->next++) {
        length = responder_learning(port_responder_lock(lane->port), frame, ends[1].mac);
        port_responder_unlock(lane->port);
        address_write(frame + FRAME_MAC, rank, options->address_first + learning->next);
        if (!queue_send(lane->queue, frame, length))
            break; /* the device is full */
    }
    pace_spend(&learning->pace, sent);
    /* A late sender keeps to the rate, and ends later. */
    if (learning->next < options->addresses && now_ns + SETTLE_NS > learning->until_ns)
        learning->until_ns = now_ns + SETTLE_NS;
    if (now_ns >= learning->until_ns)
        return 0;
    return sent < due ? -EAGAIN : -EINPROGRESS; /* a device that remains full is not waited for */
}

/* --- prepare -----------------------------------------------------------------------------------*/

/* Return whether a device pads frames below 64 bytes, as a MAC does; a software device does not.
 */
static bool pads(const struct transport_port *port)
{
    static const char *const software[] = {"net_memif", "net_ring", "net_null"};

    for (size_t i = 0; i < RTE_DIM(software); i++)
        if (strcmp(port->driver, software[i]) == 0)
            return false;
    return !port->kernel || port->iface.ip.has_wire;
}

/* Check the options of a phase, and set the port to receive frames to any address if they require
 * it. */
static int check_options(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    const struct dpdk_options *options = dpdk_options(phase);
    struct transport_port *port = request->port;
    const struct ip_port *ip = &port->iface.ip;
    bool several = options->addresses > 1, to_all = options->destination != DESTINATION_PORT;
    const char *what = NULL;

    if (options->frame.udp_sources > 1 && options->header == HEADER_L2)
        what = "several udp_sources need a UDP header: set header to ipv4-udp or ipv6-udp";
    else if (options->header == HEADER_IPV4_UDP && !port->responder.has_ipv4)
        what = "ipv4-udp needs an IPv4 address on this port: set ipv4";
    else if (options->header == HEADER_IPV6_UDP && !port->responder.has_ipv6)
        what = "ipv6-udp needs an IPv6 address on this port: set ipv6";
    else if (several && request->ranks > ADDRESSES_RANKS_MAX)
        what = "several addresses per port are limited to 4096 ranks: set addresses: 1, or use "
               "fewer ranks";
    else if (to_all && (options->header != HEADER_L2 || several))
        what = "destination broadcast and multicast need header: l2 and addresses: 1";
    else if (to_all && (port->queue_count > 1 || request->ranks >= FRAME_RANK_ALL))
        what = "destination broadcast and multicast need queues: 1, and at most 65535 ranks";
    for (uint32_t i = 0; options->undersize && i < phase->size_count; i++)
        if (phase->sizes[i] < FRAME_SIZE_MIN && pads(port))
            what = "frames below 64 bytes can't be sent by this port, because its NIC pads them: "
                   "remove undersize";
    if (what != NULL)
        return err_set(err, -EINVAL, "%s: %s", port->conf->name, what);
    /* AF_PACKET restores a removed tag, AF_XDP cannot. */
    if (options->vlan && strcmp(port->driver, "net_af_xdp") == 0 &&
        (ethtool_number(ip->netlink, ip->iface, ETHTOOL_GFLAGS) & ETH_FLAG_RXVLAN) != 0)
        return err_set(err, -ENOTSUP,
                       "%s: AF_XDP does not see VLAN tags that '%s' removes from its frames: use "
                       "'ethtool -K %s rxvlan off' (and txvlan off at the far end of a veth), or "
                       "driver af_packet",
                       port->conf->name, ip->iface, ip->iface);
    return several || to_all ? port_take_all(port, err) : 0;
}

static void announce(struct port_queue *queue, int64_t now_ns)
{
    uint8_t frame[RESPONDER_FRAME_MAX];
    uint32_t length = responder_announcement(port_responder_lock(queue->port), frame);

    port_responder_unlock(queue->port);
    queue_send(queue, frame, length);
    atomic_store_explicit(&queue->port->announced_ns, now_ns, memory_order_relaxed);
}

/* Repeat the announcement of the port's address when it is due, on queue 0 only; return the time of
 * the next one. CLOCK_NEVER: another queue, or not announced yet. */
static int64_t announce_again(struct port_queue *queue, int64_t now_ns)
{
    int64_t announced_ns = atomic_load_explicit(&queue->port->announced_ns, memory_order_relaxed);

    if (queue->number != 0 || announced_ns == 0)
        return CLOCK_NEVER;
    if (now_ns - announced_ns < ANNOUNCE_NS)
        return announced_ns + ANNOUNCE_NS;
    announce(queue, now_ns);
    return now_ns + ANNOUNCE_NS;
}

static int64_t housekeep(struct frame_lane *lane, int64_t now_ns)
{
    return announce_again(dpdk_lane_of(lane)->queue, now_ns);
}

static void write_headers(const struct frame_lane *base, const struct frame_single *single,
                          struct frame_template *head)
{
    static const uint8_t all[][FRAME_MAC] = {
        [DESTINATION_BROADCAST] = FRAME_BROADCAST, [DESTINATION_MULTICAST] = FRAME_MULTICAST};
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    struct frame_end ends[2];

    find_ends(lane, single->place, ends);
    if (single->to_all)
        memcpy(ends[1].mac, all[dpdk_options(base->lane.request.phase)->destination], FRAME_MAC);
    frame_template(head, &lane->shape, ends, single->source, single->frame_bytes);
}

static void woken(struct frame_lane *lane)
{
    iface_wake_clear(&dpdk_lane_of(lane)->port->iface);
}

static bool flush(struct frame_lane *lane)
{
    return iface_push(&dpdk_lane_of(lane)->port->iface);
}

static void begin(struct frame_lane *base, int64_t now_ns);

static const struct frame_ops ops = {
    .resolve = resolve,
    .write_headers = write_headers,
    .choose_send = dpdk_choose_send,
    .choose_receive = dpdk_choose_receive,
    .begin = begin,
    .send_single = dpdk_send_single,
    .is_sound = dpdk_is_sound,
    .woken = woken,
    .housekeep = housekeep,
    .flush = flush,
};

static struct frame_conf frame_conf(const struct lane_request *request,
                                    const struct frame_shape *shape)
{
    const struct transport_port *port = request->port;
    const struct dpdk_options *options = dpdk_options(request->phase);
    uint32_t most = port->frame_max + (shape->vlan ? FRAME_VLAN : 0);
    bool undersize = options->undersize && !request->phase->messages;

    return (struct frame_conf){
        .ops = &ops,
        .name = port->conf->name,
        .header = frame_kind_name(shape->kind),
        .partner_bytes = sizeof(struct frame_end),
        .offset = shape->payload,
        .outside = FRAME_FCS,
        .least = undersize ? shape->payload + SIGNATURE_BYTES + FRAME_FCS : frame_least(shape),
        .most = RTE_MIN(most, FRAME_SIZE_MAX),
        .every_max = EVERY_MAX,
        .queues = port->queue_count,
        .to_all = options->destination != DESTINATION_PORT,
        .flushes = port->iface.ring_count > 0,
    };
}

/* Return whether received probes wake a lane's sleeping worker. Frames of the load may gather, but
 * a probe must be answered at once. Only AF_PACKET has descriptors that signal received frames.
 * With several queues one lane would consume the signals of another. */
static bool woken_by_probes(const struct dpdk_lane *lane)
{
    const struct frame_lane *frame = &lane->frame;

    return !frame->prober.pingpong && frame->lane.request.sleeps && frame->prober.answers &&
           lane->port->kernel && lane->port->queue_count == 1 && lane->port->iface.wakes &&
           strcmp(lane->port->driver, "net_af_packet") == 0;
}

static int wake_fd(const struct dpdk_lane *lane)
{
    const struct iface *iface = &lane->port->iface;

    if (!lane->frame.prober.pingpong)
        return woken_by_probes(lane) ? iface->ip.socket : -1;
    if (!lane->port->kernel || lane->queue->number >= iface->ring_count)
        return -1;
    return iface->ring_fds[lane->queue->number];
}

static int prepare(struct lane *base, struct err *err)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    const struct lane_request *request = &base->request;
    struct frame_conf conf;
    int rc;

    frame_shape(&lane->shape, dpdk_options(request->phase), request->phase->tag);
    conf = frame_conf(request, &lane->shape);
    lane->port = request->port;
    lane->queue = &request->port->queues[request->queue];
    lane->frame.forwarder.dropped = &lane->queue->forward_dropped;
    if ((rc = check_options(request, err)) != 0 ||
        (rc = frame_lane_make(&lane->frame, &conf, err)) != 0)
        return rc;
    frame_check(&lane->check, &lane->shape);
    for (uint32_t i = 0; i < lane->frame.size_count; i++)
        frame_expect(&lane->expect[i], &lane->shape, lane->frame.sizes[i].length);
    lane->frame.lane.wake_fd = wake_fd(lane);
    return 0;
}

/* --- connect -----------------------------------------------------------------------------------*/

/* Receive the waiting frames of a queue that no worker polls: for the queue's lane if it has one,
 * else to answer ARP and ND. The number of bursts is limited, because some devices always have more
 * frames (net_null). */
static void listen_between(struct port_queue *queue, int64_t now_ns)
{
    struct frame_lane *lane = queue->lane != NULL ? &queue->lane->frame : NULL;
    struct rte_mbuf *frames[IDLE_BURST];
    uint32_t count = 1;

    for (unsigned bursts = 0; bursts < IDLE_BURSTS && count > 0; bursts++) {
        if (lane != NULL) {
            count = lane->receive(lane, now_ns);
            continue;
        }
        count = rte_eth_rx_burst(queue->port->id, queue->number, frames, IDLE_BURST);
        for (uint32_t i = 0; i < count; i++)
            if (!queue_handle_control_frame(queue, frames[i]))
                queue->count->foreign++;
        rte_pktmbuf_free_bulk(frames, count);
    }
    (void)announce_again(queue, now_ns);
}

/* Connect a lane with its queue. The port's control frames get the header kind and VLAN of the
 * phase. The queue passes frames to the lane before the worker polls it, because partners may start
 * earlier than this node. */
static int connect_lane(struct lane *base, int64_t now_ns, struct err *err)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct port_queue *queue = lane->queue;
    struct port_count *count = base->request.count;
    int rc;

    pthread_mutex_lock(&lane->port->lock);
    if (!lane->announced) {
        struct arp_nd_responder *responder = port_responder_lock(lane->port);

        responder->kind = lane->shape.kind;
        responder->vlan = lane->shape.vlan;
        responder->vlan_tci = lane->shape.vlan_tci;
        port_responder_unlock(lane->port);
        if (queue->number == 0)
            announce(queue, now_ns);
        lane->connecting_ns = now_ns;
        lane->announced = true;
    }
    listen_between(queue, now_ns);
    rc = find_gateway(lane, now_ns, err);
    if (rc == 0)
        rc = learn_addresses(lane, now_ns);
    if (rc == 0 && queue->lane != lane) {
        frame_lane_build(&lane->frame);
        dpdk_prefill(lane);
        count->foreign += queue->idle.foreign;
        count->arp_nd_sent += queue->idle.arp_nd_sent;
        count->arp_nd_received += queue->idle.arp_nd_received;
        queue->idle = (struct port_count){0};
        queue->count = count;
        queue->lane = lane;
    }
    pthread_mutex_unlock(&lane->port->lock);
    return rc;
}

/* --- worker ------------------------------------------------------------------------------------*/

static void begin(struct frame_lane *base, int64_t now_ns)
{
    struct dpdk_lane *lane = dpdk_lane_of(base);

    eal_thread();
    pthread_mutex_lock(&lane->port->lock);
    iface_cork(&lane->port->iface, base->forwarder.queue == NULL);
    listen_between(lane->queue, now_ns); /* a late worker finds frames from its partners */
    lane->started = true;
    pthread_mutex_unlock(&lane->port->lock);
    if (woken_by_probes(lane))
        iface_wake_by(&lane->port->iface, base->tags,
                      lane->shape.payload + (uint32_t)offsetof(struct signature, tag),
                      lane->shape.vlan);
}

static void idle(struct transport_port *port, int64_t now_ns)
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

/* Read the metrics of a flow; with several addresses also the number of learning frames that were
 * not sent in time. */
static void read_flow(struct lane *base, const struct lane_flow *flow, struct flow_reading *reading)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;

    frame_lane_read_flow(base, flow, reading);
    if (reading->metric_count == 0 && flow->dst == base->request.rank &&
        dpdk_options(base->request.phase)->addresses > 1)
        reading->metrics[reading->metric_count++] =
            (struct flow_metric){"learning_late", (double)lane->learning.pace.given_up};
}

static void destroy(struct lane *base)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct forwarder *forwarder = &lane->frame.forwarder;
    struct port_queue *queue = lane->queue;

    /* The lane's worker has released it; a worker that visits the queue may still receive for
     * it. */
    pthread_mutex_lock(&lane->port->lock);
    for (; forwarder->head != forwarder->tail; forwarder->head++, ++*forwarder->dropped)
        rte_pktmbuf_free(forwarder->queue[forwarder->head % FRAME_FORWARD_QUEUE].frame);
    if (queue->lane == lane) {
        queue->lane = NULL;
        queue->count = &queue->idle;
    }
    pthread_mutex_unlock(&lane->port->lock);
    frame_lane_free(&lane->frame);
}

/* --- the table ---------------------------------------------------------------------------------*/

extern const struct transport transport_dpdk;

const struct transport transport_dpdk = {
    .name = "dpdk",
    .capabilities = TRANSPORT_FRAMES | TRANSPORT_TAKES_DEVICE,
    .options = &dpdk_option_table,
    .port_bytes = sizeof(struct transport_port),
    .lane_bytes = sizeof(struct dpdk_lane),
    .open = port_open,
    .facts = port_facts,
    .prepare = prepare,
    .connect = connect_lane,
    .poll = frame_lane_poll,
    .account = frame_lane_account,
    .idle = idle,
    .read_flow = read_flow,
    .destroy = destroy,
    .close = port_close,
};
