/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include "adaptive_poll.h"
#include "eal.h"
#include "forward.h"
#include "messages.h"
#include "messages_receive.h"
#include "messages_send.h"
#include "partner.h"
#include "prefill.h"
#include "prober.h"
#include "rx.h"
#include "steps.h"
#include "tx.h"

#include <assert.h>
#include <errno.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <stdlib.h>

#define RECEIVE_BURST 32u /* at least: vector drivers return nothing for less than 4, some 32 */
#define ASK_NS (200 * NS_PER_MS)
#define GATEWAY_NS (5 * NS_PER_S)

static int refuse(struct err *err, const struct lane_request *request, const char *what)
{
    return err_set(err, -EINVAL, "%s: %s", request->port->conf->name, what);
}

static int check_size(const struct dpdk_lane *lane, const struct lane_request *request,
                      uint32_t size, struct err *err)
{
    const struct transport_port *port = request->port;
    uint32_t least = frame_least(&lane->shape);
    uint32_t most = port->frame_max + (lane->shape.vlan ? FRAME_VLAN : 0);

    if (size < least)
        return err_set(err, -EINVAL, "%s: %s frames%s have %u bytes at least, not %u",
                       port->conf->name, frame_kind_name(lane->shape.kind),
                       lane->shape.vlan ? " with a VLAN tag" : "", least, size);
    if (size > most || size > FRAME_SIZE_MAX)
        return err_set(err, -EINVAL, "%s: frames have %u bytes at most here, not %u: %s",
                       port->conf->name, most < FRAME_SIZE_MAX ? most : FRAME_SIZE_MAX, size,
                       port->kernel ? "the interface's MTU decides" : "the device decides");
    return 0;
}

static int check_options(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    const struct dpdk_options *options = &phase->dpdk;
    const struct guest *guest = &request->port->guest;

    if (phase->size_count == 0 || phase->size_count > TRANSPORT_SIZES_MAX)
        return refuse(err, request, "a phase has 1 to 64 frame sizes");
    if (options->burst == 0 || options->burst > PORT_BURST_MAX)
        return refuse(err, request, "a burst has 1 to 128 frames");
    if (options->udp_sources > (options->header == HEADER_L2 ? 1 : FRAME_UDP_SOURCES_MAX))
        return refuse(err, request, "a flow has 1 to 16384 UDP source ports, and l2 has none");
    if (options->vlan && options->vlan_id > 4094)
        return refuse(err, request, "VLAN ids end at 4094");
    if (options->header != HEADER_L2 && options->ttl == 0)
        return refuse(err, request, "a ttl of 0 goes nowhere: 1 at least");
    if (options->header == HEADER_IPV4_UDP && !guest->has_ipv4)
        return refuse(err, request, "ipv4-udp needs an IPv4 address on this port: set ipv4");
    if (options->header == HEADER_IPV6_UDP && !guest->has_ipv6)
        return refuse(err, request, "ipv6-udp needs an IPv6 address on this port: set ipv6");
    if (request->ranks > PATTERN_RANKS_MAX)
        return refuse(err, request, "dpdk counts 65536 ranks at most");
    if (request->receive_count >= PATTERN_RANKS_MAX)
        return refuse(err, request, "a port receives one flow from each other rank at most");
    if (!phase->load.unlimited && phase->load.rate_bps <= 0 && phase->load.rate_fps <= 0)
        return refuse(err, request, "the phase has no load");
    return 0;
}

/* AF_PACKET puts an offloaded tag back, AF_XDP can't. */
static int check_vlan(const struct lane_request *request, struct err *err)
{
    const struct transport_port *port = request->port;

    if (!request->phase->dpdk.vlan || !port->kernel || !port->iface.vlan_offloaded ||
        strcmp(port->driver, "net_af_xdp") != 0)
        return 0;
    return err_set(err, -ENOTSUP,
                   "%s: AF_XDP does not see VLAN tags that '%s' takes out of its frames: 'ethtool "
                   "-K %s rxvlan off' (and txvlan off at the far end of a veth), or driver "
                   "af_packet",
                   port->conf->name, port->iface.name, port->iface.name);
}

/* A forwarder sends on what one flow brings, and nothing else. */
static int check_roles(const struct lane_request *request, struct err *err)
{
    uint32_t forwards = 0;

    for (uint32_t i = 0; i < request->send_count; i++)
        forwards += request->sends[i].role == PATTERN_FORWARD;
    if (forwards > 0 && (request->send_count != 1 || request->receive_count != 1))
        return refuse(err, request, "a forwarding port receives one flow and sends one");
    return 0;
}

static bool forwards(const struct lane_request *request)
{
    return request->send_count == 1 && request->sends[0].role == PATTERN_FORWARD;
}

/* Reads the partner's end; the partner must take the phase's frames. */
static int check_partner(const struct dpdk_lane *lane, const struct lane_flow *flow, uint32_t rank,
                         struct frame_end *end, struct err *err)
{
    uint32_t frame_max = 0;
    int rc = partner_read(lane, flow, rank, end, &frame_max, err);

