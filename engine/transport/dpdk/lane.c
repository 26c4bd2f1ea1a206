/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The dpdk transport: raw Ethernet frames, run to completion.
 *
 *     frame, arp_nd_responder                frames, ARP and neighbour discovery: pure functions
 *     eal, iface, isolate, port_device       DPDK, the kernel's interface, a device and its queues
 *     port, port_queue, arrival              a port: facts, control frames, clock
 *     lane                                   a phase: a lane of frames (traffic/frame_lane.h)
 *     hot                                    its hot path
 */
#include "dpdk_lane.h"

#include "eal.h"

#include <errno.h>
#include <stdlib.h>

#define SETTLE_NS (200 * NS_PER_MS) /* a switch's processor may be behind */
#define CATCH_UP_S 0.005            /* more at once would exceed the rate */
#define ASK_NS (200 * NS_PER_MS)
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
        return err_set(err, -EINVAL, "%s: rank %u has no address of a dpdk port", name, rank);
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

static void replace_by_all(enum frame_destination destination, struct frame_end *end)
{
    static const uint8_t macs[][FRAME_MAC] = {
        [DESTINATION_BROADCAST] = FRAME_BROADCAST, [DESTINATION_MULTICAST] = FRAME_MULTICAST};

    if (destination == DESTINATION_PORT)
        return;
    memcpy(end->mac, macs[destination], sizeof end->mac);
    end->rank = FRAME_RANK_ALL;
}

/* Whether a partner is reached through the gateway, for sent frames or for answers. The
 * responder is locked. */
static bool needs_gateway(const struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->frame.lane.request;
    uint32_t count =
        request->send_count + (lane->frame.prober.answers ? request->receive_count : 0);
    uint32_t i = 0;

    while (i < count && responder_on_link(&lane->port->responder, dpdk_partner(lane, i)))
        i++;
    return i < count;
}

