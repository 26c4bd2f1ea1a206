/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane of frames is made, and its phase begun.
 */
#include "frame_lane.h"

#include "prng.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64u
#define RECEIVE_BURST 64u     /* at least: vector drivers return nothing for less than 4 or 32 */
#define TIMED_FLOWS_MAX 4096u /* 36 KB each; with more delays are not measured */

static uint32_t min32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* --- turns -----------------------------------------------------------------------------------*/

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* A flow's frame, due at a time between 0 and 1 of one round. */
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

/* How many turns each flow has in one round: its share exactly where the table has the room. */
static uint64_t count_turns(uint64_t *turns, const struct lane_flow *flows, uint32_t count)
{
    uint64_t divisor = 0, sum = 0, scaled = 0;

    for (uint32_t i = 0; i < count; i++) {
        turns[i] = (uint64_t)llround(flows[i].share * PATTERN_WHOLE);
        divisor = common_divisor(turns[i], divisor);
    }
    for (uint32_t i = 0; i < count; i++)
        sum += turns[i] /= divisor;
    if (sum <= TURNS_MAX)
        return sum;
    for (uint32_t i = 0; i < count; i++) {
        turns[i] = (uint64_t)llround((double)turns[i] * TURNS_MAX / (double)sum);
        turns[i] += turns[i] == 0;
        scaled += turns[i];
    }
    return scaled;
}

int turns_make(struct turns *turns, const struct lane_flow *flows, uint32_t count)
{
    uint64_t *each = NULL, sum;
    struct turn *due = NULL;
    int rc = -ENOMEM;

    *turns = (struct turns){0};
    if (count == 0 || flows[0].share <= 0)
        return 0;
    each = calloc(count, sizeof *each);
    if (each == NULL)
        return rc;
    sum = count_turns(each, flows, count);
    due = calloc(sum, sizeof *due);
    turns->flow = calloc(sum, sizeof *turns->flow);
    if (due == NULL || turns->flow == NULL)
        goto cleanup;
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < each[i]; k++)
            due[turns->count++] = (struct turn){((double)k + 0.5) / (double)each[i], i};
    qsort(due, turns->count, sizeof *due, compare);
    for (uint32_t i = 0; i < turns->count; i++)
        turns->flow[i] = due[i].flow;
    rc = 0;
cleanup:
    if (rc < 0)
        turns_free(turns);
    free(due);
    free(each);
    return rc;
}

uint64_t turns_burst(const struct lane_request *request)
{
    double frames = (double)request->phase->burst.own_frames;
    double to = request->share_to > 0 ? request->share_to : 1;

    return (uint64_t)(llround(frames * to) - llround(frames * request->share_from));
}

void turns_free(struct turns *turns)
{
    free(turns->flow);
    *turns = (struct turns){0};
}

/* --- memory -----------------------------------------------------------------------------------*/

void *frame_lane_new(size_t bytes, const struct lane_request *request)
{
    size_t whole = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct frame_lane *lane = aligned_alloc(CACHE_LINE, whole);

    if (lane == NULL)
        return NULL;
    memset(lane, 0, whole);
    lane->lane.request = *request;
    return lane;
}

void frame_lane_free(struct frame_lane *lane)
{
    prober_free(&lane->prober);
    turns_free(&lane->sender.turns);
    free(lane->memory);
    free(lane);
}

void frame_options_fit(void *options, const struct phase *phase)
{
    struct frame_options *fitted = options;

    if (!phase->messages)
        fitted->catch_up = pace_catch_up(fitted->catch_up, phase_mean_size(phase));
}

/* --- sizes ------------------------------------------------------------------------------------*/

