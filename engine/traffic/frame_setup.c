/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creation of a lane of frames, and the begin of its phase.
 */
#include "frame_lane.h"

#include "prng.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define RECEIVE_BURST 64u /* minimum: vector drivers return nothing for less than 4 or 32 */
#define SLACK 1.05 /* a gap that was rejected in error is accepted after 20 times its length */
#define FRAMES_PER_NS_MAX 0.15 /* 100 Gbit/s of 64-byte frames: no send queue takes more */
#define TIMED_FLOWS_MAX 4096u  /* 18 KB each; with more delays are not measured */

/* --- turns -----------------------------------------------------------------------------------*/

/* Turn of a flow, due at a time from 0 to 1 of one round. */
struct turn {
    double due;
    uint32_t flow;
};

static int compare(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;

    if (x->due != y->due)
        return x->due < y->due ? -1 : 1;
    return (x->flow > y->flow) - (x->flow < y->flow);
}

/* Return the number of turns of a flow in a round of `round` turns, at least 1.
 */
static uint64_t turns_of(const struct lane_flow *flow, uint64_t round)
{
    return MAX((uint64_t)llround(flow->share * (double)round), 1);
}

int turns_make(struct turns *turns, const struct lane_flow *flows, uint32_t count)
{
    uint64_t divisor = PATTERN_WHOLE, round, sum = 0;
    struct turn *due;

    *turns = (struct turns){0};
    if (count == 0 || flows[0].share <= 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) /* the greatest common divisor, by Euclid */
        for (uint64_t rest, a = turns_of(&flows[i], PATTERN_WHOLE); a > 0; a = rest) {
            rest = divisor % a;
            divisor = a;
        }
    round = MIN(PATTERN_WHOLE / divisor, TURNS_MAX);
    for (uint32_t i = 0; i < count; i++)
        sum += turns_of(&flows[i], round);
    due = calloc(sum, sizeof *due);
    turns->flow = calloc(sum, sizeof *turns->flow);
    if (due == NULL || turns->flow == NULL) {
        free(due);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t k = 0, all = turns_of(&flows[i], round); k < all; k++)
            due[turns->count++] = (struct turn){((double)k + 0.5) / (double)all, i};
    qsort(due, turns->count, sizeof *due, compare);
    for (uint32_t i = 0; i < turns->count; i++)
        turns->flow[i] = due[i].flow;
    free(due);
    return 0;
}

uint64_t turns_burst(const struct lane_request *request)
{
    double frames = (double)request->phase->burst.own_frames;
    double to = request->share_to > 0 ? request->share_to : 1;

    return (uint64_t)(llround(frames * to) - llround(frames * request->share_from));
}

/* --- memory -----------------------------------------------------------------------------------*/

void frame_lane_free(struct frame_lane *lane)
{
    prober_free(&lane->prober);
    free(lane->sender.turns.flow);
    free(lane->memory);
    free(lane);
}

/* --- sizes ------------------------------------------------------------------------------------*/

/* Compute the lane's table of distinct frame sizes, and their order, from the phase's list of frame
 * or message sizes.
 */
static int make_sizes(struct frame_lane *lane, struct err *err)
{
    const struct frame_conf *conf = &lane->conf;
    const struct phase *phase = lane->lane.request.phase;
    uint32_t around = conf->offset + SIGNATURE_BYTES + conf->outside;
    uint32_t room = around < conf->most ? conf->most - around : 0;

    memset(lane->size_of_length, FRAME_NO_SIZE, sizeof lane->size_of_length);
    for (uint32_t i = 0; i < phase->size_count; i++) {
        uint32_t size = phase->sizes[i];
        uint8_t *place;

        if (phase->messages && (size == 0 || size > room))
            return err_set(err, -EINVAL,
                           "%s: a ping-pong message must fit into one frame, 1 to %u bytes, not "
                           "%u: use tcp or verbs for larger messages",
                           conf->name, room, size);
        if (phase->messages)
            size = frame_message_size(lane, size);
        if (size < conf->least || size > conf->most)
            return err_set(err, -EINVAL,
                           "%s: %s frames must have %u to %u bytes on this port, not %u, to hold "
                           "headers and signature and to fit the MTU",
                           conf->name, conf->header, conf->least, conf->most, size);
        place = &lane->size_of_length[size - conf->outside];
        if (*place == FRAME_NO_SIZE) {
            *place = (uint8_t)lane->size_count++;
            lane->sizes[*place] = (struct frame_size){
                .frame_bytes = size,
                .payload_bytes = size - conf->outside - conf->offset,
                .cost = frame_cost(phase, size),
                .length = (uint16_t)(size - conf->outside),
            };
        }
        lane->order[lane->order_count++] = *place;
    }
    return 0;
}

