/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include "fill.h"
#include "prng.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVE_BYTES (4u << 20) /* asked for where the options ask for nothing */
#define TIMED_FLOWS_MAX 4096u    /* 36 KB each; with more delays are not measured */
#define DRAIN_CALLS 1024         /* at most, before a phase */

/* --- prepare --- */

static int refuse(struct err *err, const struct lane_request *request, const char *what)
{
    return err_set(err, -EINVAL, "%s: %s", request->port->ip.conf->name, what);
}

static int check(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    uint32_t forwards = 0;

    if (phase->size_count == 0 || phase->size_count > TRANSPORT_SIZES_MAX)
        return refuse(err, request, "a phase has 1 to 64 frame sizes");
    if (udp_options(phase)->burst == 0 || udp_options(phase)->burst > UDP_BURST_MAX)
        return refuse(err, request, "a burst has 1 to 128 frames");
    if (request->ranks > PATTERN_RANKS_MAX || request->receive_count >= PATTERN_RANKS_MAX)
        return refuse(err, request, "udp counts 65536 ranks at most, and a flow from each");
    if (!phase->load.unlimited && phase->load.rate_bps <= 0 && phase->load.rate_fps <= 0)
        return refuse(err, request, "the phase has no load");
    for (uint32_t i = 0; i < request->send_count; i++)
        forwards += request->sends[i].role == PATTERN_FORWARD;
    if (forwards > 0 && (request->send_count != 1 || request->receive_count != 1))
        return refuse(err, request, "a forwarding port receives one flow and sends one");
    return 0;
}

static int add_size(struct udp_lane *lane, uint32_t frame_bytes, struct err *err)
{
    const struct transport_port *port = lane->port;
    uint32_t around = UDP_ETHERNET + FRAME_FCS, most = port->mtu + around;
    uint32_t least = around + port->headers + SIGNATURE_BYTES;
    uint32_t place = 0;

    most = most < FILL_BYTES ? most : FILL_BYTES;
    if (frame_bytes < least || frame_bytes < UDP_FRAME_LEAST || frame_bytes > most)
        return err_set(
            err, -EINVAL,
            "%s: udp frames have %u to %u bytes here, not %u: headers and signature, and "
            "the interface's MTU decide",
            port->ip.conf->name, least > UDP_FRAME_LEAST ? least : UDP_FRAME_LEAST, most,
            frame_bytes);
    while (place < lane->size_count && lane->sizes[place].frame_bytes != frame_bytes)
        place++;
    if (place == lane->size_count)
        lane->sizes[lane->size_count++] = (struct udp_size){
            .frame_bytes = frame_bytes,
            .payload = frame_bytes - around - port->headers,
            .cost = lane->lane.request.phase->load.rate_bps > 0
                        ? 8 * (frame_bytes + FRAME_OVERHEAD_L1)
                        : 1,
        };
    lane->order[lane->order_count++] = (uint8_t)place;
    return 0;
}

/* Frames of the phase's sizes, or those that its messages have. */
static int add_sizes(struct udp_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    uint32_t ends = UDP_ETHERNET + FRAME_FCS, most = lane->port->mtu + ends;
    uint32_t around = ends + lane->port->headers + SIGNATURE_BYTES;
    uint32_t bytes[TRANSPORT_SIZES_MAX];
    int count = (int)phase->size_count, rc = 0;

    if (phase->messages)
        count = frame_pingpong_sizes(request, lane->port->ip.conf->name, around,
                                     most < FILL_BYTES ? most : FILL_BYTES, bytes, err);
    for (int i = 0; rc == 0 && i < count; i++)
        rc = add_size(lane,
                      phase->messages ? frame_pingpong_size(around, UDP_FRAME_LEAST, bytes[i])
                                      : phase->sizes[i],
                      err);
    return count < 0 ? count : rc;
}