    for (uint32_t i = 0; rc == 0 && i < lane->order_count; i++) {
        uint32_t frame_bytes = lane->sizes[lane->order[i]].frame_bytes;

        if (frame_bytes > frame_max + (lane->shape.vlan ? FRAME_VLAN : 0))
            rc = err_set(err, -EINVAL,
                         "%s: its partner, rank %u, takes frames of %u bytes at most, not %u",
                         lane->port->conf->name, rank, frame_max, frame_bytes);
    }
    return rc;
}

/* One of the lane's different sizes, by its place; it is made where there is none of these bytes.
 */
static uint8_t size_place(struct dpdk_lane *lane, uint32_t frame_bytes)
{
    uint32_t length = frame_bytes - FRAME_FCS;
    uint8_t *known = &lane->size_of_length[length];

    if (*known == LANE_NO_SIZE) {
        *known = (uint8_t)lane->size_count++;
        lane->sizes[*known] = (struct lane_size){
            .frame_bytes = frame_bytes,
            .payload_bytes = length - lane->shape.payload,
            .length = (uint16_t)length,
        };
        frame_expect(&lane->sizes[*known].expect, &lane->shape, length);
    }
    return *known;
}

/* Whether messages can go there and back is asked with the frames that will carry them. Where the
 * partners take different ones, with the least; but both ends know all that may come. */
static int choose_probe_sizes(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    uint32_t tag = lane->shape.vlan ? FRAME_VLAN : 0, own = lane->port->frame_max;
    uint8_t least = size_place(lane, frame_least(&lane->shape)), chosen = least;

    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        bool source = i < request->send_count;
        const struct lane_flow *flow =
            source ? &request->sends[i] : &request->receives[i - request->send_count];
        uint32_t frame_max = 0;
        struct frame_end end;
        int rc = partner_read(lane, flow, source ? flow->dst : flow->src, &end, &frame_max, err);

        if (rc != 0)
            return rc;
        if (lane->size_count == TRANSPORT_SIZES_MAX)
            break;
        frame_max = RTE_MIN(RTE_MIN(frame_max, own) + tag, FRAME_SIZE_MAX);
        if (size_place(lane, frame_max) != chosen)
            chosen = i == 0 ? size_place(lane, frame_max) : least;
    }
    lane->order[0] = chosen;
    lane->order_count = 1;
    return 0;
}

/* The phase's list of sizes becomes its different sizes and an order. */
static int choose_sizes(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    int rc = 0;

    memset(lane->size_of_length, LANE_NO_SIZE, sizeof lane->size_of_length);
    if (phase->messages)
        return choose_probe_sizes(lane, err);
    lane->order_count = phase->size_count;
    for (uint32_t i = 0; i < phase->size_count; i++) {
        if ((rc = check_size(lane, request, phase->sizes[i], err)) != 0)
            return rc;
        lane->order[i] = size_place(lane, phase->sizes[i]);
    }
    return 0;
}

/* Frames that a flow sends until it has moved `bytes` of payload, in whole frames. */
static uint64_t frames_for(const struct dpdk_lane *lane, uint64_t bytes)
{
    uint64_t round = 0, frames;

    assert(lane->order_count > 0);
    for (uint32_t i = 0; i < lane->order_count; i++)
        round += lane->sizes[lane->order[i]].payload_bytes;
    frames = bytes / round * lane->order_count;
    bytes %= round;
    for (uint32_t i = 0; bytes > 0; i++) {
        uint32_t payload = lane->sizes[lane->order[i]].payload_bytes;

        bytes -= payload < bytes ? payload : bytes;
        frames++;
    }
    return frames;
}

/* Frames that each flow sends in all; UINT64_MAX: until the stop. Every stream begins the list of
 * sizes anew, so with several sizes each stream's part is rounded up. */
static uint64_t flow_quota(const struct dpdk_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    uint64_t sources = lane->receiver.sources;

    if (phase->traffic == TRAFFIC_PROBE)
        return phase->probes;
    if (phase->traffic != TRAFFIC_TRANSFER)
        return UINT64_MAX;
    if (lane->order_count == 1)
        return frames_for(lane, phase->transfer_bytes);
    return frames_for(lane, (phase->transfer_bytes + sources - 1) / sources) * sources;
}

static uint64_t times(uint64_t quota, uint64_t flows)
{
    return quota == UINT64_MAX ? UINT64_MAX : quota * flows;
}

/* splitmix64: seeds are the configuration's, so the order is the same in every run. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void swap(struct sender_stream *a, struct sender_stream *b)
{
    struct sender_stream kept = *a;

    *a = *b;
    *b = kept;
}

/* Fisher-Yates. */
static void shuffle(struct sender *sender, uint64_t *state)
{
    for (uint32_t i = sender->count; i > 1; i--)
        swap(&sender->streams[i - 1],
             &sender->streams[(uint32_t)(((draw(state) >> 32) * i) >> 32)]);
}