/* Return how many frames `flows` flows send in this phase; UINT64_MAX: until the stop. In a
 * transfer each flow sends whole frames until it has sent its bytes; with several sizes, each
 * stream of the flow sends an equal part of the bytes. */
static uint64_t frames_of(const struct frame_lane *lane, uint64_t flows)
{
    const struct phase *phase = lane->lane.request.phase;
    uint64_t parts = lane->order_count == 1 ? 1 : lane->receiver.sources;
    uint64_t bytes = (phase->transfer_bytes + parts - 1) / parts, round = 0, frames;

    if (phase->traffic == TRAFFIC_PROBE)
        return phase->probes * flows;
    if (phase->traffic != TRAFFIC_TRANSFER)
        return UINT64_MAX;
    for (uint32_t i = 0; i < lane->order_count; i++)
        round += lane->sizes[lane->order[i]].payload_bytes;
    assert(round > 0); /* each frame holds a signature */
    frames = bytes / round * lane->order_count;
    bytes %= round;
    for (uint32_t i = 0; bytes > 0; i++, frames++) {
        uint32_t payload = lane->sizes[lane->order[i]].payload_bytes;

        bytes -= payload < bytes ? payload : bytes;
    }
    return frames * parts * flows;
}

/* --- flows, streams and their memory -----------------------------------------------------------*/

/* Array in the lane's memory. This memory is one zeroed allocation, whose pages are touched when
 * they are used. */
struct part {
    void *at; /* address of the pointer to it, which stays NULL if the part is empty */
    size_t count, size;
};

/* Allocate the lane's arrays in one block, each array at the begin of a cache line. */
static int allocate(struct frame_lane *lane, const struct part *parts, size_t count)
{
    size_t bytes = CACHE_LINE;
    char *next;

    for (size_t i = 0; i < count; i++)
        bytes += parts[i].count * parts[i].size + CACHE_LINE;
    next = lane->memory = calloc(bytes, 1);
    for (size_t i = 0; i < count && next != NULL; i++) {
        next += (CACHE_LINE - (uintptr_t)next % CACHE_LINE) % CACHE_LINE;
        if (parts[i].count > 0)
            memcpy(parts[i].at, &next, sizeof next);
        next += parts[i].count * parts[i].size;
    }
    return next != NULL ? 0 : -ENOMEM;
}

static void swap(struct sender_stream *a, struct sender_stream *b)
{
    uint32_t place = a->place;

    a->place = b->place;
    b->place = place;
}

/* Make the streams of the lane's flows; sent streams are stored in their sending order. If flows
 * send in rotation, the streams of all flows with one UDP source port come before the streams with
 * the next port. Otherwise streams are shuffled (Fisher-Yates) by the configuration's seed, so the
 * order is the same in every run. If a flow's streams cannot all have the same number of frames,
 * the streams with one frame more come first, because only these send in the last round. A
 * forwarder's streams are not moved, because it finds them by UDP source port. */