/* Frames that each flow sends in all: whole ones, until it has moved what is asked for. */
static uint64_t flow_quota(const struct udp_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    uint64_t round = 0, frames, bytes;

    if (phase->traffic != TRAFFIC_TRANSFER)
        return phase->traffic == TRAFFIC_PROBE ? phase->probes : UINT64_MAX;
    for (uint32_t i = 0; i < lane->order_count; i++)
        round += lane->sizes[lane->order[i]].payload;
    assert(round > 0); /* there is a size, and each has a payload */
    frames = phase->transfer_bytes / round * lane->order_count;
    bytes = phase->transfer_bytes % round;
    for (uint32_t i = 0; bytes > 0; i++, frames++) {
        uint32_t payload = lane->sizes[lane->order[i]].payload;

        bytes -= payload < bytes ? payload : bytes;
    }
    return frames;
}

static int make_streams(struct udp_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 0; i < request->send_count; i++) {
        const struct lane_flow *flow = &request->sends[i];
        struct udp_stream *stream = &lane->streams[i];
        int rc =
            ip_port_check_partner(&lane->port->ip, &flow->partner, flow->dst, &stream->to, err);

        if (rc != 0)
            return rc;
        stream->side = flow->side;
        stream->left = lane->forwards ? UINT64_MAX : flow_quota(lane);
        if (!lane->forwards && udp_window_frames(request->phase) > 0)
            stream->left = udp_window_frames(request->phase);
        stream->signature = (struct signature){
            .tag = htobe16(request->phase->tag),
            .src = htobe16((uint16_t)request->rank),
            .dst = htobe16((uint16_t)flow->dst),
        };
        lane->stream_of[flow->dst] = (uint16_t)(i + 1);
    }
    return 0;
}

static int make_sources(struct udp_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct load unlimited = {.unlimited = true}; /* ping-pong has none */
    const struct load *load = lane->plays ? &unlimited : &request->phase->load;
    uint64_t quota = flow_quota(lane);
    uint32_t least = FILL_BYTES;

    lane->limit.at_once = sequence_limit_at_once(udp_options(request->phase)->burst,
                                                 udp_options(request->phase)->catch_up);
    for (uint32_t i = 0; i < lane->size_count; i++)
        least = lane->sizes[i].frame_bytes < least ? lane->sizes[i].frame_bytes : least;
    lane->left = quota == UINT64_MAX ? quota : quota * request->receive_count;
    for (uint32_t i = 0; i < request->receive_count; i++) {
        const struct lane_flow *flow = &request->receives[i];
        struct udp_source *source = &lane->sources[i];
        int rc =
            ip_port_check_partner(&lane->port->ip, &flow->partner, flow->src, &source->from, err);

        if (rc != 0)
            return rc;
        sequence_limit_add(&lane->limit, flow, load, ip_port_partner_line_bps(&flow->partner),
                           least);
        source->side = flow->side;
        source->reordering = (struct reordering){.far = source->gaps};
        delay_stats_init(&source->delay_stats, i);
        lane->source_of[flow->src] = (uint16_t)(i + 1);
    }
    return 0;
}

static void make_inbox(struct udp_inbox *inbox)
{
    for (uint32_t i = 0; i < UDP_MESSAGES; i++) {
        inbox->pieces[i] = (struct iovec){inbox->bytes[i], sizeof inbox->bytes[i]};
        inbox->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &inbox->from[i],
            .msg_iov = &inbox->pieces[i],
            .msg_iovlen = 1,
            .msg_control = &inbox->controls[i],
        };
    }
}