/* Frames that do not divide by a flow's streams: those with one more go first in each round, so
 * that the last round, cut short, is theirs. */
static void put_longer_first(struct dpdk_lane *lane)
{
    struct sender *sender = &lane->sender;
    uint32_t sources = lane->receiver.sources, front = 0;
    uint64_t quota = flow_quota(lane);

    if (quota == UINT64_MAX)
        return;
    for (uint32_t i = 0; i < sender->count; i++)
        if (sender->streams[i].place % sources < quota % sources)
            swap(&sender->streams[front++], &sender->streams[i]);
}

/* The load in the pace's cost (bits at layer 1, or frames) a second; 0: unlimited. */
static double choose_rate(struct dpdk_lane *lane)
{
    const struct load *load = &lane->lane.request.phase->load;
    double rate = load->unlimited ? 0 : load->rate_bps > 0 ? load->rate_bps : load->rate_fps;

    if (lane->lane.request.share > 0)
        rate *= lane->lane.request.share;
    for (uint32_t i = 0; i < lane->size_count; i++)
        lane->sizes[i].cost = load->unlimited || load->rate_bps <= 0
                                  ? 1
                                  : 8 * (lane->sizes[i].frame_bytes + FRAME_OVERHEAD_L1);
    return rate;
}

/* The schedule begins at a seeded random moment of its first interval, so that the senders of a
 * phase do not march in step. */
static void schedule(struct dpdk_lane *lane, uint64_t *state)
{
    const struct phase *phase = lane->lane.request.phase;
    struct sender *sender = &lane->sender;
    double rate = choose_rate(lane);
    uint64_t sum = 0;
    double part = (double)(draw(state) >> 11) / (double)(UINT64_C(1) << 53);

    assert(lane->order_count > 0);
    for (uint32_t i = 0; i < lane->order_count; i++)
        sum += lane->sizes[lane->order[i]].cost;
    sender->cost = (uint32_t)(sum / lane->order_count);
    pace_init(&sender->pace, rate, phase->dpdk.catch_up,
              phase->start_ns + (rate > 0 ? (int64_t)(part * sender->cost / rate * 1e9) : 0));
    pace_dither(&sender->pace, phase->dpdk.dither, sender->cost, draw(state));
}

static int make_sender(struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct sender *sender = &lane->sender;
    uint32_t sources = lane->receiver.sources;

    sender->count = request->send_count * sources;
    sender->left = times(flow_quota(lane), request->send_count);
    if (sender->count == 0)
        return 0;
    sender->streams =
        aligned_alloc(_Alignof(struct sender_stream), sender->count * sizeof *sender->streams);
    if (lane->size_count > 1)
        sender->templates =
            aligned_alloc(_Alignof(struct frame_template),
                          (size_t)sender->count * lane->size_count * sizeof *sender->templates);
    if (sender->streams == NULL || (lane->size_count > 1 && sender->templates == NULL))
        return -ENOMEM;
    for (uint32_t i = 0; i < sender->count; i++)
        sender->streams[i] =
            (struct sender_stream){.side = request->sends[i / sources].side, .place = i};
    return 0;
}

/* Of so many flows every frame is measured; of more some are (their buckets lie in no near cache,
 * and a frame would cost twice as much), beyond the last none. */
#define TIMES_EVERY_MAX 8u
#define TIMES_FLOWS_MAX 4096u

static int make_times(struct dpdk_lane *lane)
{
    struct receiver *receiver = &lane->receiver;
    size_t streams = (size_t)receiver->count * receiver->sources;

    if (!lane->lane.request.phase->latency.stamps || receiver->count == 0 ||
        receiver->count > TIMES_FLOWS_MAX)
        return 0;
    receiver->sampled = receiver->count > TIMES_EVERY_MAX;
    receiver->times = aligned_alloc(_Alignof(struct times), streams * sizeof *receiver->times);
    receiver->buckets = calloc(receiver->count, sizeof *receiver->buckets);
    if (receiver->times == NULL || receiver->buckets == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < streams; i++)
        times_init(&receiver->times[i], (uint32_t)(i / receiver->sources));
    return 0;
}

static int make_receiver_tables(struct receiver *receiver)
{
    size_t streams = (size_t)receiver->count * receiver->sources;

    receiver->flow_of = calloc(PATTERN_RANKS_MAX, sizeof *receiver->flow_of);
    receiver->macs = calloc(receiver->count + 1, sizeof *receiver->macs);
    receiver->pasts = calloc(streams + 1, sizeof *receiver->pasts);
    receiver->disorders =
        aligned_alloc(_Alignof(struct disorder), (streams + 1) * sizeof *receiver->disorders);
    receiver->gaps = calloc(streams + 1, DISORDER_GAPS * sizeof *receiver->gaps);
    receiver->streams =
        aligned_alloc(_Alignof(struct receiver_stream), (streams + 1) * sizeof *receiver->streams);
    if (receiver->flow_of == NULL || receiver->macs == NULL || receiver->pasts == NULL ||
        receiver->disorders == NULL || receiver->gaps == NULL || receiver->streams == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < streams; i++)
        receiver->disorders[i] = (struct disorder){.far = &receiver->gaps[i * DISORDER_GAPS]};
    return 0;
}