static int make_streams(struct frame_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    struct sender *sender = &lane->sender;
    struct receiver *receiver = &lane->receiver;
    bool pingpong = lane->prober.pingpong;
    bool forwards =
        !pingpong && request->send_count == 1 && request->flows[0].role == PATTERN_FORWARD;
    bool timed = phase->latency.stamps && request->receive_count <= TIMED_FLOWS_MAX && !pingpong;
    /* Frames to all ports are sent once; a ping-pong's messages belong to no stream. */
    uint32_t flows = pingpong                                       ? 0
                     : lane->conf.to_all && request->send_count > 0 ? 1
                                                                    : request->send_count;
    uint32_t sources = receiver->sources, count = flows * sources, front = 0;
    size_t all = (size_t)request->send_count + request->receive_count;
    size_t came = (size_t)request->receive_count * sources;
    uint64_t quota = frames_of(lane, 1);
    const struct part parts[] = {
        {&lane->partners, all, lane->conf.partner_bytes},
        {&lane->accounting.marks, all, sizeof *lane->accounting.marks},
        {&receiver->flow_of, PATTERN_RANKS_MAX, sizeof *receiver->flow_of},
        {&receiver->streams, came, sizeof *receiver->streams},
        {&receiver->pasts, came, sizeof *receiver->pasts},
        {&receiver->delay_stats, timed ? came : 0, sizeof *receiver->delay_stats},
        {&receiver->buckets, timed ? request->receive_count : 0, sizeof *receiver->buckets},
        {&sender->streams, count, sizeof *sender->streams},
        {&sender->index_of, count, sizeof *sender->index_of},
        {&sender->templates, lane->size_count > 1 ? (size_t)count * lane->size_count : 0,
         sizeof *sender->templates},
        {&lane->forwarder.queue, forwards ? FRAME_FORWARD_QUEUE : 0, sizeof *lane->forwarder.queue},
    };

    if (allocate(lane, parts, sizeof parts / sizeof parts[0]) != 0)
        return -ENOMEM;
    sender->count = count;
    sender->left = frames_of(lane, flows);
    if (phase->traffic == TRAFFIC_STREAM && lane->options.window_frames > 0)
        sender->left = (uint64_t)lane->options.window_frames * flows;
    if (phase->traffic == TRAFFIC_BURST) {
        sender->left = sender->burst = turns_burst(request);
        sender->bursts_left = phase->burst.count > 0 ? phase->burst.count - 1 : UINT64_MAX;
    }
    receiver->count = request->receive_count;
    receiver->tag = htobe16(phase->tag);
    receiver->own = htobe16((uint16_t)request->rank);
    receiver->rank = lane->conf.to_all ? UINT16_MAX : receiver->own;
    /* One of several queues does not know what the others have received. */
    receiver->left = lane->conf.queues > 1 ? UINT64_MAX : frames_of(lane, receiver->count);
    receiver->sampled = receiver->count > lane->conf.every_max;
    /* Touched here, in order: no page fault follows later, and neighbours are adjacent. */
    for (size_t i = 0; i < came; i++) {
        receiver->streams[i].side = &lane_receives(request)[i / sources].side;
        if (receiver->delay_stats != NULL)
            delay_stats_init(&receiver->delay_stats[i], (uint32_t)i / sources);
    }
    for (uint32_t i = 0; i < count; i++)
        sender->streams[i].place = phase->in_turn ? i % flows * sources + i / flows : i;
    for (uint32_t i = count; i > 1 && !phase->in_turn && !forwards; i--)
        swap(&sender->streams[i - 1], &sender->streams[prng_below(&lane->random, i)]);
    for (uint32_t i = 0; quota != UINT64_MAX && !forwards && i < count; i++)
        if (sender->streams[i].place % sources < quota % sources)
            swap(&sender->streams[front++], &sender->streams[i]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = sender->streams[i].place;

        sender->index_of[place] = i;
        sender->streams[i].side = &request->flows[place / sources].side;
    }
    for (uint32_t i = 1; i < request->send_count && lane->conf.to_all; i++)
        request->flows[i].side.is_copy = true;
    return turns_make(&sender->turns, request->flows, flows);
}

/* Resolve the partners' addresses, and compute the limit on jumps of their frames' sequence numbers
 * (struct sequence_limit). */