static int allocate(struct udp_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    bool times = request->phase->latency.stamps && request->receive_count > 0 &&
                 request->receive_count <= TIMED_FLOWS_MAX;

    if (turns_make(&lane->turns, request->sends, request->send_count) < 0)
        return -ENOMEM;
    lane->streams = calloc(request->send_count + 1, sizeof *lane->streams);
    lane->sources = aligned_alloc(_Alignof(struct udp_source),
                                  (request->receive_count + 1) * sizeof *lane->sources);
    lane->source_of = calloc(PATTERN_RANKS_MAX, sizeof *lane->source_of);
    lane->stream_of = calloc(PATTERN_RANKS_MAX, sizeof *lane->stream_of);
    lane->batch = calloc(1, sizeof *lane->batch);
    lane->inbox = calloc(1, sizeof *lane->inbox);
    lane->queue = calloc(UDP_FORWARD_QUEUE, sizeof *lane->queue);
    lane->buckets = times ? calloc(request->receive_count, sizeof *lane->buckets) : NULL;
    if (lane->streams == NULL || lane->sources == NULL || lane->source_of == NULL ||
        lane->stream_of == NULL || lane->batch == NULL || lane->inbox == NULL ||
        lane->queue == NULL || (times && lane->buckets == NULL))
        return -ENOMEM;
    memset(lane->sources, 0, (request->receive_count + 1) * sizeof *lane->sources);
    make_inbox(lane->inbox);
    return 0;
}

/* The socket serves all phases, and is tuned for the one that was prepared last. */
static int tune_socket(struct udp_lane *lane, struct err *err)
{
    const struct udp_options *options = udp_options(lane->lane.request.phase);
    struct err ignored = {""};
    int together;

    lane->segments = options->offload == UDP_OFFLOAD_ON ||
                     (options->offload == UDP_OFFLOAD_AUTO && lane->port->segments);
    together = lane->segments;
    setsockopt(lane->port->ip.socket, SOL_UDP, UDP_GRO, &together, sizeof together);
    if (options->receive_buffer > 0)
        return ip_port_buffer(&lane->port->ip, lane->port->ip.socket, SO_RCVBUF,
                              options->receive_buffer, err);
    (void)ip_port_buffer(&lane->port->ip, lane->port->ip.socket, SO_RCVBUF, RECEIVE_BYTES,
                         &ignored);
    return 0;
}

static int make(struct udp_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    int rc = allocate(lane);

    if (rc == 0 && phase->traffic == TRAFFIC_PINGPONG)
        rc = udp_pingpong_make(lane);
    if (rc == 0)
        rc = add_sizes(lane, err);
    if (rc != 0 || (rc = make_streams(lane, err)) != 0 || (rc = make_sources(lane, err)) != 0 ||
        (rc = tune_socket(lane, err)) != 0 ||
        (!lane->plays && (rc = frame_prober_make(&lane->prober, &lane->lane.request, NULL)) != 0))
        return rc;
    lane->burst = udp_options(phase)->burst;
    snprintf(lane->lane.variant, sizeof lane->lane.variant, "send %s%s, %.3g probes/s a flow",
             lane->segments ? "by segments" : "one by one",
             lane->buckets != NULL ? ", time of every frame" : "", lane->prober.rate_fps);
    return 0;
}

int udp_lane_prepare(struct lane **out, const struct lane_request *request, struct err *err)
{
    struct udp_lane *lane;
    int rc = check(request, err);

    if (rc != 0)
        return rc;
    lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", request->port->ip.conf->name);
    lane->lane.request = *request;
    lane->lane.wake_fd = request->port->ip.socket;
    lane->port = request->port;
    lane->port->lanes++;
    lane->forwards = request->send_count == 1 && request->sends[0].role == PATTERN_FORWARD;
    if ((rc = make(lane, err)) != 0) {
        udp_lane_destroy(&lane->lane);
        return err_set(err, rc, "%s: out of memory", request->port->ip.conf->name);
    }
    *out = &lane->lane;
    return 0;
}

void udp_lane_destroy(struct lane *base)
{
    struct udp_lane *lane = (struct udp_lane *)base;

    lane->port->forward_dropped += lane->tail - lane->head;
    lane->port->lanes--;
    free(lane->sources);
    turns_free(&lane->turns);
    free(lane->streams);
    free(lane->source_of);
    free(lane->stream_of);
    free(lane->batch);
    free(lane->inbox);
    free(lane->queue);
    free(lane->buckets);
    frame_prober_free(&lane->prober);
    frame_pingpong_free(&lane->game);
    free(lane);
}