static int check(const struct lane_request *request, const struct frame_conf *conf, struct err *err)
{
    const struct phase *phase = request->phase;
    const struct frame_options *options = phase->options;
    const char *what = NULL;
    uint32_t forwards = 0;

    for (uint32_t i = 0; i < request->send_count; i++)
        forwards += request->flows[i].role == PATTERN_FORWARD;
    if (phase->size_count == 0 || phase->size_count > TRANSPORT_SIZES_MAX)
        what = "a phase has 1 to 64 frame sizes";
    else if (options->burst == 0 || options->burst > FRAME_BURST_MAX)
        what = "a burst has 1 to 128 frames";
    else if (request->ranks > PATTERN_RANKS_MAX)
        what = "frames are counted of 65536 ranks at most";
    else if (request->receive_count >= PATTERN_RANKS_MAX)
        what = "a port receives one flow from each other rank at most";
    else if (!phase->load.unlimited && phase->load.rate_bps <= 0 && phase->load.rate_fps <= 0)
        what = "the phase has no load";
    else if (forwards > 0 && (request->send_count != 1 || request->receive_count != 1))
        what = "a forwarding port receives one flow and sends one";
    else if (phase->traffic == TRAFFIC_PINGPONG && conf->queues > 1)
        what = "a ping-pong uses one queue, and the port has several: set queues: 1";
    return what == NULL ? 0 : err_set(err, -EINVAL, "%s: %s", conf->name, what);
}

/* The bytes of a frame of the phase's i-th size, or of its i-th message; of messages that are drawn
 * the largest's. */
static int frame_bytes_of(const struct frame_lane *lane, uint32_t i, uint32_t *bytes,
                          struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    uint32_t around = lane->conf.offset + SIGNATURE_BYTES + lane->conf.outside;
    uint32_t room = around < lane->conf.most ? lane->conf.most - around : 0;

    *bytes = phase->messages && phase->pingpong.max_size > 0 ? phase->pingpong.max_size
                                                             : phase->sizes[i];
    if (!phase->messages)
        return 0;
    if (*bytes == 0 || *bytes > room)
        return err_set(err, -EINVAL,
                       "%s: a ping-pong message is one frame, of 1 to %u bytes here, not %u: "
                       "larger ones run over tcp and verbs",
                       lane->conf.name, room, *bytes);
    *bytes = frame_message_size(lane, *bytes);
    return 0;
}

/* The phase's list of sizes, or of its messages', becomes its different sizes and an order. */
static int make_sizes(struct frame_lane *lane, struct err *err)
{
    const struct frame_conf *conf = &lane->conf;
    const struct phase *phase = lane->lane.request.phase;
    bool drawn = phase->messages && phase->pingpong.max_size > 0;
    int rc;

    memset(lane->size_of_length, FRAME_NO_SIZE, sizeof lane->size_of_length);
    for (uint32_t i = 0; i < (drawn ? 1 : phase->size_count); i++) {
        uint32_t size, length;
        uint8_t *place;

        if ((rc = frame_bytes_of(lane, i, &size, err)) != 0 ||
            (rc = conf->ops->check_size(lane, size, err)) != 0)
            return rc;
        length = size - conf->outside;
        place = &lane->size_of_length[length];
        if (*place == FRAME_NO_SIZE) {
            *place = (uint8_t)lane->size_count++;
            lane->sizes[*place] = (struct frame_size){
                .frame_bytes = size,
                .payload_bytes = length - conf->offset,
                .cost = frame_cost(phase, size),
                .length = (uint16_t)length,
            };
        }
        lane->order[lane->order_count++] = *place;
    }
    return 0;
}

/* Frames that a flow sends until it has moved `bytes` of payload, in whole frames. */
static uint64_t frames_for(const struct frame_lane *lane, uint64_t bytes)
{
    uint64_t round = 0, frames;

    assert(lane->order_count > 0);
    for (uint32_t i = 0; i < lane->order_count; i++)
        round += lane->sizes[lane->order[i]].payload_bytes;
    assert(round > 0); /* each frame holds a signature */
    frames = bytes / round * lane->order_count;
    bytes %= round;
    for (uint32_t i = 0; bytes > 0; i++, frames++)
        bytes -= min32(lane->sizes[lane->order[i]].payload_bytes, (uint32_t)bytes);
    return frames;
}

/* Frames of so many flows in this phase; UINT64_MAX: until the stop. */
static uint64_t frames_of(const struct frame_lane *lane, uint64_t flows)
{
    const struct phase *phase = lane->lane.request.phase;
    uint64_t sources = lane->receiver.sources;

    if (phase->traffic == TRAFFIC_PROBE)
        return phase->probes * flows;
    if (phase->traffic != TRAFFIC_TRANSFER)
        return UINT64_MAX;
    if (lane->order_count == 1)
        return frames_for(lane, phase->transfer_bytes) * flows;
    return frames_for(lane, (phase->transfer_bytes + sources - 1) / sources) * sources * flows;
}

/* --- flows, streams and their memory -----------------------------------------------------------*/