static int meet_partners(struct frame_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct frame_conf *conf = &lane->conf;
    const struct load *load = &request->phase->load;
    struct receiver *receiver = &lane->receiver;
    double part = load->part > 0 ? load->part : 1;
    uint32_t least = FILL_BYTES;

    for (uint32_t i = 0; i < lane->size_count; i++)
        least = MIN(least, lane->sizes[i].frame_bytes);
    /* A burst, and the frames with which a late sender catches up; a jump within the window makes
     * no honest frame late. */
    receiver->limit.at_once = SEQUENCE_WINDOW + lane->options.burst + lane->options.catch_up +
                              (double)request->phase->burst.frames;
    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        const struct lane_flow *flow = &request->flows[i];
        double bits = 8.0 * (least + FRAME_OVERHEAD_L1), rate, frames_per_ns;
        uint64_t line_bps;
        int rc = conf->ops->resolve(lane, i, frame_partner(lane, i), &line_bps, err);

        if (rc != 0)
            return rc;
        if (i < request->send_count)
            continue;
        rate = line_bps > 0 ? (double)line_bps : load->rate_bps / part;
        frames_per_ns = (rate > 0 ? rate / bits : load->rate_fps / part) * SLACK / 1e9;
        /* A forwarder sends waiting frames as fast as its driver takes them. */
        if (flow->role == PATTERN_FORWARD || load->unlimited || lane->prober.pingpong)
            frames_per_ns = FRAMES_PER_NS_MAX;
        receiver->limit.frames_per_ns = MAX(receiver->limit.frames_per_ns, frames_per_ns);
        receiver->flow_of[flow->src] = (uint16_t)(i - request->send_count + 1);
    }
    return 0;
}

/* Write the names of the hot-path variants in use, for the records. */
static void describe(struct frame_lane *lane)
{
    const struct receiver *receiver = &lane->receiver;
    const char *times = receiver->delay_stats == NULL ? ""
                        : receiver->sampled           ? ", time of 1 in 128 frames"
                                                      : ", time of every frame";
    const char *sends = "none";
    char probes[64] = "";

    if (lane->sender.count > 0)
        (void)lane->conf.ops->choose_send(lane, &sends);
    if (lane->prober.count > 0)
        snprintf(probes, sizeof probes, ", %.3g probes/s a flow", lane->prober.rate_fps);
    if (lane->prober.pingpong)
        snprintf(lane->lane.variant, sizeof lane->lane.variant, "one %s frame at a time",
                 lane->conf.header);
    else
        snprintf(lane->lane.variant, sizeof lane->lane.variant, "send %s, receive %s%s%s", sends,
                 lane->conf.header, times, probes);
}

static int64_t before_start(struct frame_lane *lane, int64_t now_ns)
{
    (void)now_ns;
    return lane->start_ns;
}

/* Check the rules for a request that the parser of documents (documents.c) does not check. */
static int check_request(const struct lane_request *request, const struct frame_conf *conf,
                         struct err *err)
{
    const struct phase *phase = request->phase;
    const char *what = NULL;
    bool forwards = false;

    for (uint32_t i = 0; i < request->send_count; i++)
        forwards |= request->flows[i].role == PATTERN_FORWARD;
    if (!phase->load.unlimited && phase->load.rate_bps <= 0 && phase->load.rate_fps <= 0)
        what = "the phase needs a load above 0";
    else if (forwards && (request->send_count != 1 || request->receive_count != 1))
        what = "a forwarding port must receive one flow and send one flow in each phase";
    else if (phase->traffic == TRAFFIC_PINGPONG && conf->queues > 1)
        what = "a ping-pong uses one queue, and the port has several: set queues: 1";
    return what == NULL ? 0 : err_set(err, -EINVAL, "%s: %s", conf->name, what);
}

int frame_lane_make(struct frame_lane *lane, const struct frame_conf *conf, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    const struct frame_lane *first = (const struct frame_lane *)request->first_queue_lane;
    double line_bytes = phase_mean_size(phase) + (double)FRAME_OVERHEAD_L1;
    double probe_fps = prober_rate(request, line_bytes);
    int rc = check_request(request, conf, err);

    lane->conf = *conf;
    memcpy(&lane->options, phase->options, sizeof lane->options);
    if (!phase->messages)
        lane->options.catch_up = pace_catch_up(lane->options.catch_up, phase_mean_size(phase));
    if (conf->receive_burst == 0)
        lane->conf.receive_burst = MAX(lane->options.burst, RECEIVE_BURST);
    lane->send = before_start;
    lane->flush_ns = lane->falls_ns = CLOCK_NEVER;
    lane->random = phase->seed ^ (uint64_t)request->rank << 32 ^ phase->number ^
                   (uint64_t)request->queue << 48;
    lane->tags[0] = htobe16(phase->tag ^ SIGNATURE_PROBE);
    lane->tags[1] = htobe16(phase->tag ^ SIGNATURE_ANSWER);
    if (rc == 0)
        rc = prober_make(&lane->prober, &lane->lane, probe_fps,
                         first != NULL ? &first->prober : NULL);
    lane->displaces = prober_displaces(request, line_bytes, probe_fps);
    lane->receiver.sources =
        lane->prober.pingpong || lane->options.udp_sources == 0 ? 1 : lane->options.udp_sources;
    if (rc == 0)
        rc = make_sizes(lane, err);
    if (rc == 0)
        rc = make_streams(lane);
    if (rc == 0)
        rc = meet_partners(lane, err);
    if (rc != 0)
        return err_set(err, rc, "%s: out of memory", conf->name);
    lane->responds = lane->prober.pingpong || lane->forwarder.queue != NULL;
    lane->receive = conf->ops->choose_receive(lane);
    describe(lane);
    return 0;
}