#define FRAMES_SLACK 1.05 /* a gap that was refused in error is believed in 20 times its length */
#define FRAMES_PER_NS_MAX 0.15 /* 100 Gbit/s of 64-byte frames: no send queue takes more */

/* A sender keeps to its load and so to its line. A forwarder sends what has waited as fast as its
 * driver takes it. */
static double frames_per_ns(const struct dpdk_lane *lane, const struct lane_flow *flow)
{
    const struct load *load = &lane->lane.request.phase->load;
    double line_bps = (double)port_read_line_bps(&flow->partner);
    double least_bits = FRAME_SIZE_MAX * 8.0;

    if (flow->role == PATTERN_FORWARD || load->unlimited)
        return FRAMES_PER_NS_MAX;
    for (uint32_t i = 0; i < lane->size_count; i++)
        least_bits = RTE_MIN(least_bits, (lane->sizes[i].frame_bytes + FRAME_OVERHEAD_L1) * 8.0);
    if (line_bps == 0)
        line_bps = load->rate_bps > 0 ? load->rate_bps : load->rate_fps * least_bits;
    return line_bps * FRAMES_SLACK / least_bits / 1e9;
}

static int make_receiver(struct dpdk_lane *lane, struct err *err)
{
    const struct dpdk_options *options = &lane->lane.request.phase->dpdk;
    const struct lane_request *request = &lane->lane.request;
    struct receiver *receiver = &lane->receiver;
    int rc;

    receiver->count = request->receive_count;
    receiver->tag = htobe16(lane->shape.tag);
    receiver->rank = htobe16((uint16_t)request->rank);
    receiver->all = receiver->left = times(flow_quota(lane), receiver->count);
    /* Within the window a jump makes no honest frame late, and one gap may be a burst's and what a
     * late sender catches up with. */
    receiver->reach.at_once = SEQUENCE_WINDOW + options->burst + options->catch_up;
    frame_check(&receiver->check, &lane->shape);
    if ((rc = make_receiver_tables(receiver)) != 0 || (rc = make_times(lane)) != 0)
        return rc;
    for (uint32_t i = 0; i < receiver->count; i++) {
        const struct lane_flow *flow = &request->receives[i];
        struct frame_end end;

        if (flow->src >= request->ranks)
            return refuse(err, request, "a flow comes from a rank that is not there");
        if ((rc = check_partner(lane, flow, flow->src, &end, err)) != 0)
            return rc;
        memcpy(receiver->macs[i], end.mac, sizeof receiver->macs[i]);
        receiver->reach.frames_per_ns =
            RTE_MAX(receiver->reach.frames_per_ns, frames_per_ns(lane, flow));
        for (uint32_t j = 0; j < receiver->sources; j++)
            receiver->streams[(size_t)i * receiver->sources + j] =
                (struct receiver_stream){.side = flow->side};
        receiver->flow_of[flow->src] = (uint16_t)(i + 1);
    }
    return 0;
}

static int take_pool(struct dpdk_lane *lane, struct err *err)
{
    struct port_queue *queue = lane->queue;

    for (unsigned i = 0; i < PORT_POOLS; i++) {
        if (!queue->frames_taken[i]) {
            queue->frames_taken[i] = true;
            lane->pool = i;
            lane->sender.pool = queue->frames[i];
            lane->send_queue = queue->send[forwards(&lane->lane.request) ? PORT_POOLS : i];
            return 0;
        }
    }
    return err_set(err, -EBUSY, "%s: two phases are prepared already", lane->port->conf->name);
}

/* Whether all of a transfer is there is known to no queue alone. */
static int share_taken(struct dpdk_lane *lane)
{
    const struct dpdk_lane *leader = (const struct dpdk_lane *)lane->lane.request.leader;
    size_t bytes = lane->port->queue_count * sizeof *lane->taken;

    if (lane->port->queue_count == 1 || lane->receiver.all == UINT64_MAX)
        return 0;
    if (leader != NULL) {
        lane->taken = leader->taken;
        return 0;
    }
    lane->taken = aligned_alloc(_Alignof(struct lane_taken), bytes);
    if (lane->taken == NULL)
        return -ENOMEM;
    memset(lane->taken, 0, bytes);
    return 0;
}