static int find_gateway(struct dpdk_lane *lane, int64_t now_ns, struct err *err)
{
    struct transport_port *port = lane->port;
    struct arp_nd_responder *responder = port_responder_lock(port);
    bool found = responder->gateway_known || !needs_gateway(lane);
    uint8_t frame[RESPONDER_FRAME_MAX];
    uint32_t length = found ? 0 : responder_request(responder, frame);

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

static int refuse(const struct dpdk_lane *lane, struct err *err, const char *what)
{
    return err_set(err, -EINVAL, "%s: %s", lane->port->conf->name, what);
}

static int prepare_addresses(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->frame.lane.request;
    const struct dpdk_options *options = dpdk_options(request->phase);
    struct transport_port *port = lane->port;
    bool to_all = options->destination != DESTINATION_PORT;

    if (options->addresses <= 1 && !to_all)
        return 0;
    if (port->conf->shared)
        return refuse(lane, err, "it is shared: it has one address, and sends no frames to all");
    if (options->addresses > 1 && request->ranks > ADDRESSES_RANKS_MAX)
        return refuse(lane, err, "several addresses a port are for 4096 ranks at most");
    if (to_all && (options->header != HEADER_L2 || options->addresses > 1))
        return refuse(lane, err, "frames to all ports have header l2, and ports one address");
    if (to_all && (port->queue_count > 1 || request->ranks >= FRAME_RANK_ALL))
        return refuse(lane, err,
                      "frames to all ports are sent by one queue, to 65534 others at most");
    if (port->kernel)
        return iface_promiscuous(&port->iface, err);
    /* A device without these modes (null, ring) takes every frame anyway. */
    (void)rte_eth_promiscuous_enable(port->id);
    (void)rte_eth_allmulticast_enable(port->id);
    return 0;
}

/* False: the device is full. */
static bool send_learning(struct dpdk_lane *lane, uint32_t number, const uint8_t to[FRAME_MAC])
{
    const struct dpdk_options *options = dpdk_options(lane->frame.lane.request.phase);
    uint8_t frame[RESPONDER_FRAME_MAX];
    uint32_t length = responder_learning(port_responder_lock(lane->port), frame, to);

    port_responder_unlock(lane->port);
    address_write(frame + FRAME_MAC, options->address_block,
                  (uint16_t)lane->frame.lane.request.rank, options->address_first + number);
    return queue_send(lane->queue, frame, length);
}

static int learn_addresses(struct dpdk_lane *lane, int64_t now_ns)
{
    const struct phase *phase = lane->frame.lane.request.phase;
    const struct dpdk_options *options = dpdk_options(phase);
    struct learning *learning = &lane->learning;
    struct frame_end ends[2];
    uint32_t due, sent = 0;

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
        dpdk_ends(lane, lane->frame.lane.request.send_count, ends); /* the test port */
    while (sent < due && send_learning(lane, learning->next, ends[1].mac)) {
        learning->next++;
        sent++;
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

static int check_options(const struct lane_request *request, struct err *err)
{
    const struct dpdk_options *options = dpdk_options(request->phase);
    const struct transport_port *port = request->port;
    const char *what = NULL;

    if (options->frame.udp_sources > (options->header == HEADER_L2 ? 1 : FRAME_UDP_SOURCES_MAX))
        what = "a flow has 1 to 16384 UDP source ports, and l2 has none";
    else if (options->vlan && options->vlan_id > 4094)
        what = "VLAN ids end at 4094";
    else if (options->header != HEADER_L2 && options->ttl == 0)
        what = "a ttl of 0 goes nowhere: 1 at least";
    else if (options->header == HEADER_IPV4_UDP && !port->responder.has_ipv4)
        what = "ipv4-udp needs an IPv4 address on this port: set ipv4";
    else if (options->header == HEADER_IPV6_UDP && !port->responder.has_ipv6)
        what = "ipv6-udp needs an IPv6 address on this port: set ipv6";
    if (what != NULL)
        return err_set(err, -EINVAL, "%s: %s", port->conf->name, what);
    /* AF_PACKET restores a removed tag, AF_XDP can't. */
    if (options->vlan && port->kernel && port->iface.vlan_offloaded &&
        strcmp(port->driver, "net_af_xdp") == 0)
        return err_set(err, -ENOTSUP,
                       "%s: AF_XDP does not see VLAN tags that '%s' takes out of its frames: "
                       "'ethtool -K %s rxvlan off' (and txvlan off at the far end of a veth), or "
                       "driver af_packet",
                       port->conf->name, port->iface.name, port->iface.name);
    return 0;
}

/* Checks the frame size: a MAC pads short frames; a software device passes them unchanged. */
static int check_padding(const struct transport_port *port, struct err *err)
{
    static const char *const software[] = {"net_memif", "net_ring", "net_null"};

    if (port->kernel)
        return !port->iface.on_bus ? 0
                                   : err_set(err, -ENOTSUP,
                                             "%s: frames below 64 bytes are not possible on this "
                                             "port: the NIC of '%s' pads them",
                                             port->conf->name, port->iface.name);
    for (size_t i = 0; i < RTE_DIM(software); i++)
        if (strcmp(port->driver, software[i]) == 0)
            return 0;
    return err_set(err, -ENOTSUP,
                   "%s: frames below 64 bytes are not possible on this port: a NIC of driver %s "
                   "pads them",
                   port->conf->name, port->driver);
}

static int check_size(const struct frame_lane *base, uint32_t size, struct err *err)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    const struct transport_port *port = lane->port;
    bool undersize = dpdk_options(base->lane.request.phase)->undersize && size < FRAME_SIZE_MIN;
    uint32_t least =
        undersize ? lane->shape.payload + SIGNATURE_BYTES + FRAME_FCS : base->conf.least;

    if (size < least)
        return err_set(err, -EINVAL, "%s: %s frames%s have %u bytes at least, not %u",
                       port->conf->name, frame_kind_name(lane->shape.kind),
                       lane->shape.vlan ? " with a VLAN tag" : "", least, size);
    if (size > base->conf.most)
        return err_set(err, -EINVAL, "%s: frames have %u bytes at most here, not %u: %s",
                       port->conf->name, base->conf.most, size,
                       port->kernel ? "the interface's MTU decides" : "the device decides");
    return undersize ? check_padding(port, err) : 0;
}

static void write_template(const struct frame_lane *base, uint32_t place, uint16_t source,
                           const struct frame_size *size, struct frame_template *template)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    struct frame_end ends[2];

    dpdk_ends(lane, place, ends);
    replace_by_all(dpdk_options(base->lane.request.phase)->destination, &ends[1]);
    frame_template(template, &lane->shape, ends, source, size->frame_bytes);
}

static int64_t announce_again(struct frame_lane *base, int64_t now_ns)
{
    return queue_announce_again(dpdk_lane_of(base)->queue, now_ns);
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
    .check_size = check_size,
    .resolve = resolve,
    .write_template = write_template,
    .choose_send = dpdk_choose_send,
    .choose_receive = dpdk_choose_receive,
    .begin = begin,
    .send_single = dpdk_send_single,
    .is_sound = dpdk_is_sound,
    .arrived = dpdk_arrived,
    .woken = woken,
    .housekeep = announce_again,
    .flush = flush,
};

static struct frame_conf frame_conf(const struct lane_request *request,
                                    const struct frame_shape *shape)
{
    const struct transport_port *port = request->port;
    const struct dpdk_options *options = dpdk_options(request->phase);
    uint32_t most = port->frame_max + (shape->vlan ? FRAME_VLAN : 0);

    return (struct frame_conf){
        .ops = &ops,
        .name = port->conf->name,
        .header = frame_kind_name(shape->kind),
        .partner_bytes = sizeof(struct frame_end),
        .clock = port->arrival.runs ? " by the device's clock" : NULL,
        .offset = shape->payload,
        .outside = FRAME_FCS,
        .least = frame_least(shape),
        .most = RTE_MIN(most, FRAME_SIZE_MAX),
        .every_max = EVERY_MAX,
        .queues = port->queue_count,
        .to_all = options->destination != DESTINATION_PORT,
        .flushes = port->iface.ring_count > 0,
    };
}

/* Whether the lane wakes for probes. A stream's frames may gather; a receiver of one message
 * needs it at once, and so does a probe. Only AF_PACKET has descriptors that signal. With
 * several queues one lane would take another's signals. */
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
        return woken_by_probes(lane) ? iface->packet_fd : -1;
    if (!lane->port->kernel || lane->queue->number >= iface->ring_count)
        return -1;
    return iface->ring_fds[lane->queue->number];
}