/* How many streams and frames there are of the flows that the lane has. */
static void count_streams(struct frame_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    struct sender *sender = &lane->sender;
    struct receiver *receiver = &lane->receiver;
    /* What goes to all is sent once; a ping-pong's messages are no streams. */
    uint32_t flows = lane->prober.plays ? 0 : request->send_count;

    flows = min32(flows, lane->conf.to_all ? 1 : UINT32_MAX);
    sender->count = flows * receiver->sources;
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
    /* With several queues none alone knows that all is there. */
    receiver->left = lane->conf.queues > 1 ? UINT64_MAX : frames_of(lane, receiver->count);
    receiver->sampled = receiver->count > lane->conf.every_max;
}

static bool forwards(const struct frame_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;

    return !lane->prober.plays && request->send_count == 1 &&
           request->flows[0].role == PATTERN_FORWARD;
}

/* One piece of the kernel's zeros, whose pages are touched as they are used; each part of it begins
 * at a cache line. */
static int allocate(struct frame_lane *lane, uint16_t **far)
{
    const struct lane_request *request = &lane->lane.request;
    struct sender *sender = &lane->sender;
    struct receiver *receiver = &lane->receiver;
    size_t flows = (size_t)request->send_count + request->receive_count, bytes = CACHE_LINE;
    size_t came = (size_t)receiver->count * receiver->sources;
    bool timed =
        request->phase->latency.stamps && receiver->count <= TIMED_FLOWS_MAX && !lane->prober.plays;
    const struct {
        void *at; /* of the pointer; NULL stays where nothing is needed */
        size_t count, size;
    } parts[] = {
        {&lane->partners, flows, lane->conf.partner_bytes},
        {&lane->accounting.marks, flows, sizeof *lane->accounting.marks},
        {&receiver->flow_of, PATTERN_RANKS_MAX, sizeof *receiver->flow_of},
        {&receiver->streams, came, sizeof *receiver->streams},
        {&receiver->pasts, came, sizeof *receiver->pasts},
        {&receiver->reorderings, came, sizeof *receiver->reorderings},
        {far, came, SEQUENCE_WINDOW * sizeof **far},
        {&receiver->delay_stats, timed ? came : 0, sizeof *receiver->delay_stats},
        {&receiver->buckets, timed ? receiver->count : 0, sizeof *receiver->buckets},
        {&sender->streams, sender->count, sizeof *sender->streams},
        {&sender->index_of, sender->count, sizeof *sender->index_of},
        {&sender->templates, lane->size_count > 1 ? (size_t)sender->count * lane->size_count : 0,
         sizeof *sender->templates},
        {&lane->forwarder.queue, forwards(lane) ? FRAME_FORWARD_QUEUE : 0,
         sizeof *lane->forwarder.queue},
    };
    char *next;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        bytes += parts[i].count * parts[i].size + CACHE_LINE;
    lane->memory = calloc(bytes, 1);
    if (lane->memory == NULL)
        return -ENOMEM;
    next = lane->memory;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        next += (CACHE_LINE - (uintptr_t)next % CACHE_LINE) % CACHE_LINE;
        if (parts[i].count > 0)
            memcpy(parts[i].at, &next, sizeof next);
        next += parts[i].count * parts[i].size;
    }
    return 0;
}

/* All that is random in a lane: the n-th of its numbers. */
static uint64_t draw(const struct frame_lane *lane, uint64_t n)
{
    const struct lane_request *request = &lane->lane.request;

    return prng_bits(request->phase->seed ^ (uint64_t)request->rank << 32 ^ request->phase->number ^
                         (uint64_t)lane->conf.queue << 48,
                     n);
}

static void swap(struct sender_stream *a, struct sender_stream *b)
{
    uint32_t place = a->place;

    a->place = b->place;
    b->place = place;
}

/* Orders the places of the streams that are sent. Where flows send in turn, all flows' with one UDP
 * source port come before those with the next. Else they are shuffled (Fisher-Yates) by the
 * configuration's seed, so the order is the same in every run. Of frames that do not divide by a
 * flow's streams those with one more go first in each round, so that the last round, cut short, is
 * theirs. A forwarder's streams stay where the UDP source port finds them. */