/* In the records' words. */
static void describe(struct dpdk_lane *lane)
{
    const struct receiver *receiver = &lane->receiver;
    const char *times = receiver->times == NULL ? ""
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
    const struct phase *phase = request->phase;
    int rc;

    if ((rc = choose_sizes(lane, err)) != 0)
        return rc;
    lane->receiver.sources = phase->dpdk.udp_sources > 0 ? phase->dpdk.udp_sources : 1;
    for (uint32_t i = 0; i < request->send_count; i++) {
        struct frame_end end;

        if ((rc = check_partner(lane, &request->sends[i], request->sends[i].dst, &end, err)) != 0)
            return rc;
    }
    if ((rc = make_sender(lane)) != 0 || (rc = make_receiver(lane, err)) != 0 ||
        (rc = share_taken(lane)) != 0 || (rc = prober_make(lane)) != 0)
        return rc;
    if (forwards(request)) {
        lane->forwarder.queue = calloc(FORWARD_QUEUE, sizeof *lane->forwarder.queue);
        if (lane->forwarder.queue == NULL)
            return -ENOMEM;
        lane->responds = true;
    }
    lane->receive = receiver_variant(lane);
    describe(lane);
    return 0;
}

static int make(struct dpdk_lane *lane, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    int rc;

    frame_shape(&lane->shape, &phase->dpdk, phase->tag);
    lane->burst = phase->dpdk.burst;
    lane->receive_burst = RTE_MAX(lane->burst, RECEIVE_BURST);
    lane->send = sender_wait;
    if (phase->traffic == TRAFFIC_PINGPONG || phase->traffic == TRAFFIC_SCHEDULE) {
        lane->receive = messages_receive;
        rc = messages_make(lane, phase->traffic == TRAFFIC_SCHEDULE ? &dpdk_steps : NULL, err);
    } else {
        rc = make_streams(lane, err);
    }
    return rc != 0 ? rc : take_pool(lane, err);
}

static void destroy(struct dpdk_lane *lane)
{
    if (lane->sender.pool != NULL)
        lane->queue->frames_taken[lane->pool] = false;
    if (lane->lane.request.leader == NULL)
        free(lane->taken);
    prober_free(lane);
    messages_free(lane);
    free(lane->forwarder.queue);
    free(lane->receiver.streams);
    free(lane->receiver.times);
    free(lane->receiver.buckets);
    free(lane->receiver.pasts);
    free(lane->receiver.disorders);
    free(lane->receiver.gaps);
    free(lane->receiver.macs);
    free(lane->receiver.flow_of);
    free(lane->sender.templates);
    free(lane->sender.streams);
    free(lane);
}

int lane_prepare(struct lane **out, const struct lane_request *request, struct err *err)
{
    struct dpdk_lane *lane;
    int rc;

    if ((rc = check_options(request, err)) != 0 || (rc = check_roles(request, err)) != 0 ||
        (rc = check_vlan(request, err)) != 0)
        return rc;
    lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", request->port->conf->name);
    lane->lane.request = *request;
    lane->port = request->port;
    lane->queue = &request->port->queues[request->queue];
    lane->shape.payload = FRAME_ETHERNET;
    lane->push_ns = CLOCK_NEVER;
    lane->wake_ns = INT64_MIN;
    if ((rc = make(lane, err)) != 0) {
        destroy(lane);
        return err_set(err, rc, "%s: out of memory", request->port->conf->name);
    }
    *out = &lane->lane;
    return 0;
}

/* The first stream's frame of the first size, and fill to the greatest. */
static void build_pool(struct dpdk_lane *lane)
{
    struct prefill prefill = {.template = &lane->sender.streams[0].template,
                              .headers = lane->shape.payload + SIGNATURE_BYTES,
                              .length = lane->sizes[0].length};

    for (uint32_t i = 0; i < lane->size_count; i++)
        prefill.longest = RTE_MAX(prefill.longest, (uint32_t)lane->sizes[i].length);
    prefill_mbufs(lane->sender.pool, &prefill);
}

static void build_templates(struct dpdk_lane *lane, struct sender_stream *stream, uint32_t index)
{
    const struct lane_request *request = &lane->lane.request;
    const struct lane_flow *flow = &request->sends[index / lane->receiver.sources];
    struct frame_template *templates = lane->sender.templates;
    struct frame_end ends[2];

    partner_ends(lane, flow, flow->dst, ends);
    templates =
        templates == NULL ? &stream->template : templates + (size_t)index * lane->size_count;
    for (uint32_t i = 0; i < lane->size_count; i++)
        frame_template(&templates[i], &lane->shape, ends,
                       (uint16_t)(index % lane->receiver.sources), lane->sizes[i].frame_bytes);
    stream->template = templates[0];
    stream->base = checksum_fold(
        signature_base((const struct signature *)(stream->template.bytes + lane->shape.payload)));
}

static void build(struct dpdk_lane *lane)
{
    struct sender *sender = &lane->sender;

    for (uint32_t i = 0; i < sender->count; i++)
        build_templates(lane, &sender->streams[i], i);
    if (sender->count > 0 && lane->forwarder.queue == NULL)
        build_pool(lane);
    if (lane->messages != NULL)
        messages_build(lane);
    lane->built = true;
}