void frame_lane_build(struct frame_lane *lane)
{
    struct sender *sender = &lane->sender;
    uint32_t sources = lane->receiver.sources;

    for (uint32_t i = 0; i < sender->count; i++) {
        struct sender_stream *stream = &sender->streams[i];
        struct frame_template *templates =
            sender->templates == NULL
                ? &stream->template
                : sender->templates + (size_t)stream->place * lane->size_count;

        for (uint32_t j = 0; j < lane->size_count; j++) {
            const struct frame_single first = {.place = stream->place / sources,
                                               .tag = lane->lane.request.phase->tag,
                                               .source = (uint16_t)(stream->place % sources),
                                               .to_all = lane->conf.to_all,
                                               .frame_bytes = lane->sizes[j].frame_bytes};

            frame_write_head(lane, &first, &templates[j]);
        }
        stream->template = templates[0];
        stream->base = checksum_fold(
            signature_base((const struct signature *)(stream->template.bytes + lane->conf.offset)));
    }
}

/* --- begin ------------------------------------------------------------------------------------*/

/* Begin the phase of a lane. The pace begins at a seeded random time of its first interval, so that
 * the senders of a phase are not synchronous; it counts bits at layer 1, or frames. */
void frame_lane_begin(struct frame_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;
    const struct lane_request *request = &base->request;
    const struct phase *phase = request->phase;
    const struct load *load = &phase->load;
    struct sender *sender = &lane->sender;
    double rate = load->unlimited ? 0 : load->rate_bps > 0 ? load->rate_bps : load->rate_fps;
    double part = (double)(prng_next(&lane->random) >> 11) * 0x1p-53;
    int64_t begin_ns = lane->options.window_frames > 0 ? phase->open_ns : phase->start_ns;
    uint64_t sum = 0;

    lane->state = FRAME_WAITS;
    lane->start_ns = lane->receiver.limit.start_ns = lane->timer_ns = phase->start_ns;
    base->stop_ns = phase->stop_ns;
    if (lane->conf.ops->begin != NULL)
        lane->conf.ops->begin(lane, now_ns);
    base->rx_done = lane->receiver.left == 0;
    if (lane->options.falls_to > 0 && phase->traffic == TRAFFIC_STREAM)
        lane->falls_ns = phase->start_ns + (int64_t)lane->options.falls_after_ns;
    prober_begin(&lane->prober, prng_next(&lane->random));
    if (request->share_to > 0)
        rate *= request->share_to - request->share_from;
    assert(lane->order_count > 0);
    for (uint32_t i = 0; i < lane->order_count; i++)
        sum += lane->sizes[lane->order[i]].cost;
    sender->cost = (uint32_t)(sum / lane->order_count);
    if (phase->traffic == TRAFFIC_BURST) { /* all ports begin at once, and no frame is given up */
        pace_init(&sender->pace, rate, PACE_CATCH_UP_ALL, phase->start_ns);
        return;
    }
    pace_init(&sender->pace, rate, lane->options.catch_up,
              begin_ns + (rate > 0 ? (int64_t)(part * sender->cost / rate * 1e9) : 0));
    pace_dither(&sender->pace, lane->options.dither, sender->cost, prng_next(&lane->random));
}