static void order_streams(struct frame_lane *lane)
{
    struct sender *sender = &lane->sender;
    uint32_t sources = lane->receiver.sources, flows = sender->count / sources, front = 0;
    bool in_turn = lane->lane.request.phase->in_turn, forwards = lane->forwarder.queue != NULL;
    uint64_t quota = frames_of(lane, 1);

    for (uint32_t i = 0; i < sender->count; i++)
        sender->streams[i].place = in_turn ? i % flows * sources + i / flows : i;
    for (uint32_t i = sender->count; i > 1 && !in_turn && !forwards; i--)
        swap(&sender->streams[i - 1], &sender->streams[(draw(lane, i) >> 32) * i >> 32]);
    for (uint32_t i = 0; quota != UINT64_MAX && !forwards && i < sender->count; i++)
        if (sender->streams[i].place % sources < quota % sources)
            swap(&sender->streams[front++], &sender->streams[i]);
}

static int make_streams(struct frame_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct sender *sender = &lane->sender;
    struct receiver *receiver = &lane->receiver;
    uint32_t sources = receiver->sources, flows = sender->count / sources;
    size_t came = (size_t)receiver->count * sources;
    uint16_t *far = NULL;
    int rc = allocate(lane, &far);

    if (rc != 0)
        return rc;
    /* Touched here, in order: no page is missing later, and neighbours lie beside each other. */
    for (size_t i = 0; i < came; i++) {
        receiver->streams[i].side = &lane_receives(request)[i / sources].side;
        receiver->reorderings[i].far = &far[i * SEQUENCE_WINDOW];
        if (receiver->delay_stats != NULL)
            delay_stats_init(&receiver->delay_stats[i], (uint32_t)i / sources);
    }
    order_streams(lane);
    for (uint32_t i = 0; i < sender->count; i++) {
        uint32_t place = sender->streams[i].place;

        sender->index_of[place] = i;
        sender->streams[i].side = &request->flows[place / sources].side;
    }
    for (uint32_t i = 1; i < request->send_count && lane->conf.to_all; i++)
        request->flows[i].side.is_copy = true;
    return turns_make(&sender->turns, request->flows, flows);
}

/* How partners are reached, and how far ahead of the expected number their frames can be. */
static int meet_partners(struct frame_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct frame_conf *conf = &lane->conf;
    const struct load unlimited = {.unlimited = true}; /* ping-pong has none */
    const struct load *load = lane->prober.plays ? &unlimited : &request->phase->load;
    struct receiver *receiver = &lane->receiver;
    uint32_t least = FILL_BYTES;

    for (uint32_t i = 0; i < lane->size_count; i++)
        least = min32(least, lane->sizes[i].frame_bytes);
    /* What a sender may send at once, with what a late one may add; within the window a jump makes
     * no honest frame late. */
    receiver->limit.at_once = SEQUENCE_WINDOW + lane->options.burst + lane->options.catch_up +
                              (double)request->phase->burst.frames;
    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        const struct lane_flow *flow = &request->flows[i];
        uint64_t line_bps;
        int rc;

        if (i >= request->send_count && flow->src >= request->ranks)
            return err_set(err, -EINVAL, "%s: a flow comes from a rank that is not there",
                           conf->name);
        rc = conf->ops->resolve(lane, i, (char *)lane->partners + i * conf->partner_bytes,
                                &line_bps, err);
        if (rc != 0)
            return rc;
        if (i < request->send_count)
            continue;
        sequence_limit_add(&receiver->limit, flow, load, line_bps, least);
        receiver->flow_of[flow->src] = (uint16_t)(i - request->send_count + 1);
    }
    return 0;
}