/* Whether any partner is reached through the gateway. The guest is locked. */
static bool needs_gateway(const struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    bool answers = lane->prober.answers || lane->messages != NULL;
    struct err ignored = {""};
    uint32_t frame_max;

    for (uint32_t i = 0; i < request->send_count; i++) {
        struct frame_end end = {.rank = 0};

        (void)partner_read(lane, &request->sends[i], request->sends[i].dst, &end, &frame_max,
                           &ignored);
        if (!guest_on_link(&lane->port->guest, &end))
            return true;
    }
    for (uint32_t i = 0; answers && i < request->receive_count; i++) {
        struct frame_end end = {.rank = 0};

        (void)partner_read(lane, &request->receives[i], request->receives[i].src, &end, &frame_max,
                           &ignored);
        if (!guest_on_link(&lane->port->guest, &end))
            return true;
    }
    return false;
}

static int find_gateway(struct dpdk_lane *lane, int64_t now_ns, struct err *err)
{
    struct transport_port *port = lane->port;
    struct guest *guest = port_guest_lock(port);
    bool found = guest->gateway_known || !needs_gateway(lane);
    uint8_t frame[GUEST_FRAME_MAX];
    uint32_t length = found ? 0 : guest_question(guest, frame);

    port_guest_unlock(port);
    if (found)
        return 0;
    if (now_ns - lane->settling_ns > GATEWAY_NS)
        return err_set(err, -EHOSTUNREACH, "%s: the gateway %s does not answer within 5 s",
                       port->conf->name, port->conf->gateway);
    if (now_ns - lane->asked_ns >= ASK_NS) {
        port_send_guest(lane->queue, frame, length);
        lane->asked_ns = now_ns;
    }
    return -EAGAIN;
}

/* The port speaks as this phase does: header kind and VLAN. */
static void introduce(struct dpdk_lane *lane, int64_t now_ns)
{
    struct guest *guest = port_guest_lock(lane->port);

    guest->kind = lane->shape.kind;
    guest->vlan = lane->shape.vlan;
    guest->vlan_tci = lane->shape.vlan_tci;
    port_guest_unlock(lane->port);
    if (lane->queue->number == 0)
        port_announce(lane->queue, now_ns);
    lane->settling_ns = now_ns;
    lane->announced = true;
}

/* Receives what waits while no worker polls the queue: for the lane that is armed, if one is. */
static void listen_idle(struct port_queue *queue, int64_t now_ns)
{
    struct dpdk_lane *lane = queue->active;

    if (lane != NULL && lane->started)
        return;
    if (lane == NULL)
        port_listen(queue);
    /* Bounded as port_listen is. */
    for (unsigned bursts = 0; lane != NULL && bursts < PORT_LISTEN_BURSTS; bursts++)
        if (lane->receive(lane, now_ns) == 0)
            break;
    port_stay_known(queue, now_ns);
}

/* From now on what comes on the queue is the lane's, also before its worker is there: partners may
 * be at their start when this node is not. The queue is locked. */
static void arm(struct dpdk_lane *lane)
{
    struct port_queue *queue = lane->queue;
    struct port_count *count = lane->lane.request.count;

    count->foreign += queue->idle.foreign;
    count->guest_sent += queue->idle.guest_sent;
    count->guest_received += queue->idle.guest_received;
    queue->idle = (struct port_count){0};
    queue->count = count;
    queue->active = lane;
}

int lane_settle(struct lane *base, int64_t now_ns, struct err *err)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct port_queue *queue = lane->queue;
    int rc;

    if (!queue_trylock(queue))
        return -EAGAIN;
    if (!lane->announced)
        introduce(lane, now_ns);
    listen_idle(queue, now_ns);
    rc = find_gateway(lane, now_ns, err);
    if (rc == 0 && !lane->built)
        build(lane);
    if (rc == 0 && queue->active == NULL)
        arm(lane);
    queue_unlock(queue);
    return rc;
}

/* A worker waits for another thread, which holds the queue for a few frames' time. Workers go as
 * ordinary threads do, and the main thread may go before them. */
static void lock_queue(struct port_queue *queue)
{
    while (!queue_trylock(queue))
        sched_yield();
}

/* What this queue has of a transfer that several receive. */
static void tell_taken(const struct dpdk_lane *lane)
{
    atomic_store_explicit(&lane->taken[lane->queue->number].frames,
                          lane->receiver.all - lane->receiver.left, memory_order_relaxed);
}

static bool woken_by_probes(const struct dpdk_lane *lane)
{
    /* With several queues one lane would take what tells another. */
    return lane->lane.request.sleeps && lane->prober.answers && lane->port->kernel &&
           lane->port->queue_count == 1 && lane->port->iface.wakes &&
           strcmp(lane->port->driver, "net_af_packet") == 0;
}