static int make(struct dpdk_lane *lane, const struct frame_conf *conf, struct err *err)
{
    const struct lane_request *request = &lane->frame.lane.request;
    int rc;

    if ((rc = check_options(request, err)) != 0 || (rc = prepare_addresses(lane, err)) != 0 ||
        (rc = frame_lane_make(&lane->frame, conf, err)) != 0)
        return rc;
    frame_check(&lane->check, &lane->shape);
    for (uint32_t i = 0; i < lane->frame.size_count; i++)
        frame_expect(&lane->expect[i], &lane->shape, lane->frame.sizes[i].length);
    lane->frame.lane.wake_fd = wake_fd(lane);
    return 0;
}

static int prepare(struct lane **out, const struct lane_request *request, struct err *err)
{
    struct dpdk_lane *lane = frame_lane_new(sizeof *lane, request);
    struct frame_conf conf;
    int rc;

    if (lane == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", request->port->conf->name);
    frame_shape(&lane->shape, dpdk_options(request->phase), request->phase->tag);
    conf = frame_conf(request, &lane->shape);
    lane->port = request->port;
    lane->queue = &request->port->queues[request->queue];
    lane->frame.forwarder.dropped = &lane->queue->forward_dropped;
    if ((rc = make(lane, &conf, err)) != 0) {
        frame_lane_free(&lane->frame);
        return rc;
    }
    *out = &lane->frame.lane;
    return 0;
}

/* --- connect -----------------------------------------------------------------------------------*/

/* Sets the header kind and VLAN of the port's control frames as in this phase. */
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

/* Receives waiting frames while no worker polls the queue: for its lane, if one is connected. */
static void listen_between(struct port_queue *queue, int64_t now_ns)
{
    struct dpdk_lane *lane = queue->lane;

    if (lane == NULL)
        queue_receive_idle(queue);
    /* Bounded as queue_receive_idle is. */
    for (unsigned bursts = 0; lane != NULL && bursts < QUEUE_IDLE_BURSTS; bursts++)
        if (lane->frame.receive(&lane->frame, now_ns) == 0)
            break;
    (void)queue_announce_again(queue, now_ns);
}

/* Connects the queue with the lane, even before its worker is there: partners may start earlier
 * than this node. */
static void build(struct dpdk_lane *lane)
{
    struct port_queue *queue = lane->queue;
    struct port_count *count = lane->frame.lane.request.count;

    frame_lane_build(&lane->frame);
    dpdk_prefill(lane);
    count->foreign += queue->idle.foreign;
    count->arp_nd_sent += queue->idle.arp_nd_sent;
    count->arp_nd_received += queue->idle.arp_nd_received;
    queue->idle = (struct port_count){0};
    queue->count = count;
    queue->lane = lane;
}

static int connect_lane(struct lane *base, int64_t now_ns, struct err *err)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct port_queue *queue = lane->queue;
    int rc;

    pthread_mutex_lock(&lane->port->lock);
    if (!lane->announced)
        introduce(lane, now_ns);
    listen_between(queue, now_ns);
    rc = find_gateway(lane, now_ns, err);
    if (rc == 0)
        rc = learn_addresses(lane, now_ns);
    if (rc == 0 && queue->lane != lane)
        build(lane);
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

/* With several addresses, also reports learning frames that were late. */
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
    .capabilities =
        TRANSPORT_FRAMES | TRANSPORT_PINGPONG | TRANSPORT_TAKES_DEVICE | TRANSPORT_BURSTS,
    .options = &dpdk_option_table,
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