/* In the records' words. */
static void describe(struct frame_lane *lane)
{
    const struct receiver *receiver = &lane->receiver;
    const char *times = receiver->delay_stats == NULL ? ""
                        : receiver->sampled           ? ", time of 2 in 128 frames"
                                                      : ", time of every frame";
    const char *sends = lane->forwarder.queue != NULL ? "received ones"
                        : lane->sender.count > 0      ? lane->conf.ops->send_name(lane)
                                                      : "none";
    char probes[64] = "";

    if (lane->prober.count > 0 && !lane->prober.plays)
        snprintf(probes, sizeof probes, ", %.3g probes/s a flow%s", lane->prober.rate_fps,
                 lane->conf.clock != NULL ? lane->conf.clock : "");
    if (lane->prober.plays)
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

int frame_lane_make(struct frame_lane *lane, const struct frame_conf *conf, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct frame_lane *first = (const struct frame_lane *)request->first_queue_lane;
    int rc = check(request, conf, err);

    lane->conf = *conf;
    memcpy(&lane->options, request->phase->options, sizeof lane->options);
    if (conf->receive_burst == 0)
        lane->conf.receive_burst =
            lane->options.burst > RECEIVE_BURST ? lane->options.burst : RECEIVE_BURST;
    lane->train = 1;
    lane->send = before_start;
    lane->flush_ns = lane->falls_ns = CLOCK_NEVER;
    if (rc == 0)
        rc = frame_single_make(lane, first != NULL ? &first->prober : NULL);
    lane->receiver.sources = lane->prober.plays ? 1 : conf->sources;
    if (rc == 0)
        rc = make_sizes(lane, err);
    if (rc == 0) {
        count_streams(lane);
        rc = make_streams(lane);
    }
    if (rc == 0)
        rc = meet_partners(lane, err);
    if (rc != 0)
        return err_set(err, rc, "%s: out of memory", conf->name);
    lane->responds = lane->prober.plays || lane->forwarder.queue != NULL;
    lane->receive = conf->ops->choose_receive(lane);
    describe(lane);
    return 0;
}

void frame_lane_drop(struct frame_lane *lane, void (*release)(void *frame))
{
    struct forwarder *forwarder = &lane->forwarder;

    for (; forwarder->head != forwarder->tail; forwarder->head++) {
        release(forwarder->queue[forwarder->head % FRAME_FORWARD_QUEUE].frame);
        ++*forwarder->dropped;
    }
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

        for (uint32_t j = 0; j < lane->size_count; j++)
            lane->conf.ops->write_template(lane, stream->place / sources,
                                           (uint16_t)(stream->place % sources), &lane->sizes[j],
                                           &templates[j]);
        stream->template = templates[0];
        stream->base = checksum_fold(
            signature_base((const struct signature *)(stream->template.bytes + lane->conf.offset)));
    }
}

/* --- begin ------------------------------------------------------------------------------------*/

/* The schedule begins at a seeded random moment of its first interval, so that the senders of a
 * phase do not march in step. The pace counts bits at layer 1, or frames. */
static void schedule(struct frame_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    const struct load *load = &phase->load;
    struct sender *sender = &lane->sender;
    double rate = load->unlimited ? 0 : load->rate_bps > 0 ? load->rate_bps : load->rate_fps;
    double part = (double)(draw(lane, 0) >> 11) * 0x1p-53;
    int64_t begin_ns = lane->options.window_frames > 0 ? phase->open_ns : phase->start_ns;
    uint64_t sum = 0;

    if (lane->lane.request.share_to > 0)
        rate *= lane->lane.request.share_to - lane->lane.request.share_from;
    assert(lane->order_count > 0);
    for (uint32_t i = 0; i < lane->order_count; i++)
        sum += lane->sizes[lane->order[i]].cost;
    sender->cost = (uint32_t)(sum / lane->order_count);
    if (phase->traffic == TRAFFIC_BURST) { /* all ports at once, and nothing is given up */
        pace_init(&sender->pace, rate, PACE_CATCH_UP_ALL, phase->start_ns);
        return;
    }
    pace_init(&sender->pace, rate, lane->options.catch_up,
              begin_ns + (rate > 0 ? (int64_t)(part * sender->cost / rate * 1e9) : 0));
    pace_dither(&sender->pace, lane->options.dither, sender->cost, draw(lane, 1));
}

void frame_lane_begin(struct frame_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;
    const struct phase *phase = base->request.phase;

    lane->state = FRAME_WAITS;
    lane->start_ns = lane->receiver.limit.start_ns = lane->timer_ns = phase->start_ns;
    base->stop_ns = phase->stop_ns;
    if (lane->conf.ops->begin != NULL)
        lane->conf.ops->begin(lane, now_ns);
    base->rx_done = lane->receiver.left == 0;
    if (lane->conf.falls_to > 0 && phase->traffic == TRAFFIC_STREAM)
        lane->falls_ns = phase->start_ns + (int64_t)lane->conf.falls_after_ns;
    if (lane->prober.plays)
        return;
    schedule(lane);
    prober_begin(&lane->prober, draw(lane, UINT64_MAX));
}