/* --- connect --- */

/* An empty datagram to each partner: the kernel asks for their addresses now, and switches learn
 * where this port is. */
static void announce(struct udp_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        const struct sockaddr_storage *to = i < request->send_count
                                                ? &lane->streams[i].to
                                                : &lane->sources[i - request->send_count].from;

        if (sendto(lane->port->ip.socket, "", 0, MSG_DONTWAIT, (const struct sockaddr *)to,
                   udp_address_bytes(to)) == 0) {
            lane->port->sent++;
            request->count->arp_nd_sent++;
        }
    }
}

/* What earlier phases left behind is thrown away here, unless a worker still receives. */
int udp_lane_connect(struct lane *base, int64_t now_ns, struct err *err)
{
    struct udp_lane *lane = (struct udp_lane *)base;

    (void)err;
    for (int i = 0; lane->port->lanes == 1 && i < DRAIN_CALLS; i++)
        if (udp_receive(lane, now_ns) == 0)
            break;
    if (!lane->announced)
        announce(lane);
    lane->announced = true;
    return 0;
}

/* --- worker --- */

/* The schedule begins at a seeded random moment of its first interval, so that the senders of a
 * phase do not march in step. */
void udp_lane_start(struct lane *base, int64_t now_ns)
{
    struct udp_lane *lane = (struct udp_lane *)base;
    const struct phase *phase = base->request.phase;
    uint64_t seed = prng_seed(phase->seed, base->request.rank, phase->number);
    double rate = phase->load.unlimited      ? 0
                  : phase->load.rate_bps > 0 ? phase->load.rate_bps
                                             : phase->load.rate_fps;
    uint64_t sum = 0;
    double part = (double)(prng_bits(seed, 0) >> 11) * 0x1p-53;
    int64_t begin_ns = udp_window_frames(phase) > 0 ? phase->open_ns : phase->start_ns;

    (void)now_ns;
    lane->start_ns = lane->limit.start_ns = phase->start_ns;
    base->stop_ns = phase->stop_ns;
    if (lane->plays)
        return;
    for (uint32_t i = 0; i < lane->order_count; i++)
        sum += lane->sizes[lane->order[i]].cost;
    assert(lane->order_count > 0);
    lane->cost = (uint32_t)(sum / lane->order_count);
    pace_init(&lane->pace, rate, udp_options(phase)->catch_up,
              begin_ns + (rate > 0 ? (int64_t)(part * lane->cost / rate * 1e9) : 0));
    pace_dither(&lane->pace, udp_options(phase)->dither, lane->cost, prng_bits(seed, 1));
    frame_prober_start(&lane->prober, &base->request, prng_bits(seed, 2));
    base->rx_done = lane->left == 0;
}

static void begin_sending(struct udp_lane *lane, int64_t now_ns)
{
    bool generates = lane->lane.request.send_count > 0 && !lane->forwards;

    lane->lane.started_ns = now_ns;
    lane->state = generates ? UDP_SENDS : UDP_LISTENS;
}

static void end_sending(struct udp_lane *lane, int64_t end_ns)
{
    udp_send_intended(lane, end_ns);
    lane->state = UDP_LISTENS;
}

static bool sent_quota(const struct udp_lane *lane)
{
    uint32_t i = 0;

    while (i < lane->lane.request.send_count && lane->streams[i].left == 0)
        i++;
    return i == lane->lane.request.send_count;
}