void lane_start(struct lane *base, int64_t now_ns)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    const struct phase *phase = base->request.phase;
    struct port_queue *queue = lane->queue;
    uint64_t state = phase->seed ^ (uint64_t)base->request.rank << 32 ^ phase->number ^
                     (uint64_t)queue->number << 48;

    eal_thread();
    lock_queue(queue);
    iface_cork(&lane->port->iface, lane->forwarder.queue == NULL);
    if (queue->active != lane)
        arm(lane);
    lane->start_ns = lane->receiver.reach.start_ns = phase->start_ns;
    listen_idle(queue, now_ns); /* a late worker finds here what its partners have sent */
    if (lane->taken != NULL)
        tell_taken(lane);
    lane->started = true;
    queue_unlock(queue);
    /* A forwarder's streams stay where the UDP source port finds them. */
    if (lane->forwarder.queue == NULL) {
        shuffle(&lane->sender, &state);
        put_longer_first(lane);
    }
    if (woken_by_probes(lane)) {
        iface_wake_by(&lane->port->iface, lane->prober.tags,
                      lane->shape.payload + (uint32_t)offsetof(struct signature, tag),
                      lane->shape.vlan);
        lane->wake_ns = 0;
    }
    if (lane->messages != NULL) {
        messages_start(lane);
    } else {
        schedule(lane, &state);
        prober_start(lane, draw(&state));
    }
    base->stop_ns = phase->stop_ns;
    lane->turn_ns = lane->start_ns;
    base->received_all = lane->receiver.left == 0;
}

/* Empties a kernel socket's ring. */
static void push(struct dpdk_lane *lane, int64_t now_ns)
{
    lane->push_ns = iface_push(&lane->port->iface) ? now_ns + LANE_PUSH_NS : CLOCK_NEVER;
}

/* It has nothing of its own to send, and nothing waits, neither here nor in the kernel. */
static bool sent_all(const struct dpdk_lane *lane)
{
    return lane->forwarder.head == lane->forwarder.tail && lane->push_ns == CLOCK_NEVER;
}

static void begin_sending(struct dpdk_lane *lane, int64_t now_ns)
{
    bool generates = lane->sender.count > 0 && lane->forwarder.queue == NULL;

    lane->lane.started_ns = now_ns;
    lane->state = generates ? LANE_SENDS : LANE_LISTENS;
    lane->send = generates ? sender_variant(lane) : sender_rest;
    if (lane->forwarder.queue != NULL)
        lane->send = forwarder_send;
    if (lane->messages != NULL) {
        lane->state = LANE_PLAYS;
        lane->send =
            lane->messages->schedule != NULL ? lane->messages->schedule->send : messages_send;
        lane->lane.sent_all = lane->messages->sends == 0;
    }
}

static void end_sending(struct dpdk_lane *lane, int64_t now_ns)
{
    int64_t end_ns = lane->lane.stop_ns < now_ns ? lane->lane.stop_ns : now_ns;

    sender_intended(lane, end_ns);
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
    bool window = phase->traffic == TRAFFIC_STREAM;
    int64_t open_ns = window ? phase->open_ns : phase->start_ns;
    int64_t close_ns = window ? phase->close_ns : CLOCK_NEVER;
    bool timing = now_ns >= open_ns && now_ns < close_ns;

    if (lane->receiver.times == NULL)
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
    int64_t announce_ns = lane->port->announced_ns + PORT_ANNOUNCE_NS;

    if (lane->state == LANE_WAITS && base->stop_ns <= lane->start_ns)
        end_sending(lane, lane->start_ns); /* ended before it began */
    if (lane->state == LANE_WAITS && now_ns >= lane->start_ns)
        begin_sending(lane, now_ns);
    if (lane->state == LANE_SENDS && now_ns >= base->stop_ns) {
        (void)lane->send(lane, base->stop_ns - 1);
        end_sending(lane, now_ns);
    }
    if (base->stopped_ns == 0 && now_ns >= base->stop_ns)
        base->stopped_ns = now_ns;
    if (lane->queue->number != 0)
        announce_ns = CLOCK_NEVER;
    else if (now_ns >= announce_ns)
        port_announce(lane->queue, now_ns);
    lane->turn_ns = now_ns >= announce_ns ? now_ns + PORT_ANNOUNCE_NS : announce_ns;
    lane->turn_ns = earlier(lane->turn_ns, time_frames(lane, now_ns));
    lane->turn_ns = earlier(lane->turn_ns, prober_turn(lane, now_ns));
    if (lane->state == LANE_WAITS && lane->start_ns < lane->turn_ns)
        lane->turn_ns = lane->start_ns;
}

/* Asked when nothing came: then the other queues' lines are still, too, at the end of a transfer.
 */
static bool all_taken(const struct dpdk_lane *lane)
{
    uint64_t frames = 0;

    for (uint16_t i = 0; i < lane->port->queue_count; i++)
        frames += atomic_load_explicit(&lane->taken[i].frames, memory_order_relaxed);
    return frames >= lane->receiver.all;
}