/* A worker that wakes after the stop still sends what was due before it, within catch_up. */
static void change_state(struct udp_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;

    if (lane->state == UDP_WAITS && base->stop_ns <= lane->start_ns)
        end_sending(lane, lane->start_ns); /* ended before it began */
    if (lane->state == UDP_WAITS && now_ns >= lane->start_ns)
        begin_sending(lane, now_ns);
    if (lane->state == UDP_SENDS && now_ns >= base->stop_ns) {
        (void)udp_send(lane, base->stop_ns - 1);
        end_sending(lane, base->stop_ns);
    }
    if (base->stopped_ns == 0 && now_ns >= base->stop_ns)
        base->stopped_ns = now_ns;
}

/* Delays are measured in the window; where there is none but the whole phase, in that. */
static bool times_now(const struct udp_lane *lane, int64_t now_ns)
{
    const struct phase *phase = lane->lane.request.phase;
    bool window = phase->traffic == TRAFFIC_STREAM;

    return lane->buckets != NULL && now_ns >= (window ? phase->open_ns : phase->start_ns) &&
           (!window || now_ns < phase->close_ns);
}

int64_t udp_lane_poll(struct lane *base, int64_t now_ns)
{
    struct udp_lane *lane = (struct udp_lane *)base;
    int64_t next_ns = CLOCK_NEVER, probe_ns;
    uint32_t received;

    if (base->error.text[0] != '\0')
        return CLOCK_NEVER;
    if (lane->plays) {
        received = udp_receive(lane, now_ns);
        next_ns = frame_pingpong_poll(&lane->game, now_ns);
        return received == UDP_MESSAGES ? now_ns : next_ns;
    }
    change_state(lane, now_ns);
    lane->timing = times_now(lane, now_ns);
    received = udp_receive(lane, now_ns);
    if (lane->state == UDP_SENDS || (lane->forwards && lane->state == UDP_LISTENS))
        next_ns = udp_send(lane, now_ns);
    else if (lane->state == UDP_WAITS)
        next_ns = lane->start_ns;
    if (lane->state == UDP_SENDS && sent_quota(lane)) {
        if (base->request.phase->stop_ns == CLOCK_NEVER) /* else the port ends with the others */
            base->stopped_ns = now_ns;
        end_sending(lane, now_ns);
    }
    if (lane->state == UDP_LISTENS && base->stopped_ns == 0 && base->request.send_count > 0)
        next_ns = lane->forwards ? next_ns : base->stop_ns;
    probe_ns = udp_prober_turn(lane, now_ns);
    base->rx_done = lane->left == 0 && lane->prober.in_flight == 0;
    base->tx_done = lane->state == UDP_LISTENS && lane->head == lane->tail;
    if (received == UDP_MESSAGES)
        return now_ns;
    return probe_ns < next_ns ? probe_ns : next_ns;
}

/* --- results --- */

unsigned udp_lane_flow_metrics(struct lane *base, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room)
{
    const struct udp_lane *lane = (const struct udp_lane *)base;

    if (flow->src != base->request.rank || base->request.phase->traffic != TRAFFIC_STREAM ||
        room == 0)
        return 0;
    out[0] = (struct flow_metric){"late_frames", (double)lane->pace.clumped};
    return 1;
}

bool udp_lane_latency(struct lane *base, const struct lane_flow *flow, enum latency_kind kind,
                      struct latency *sum)
{
    struct udp_lane *lane = (struct udp_lane *)base;
    uint16_t source = flow->src < PATTERN_RANKS_MAX ? lane->source_of[flow->src] : 0;

    if (lane->plays)
        return kind == LATENCY_PINGPONG && pingpong_latency(&lane->game.game, flow, sum);
    if (kind == LATENCY_ROUND_TRIP)
        return frame_prober_sum(&lane->prober, flow, sum);
    if (kind == LATENCY_PINGPONG || source == 0 || lane->buckets == NULL)
        return false;
    delay_stats_sum(&lane->sources[source - 1].delay_stats, 1, lane->buckets,
                    kind == LATENCY_ONE_WAY ? DELAY_ONE_WAY : DELAY_IPDV, &sum->histogram);
    return true;
}