static bool received_all(struct dpdk_lane *lane, uint32_t received)
{
    const struct receiver *receiver = &lane->receiver;

    if (lane->taken == NULL)
        return receiver->left == 0 && !prober_waits(lane);
    if (received == 0)
        return all_taken(lane);
    tell_taken(lane);
    return false;
}

int64_t lane_poll(struct lane *base, int64_t now_ns)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    int64_t next_ns = CLOCK_NEVER;
    uint32_t received;

    if (!queue_trylock(lane->queue))
        return now_ns;
    if (unlikely(now_ns < lane->wake_ns))
        iface_wake_clear(&lane->port->iface);
    if (now_ns >= lane->turn_ns || now_ns >= base->stop_ns)
        take_turn(lane, now_ns);
    if (lane->messages == NULL)
        next_ns = lane->send(lane, now_ns);
    received = lane->receive(lane, now_ns);
    if (lane->messages != NULL || (received > 0 && lane->responds))
        next_ns = lane->send(lane, now_ns);
    if (lane->sender.left == 0 && lane->state == LANE_SENDS) {
        base->stopped_ns = now_ns;
        end_sending(lane, now_ns);
    }
    base->received_all = received_all(lane, received);
    if (unlikely(now_ns >= lane->push_ns))
        push(lane, now_ns);
    if (lane->state == LANE_LISTENS)
        base->sent_all = sent_all(lane);
    queue_unlock(lane->queue);
    next_ns = earlier(next_ns, earlier(lane->prober.next_ns, lane->push_ns));
    if (lane->messages != NULL && lane_wake_fd(base) < 0)
        next_ns = earlier(next_ns, look_next(&lane->look_gap_ns, received > 0, now_ns));
    if (received == lane->receive_burst)
        next_ns = now_ns;
    if (lane->wake_ns != INT64_MIN)
        lane->wake_ns = next_ns;
    return next_ns;
}

void lane_idle(struct transport_port *port, int64_t now_ns)
{
    eal_thread();
    pthread_mutex_lock(&port->visit_lock);
    for (uint16_t i = 0; i < port->queue_count; i++) {
        struct port_queue *queue = &port->queues[i];

        if (!queue_trylock(queue))
            continue;
        listen_idle(queue, now_ns);
        queue_unlock(queue);
    }
    pthread_mutex_unlock(&port->visit_lock);
}

void lane_account(struct lane *base)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;

    if (lane->messages != NULL)
        return; /* frames count as they go and come */
    sender_account(lane);
    receiver_account(lane);
}

unsigned lane_measure(struct lane *base, const struct lane_flow *flow, struct measure *out,
                      unsigned room)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;

    return lane->messages != NULL ? messages_measure(lane, flow, out, room) : 0;
}

bool lane_latency(struct lane *base, const struct lane_flow *flow, enum latency_kind kind,
                  struct latency *sum)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    const struct receiver *receiver = &lane->receiver;
    uint32_t index;

    if (lane->messages != NULL)
        return kind == LATENCY_PINGPONG && lane->messages->schedule == NULL &&
               pingpong_latency(&lane->messages->game, flow, sum);
    index = flow->src < PATTERN_RANKS_MAX ? receiver->flow_of[flow->src] : 0;
    if (kind == LATENCY_ROUND_TRIP)
        return prober_sum(lane, flow, sum);
    if (receiver->times == NULL || index == 0 || kind == LATENCY_PINGPONG)
        return false;
    times_sum(&receiver->times[(size_t)(index - 1) * receiver->sources], receiver->sources,
              receiver->buckets, kind == LATENCY_ONE_WAY ? TIMES_ONE_WAY : TIMES_IPDV,
              &sum->histogram);
    return true;
}

size_t lane_samples(struct lane *base, const struct sample **samples)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;

    if (lane->messages == NULL)
        return 0;
    *samples = lane->messages->game.samples;
    return lane->messages->game.sample_count;
}

/* A stream's frames may gather; who waits for one message's last frame wants to know at once, and
 * so does a probe. Only AF_PACKET has descriptors that tell. */
int lane_wake_fd(struct lane *base)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    const struct iface *iface = &lane->port->iface;

    if (lane->messages == NULL)
        return woken_by_probes(lane) ? iface->packet_fd : -1;
    if (!lane->port->kernel || lane->queue->number >= iface->ring_count)
        return -1;
    return iface->ring_fds[lane->queue->number];
}

void lane_finish(struct lane *base)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct port_queue *queue = lane->queue;

    /* Its worker has let go of it. Whoever visits the queue may still receive for it, and goes on
     * at our priority meanwhile; the queue's own flag would keep a real-time thread spinning. */
    pthread_mutex_lock(&lane->port->visit_lock);
    forwarder_drop(lane);
    if (queue->active == lane) {
        queue->active = NULL;
        queue->count = &queue->idle;
    }
    pthread_mutex_unlock(&lane->port->visit_lock);
    destroy(lane);
}
