/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages there and back (doc/messages.md). The source of a flow sends one, the destination
 * verifies it whole and sends as many bytes of its own back on the same connection, the source
 * verifies those: that is a round trip. Then the next one begins.
 *
 * A round trip's time is taken before the call that sends the message's first bytes and behind the
 * one that reads the last byte that came back: what an application would wait.
 */
#include "clock.h"
#include "lane.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define EVENTS 64
#define DRAIN_LOOK_NS (100 * NS_PER_US)
#define TIME_MOST ((UINT64_C(1) << 48) - 1) /* of a sample: 78 hours */

static_assert(sizeof(struct sample) == 16, "layout");
static_assert(PATTERN_RANKS_MAX <= 65536, "a rank fits into a sample");

/* One connection, at either end: what goes out on it, and what comes. */
struct rally {
    int fd;
    struct tcp_source *source;
    struct tcp_sink *sink;
    struct flow_side *sent; /* where what goes out is counted */
    bool readable;          /* as far as is known: edge-triggered */
    bool writable;
    union { /* the way back's, at this end */
        struct tcp_source back_source;
        struct tcp_sink back_sink;
    };
    struct flow_side back;
    /* At the source's end: */
    struct tcp_out *out;
    bool under_way;
    bool counts; /* the message under way is one of those to be measured */
    int64_t begun_ns;
    uint64_t played;
    uint64_t measured;
    struct histogram *times;
    /* At the destination's: */
    struct tcp_in *in;
};

struct tcp_pingpong {
    struct rally *rallies; /* of the connections out, then of those in */
    struct histogram *histograms;
    struct sample *samples;
    size_t sample_count;
    size_t sample_room;
    struct rally *turn; /* partners random: whose message is under way; NULL: none */
    uint64_t played;    /* by all flows */
};

/* --- preparation --- */

int tcp_pingpong_check(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    const char *port = request->port->conf->name;

    if (phase->traffic != TRAFFIC_PINGPONG)
        return 0;
    if (phase->tcp.streams > 1)
        return err_set(err, -EINVAL,
                       "%s: a message there and back goes by one stream, not %u: leave "
                       "streams_per_flow out",
                       port, phase->tcp.streams);
    if (phase->tcp.zero_copy)
        return err_set(err, -EINVAL, "%s: messages there and back are copied: leave zero_copy out",
                       port);
    return 0;
}

/* The way back is a script of its own: the ranks change places, so that bytes which were merely
 * reflected do not pass for an answer. */
static struct tcp_script way_back(const struct tcp_script *there)
{
    struct tcp_script back = *there;

    back.src = there->dst;
    back.dst = there->src;
    return back;
}

static void plan_out(struct tcp_lane *lane, unsigned i)
{
    struct rally *rally = &lane->pingpong->rallies[i];
    struct tcp_out *out = &lane->outs[i];

    rally->out = out;
    rally->source = &out->source;
    rally->sent = out->flow->flow->side;
    rally->sink = &rally->back_sink;
    rally->sink->script = way_back(&out->source.script);
    rally->sink->side = &rally->back;
    rally->times = &lane->pingpong->histograms[i];
    tcp_cursor_start(&rally->sink->at, &rally->sink->script);
}

static void plan_in(struct tcp_lane *lane, unsigned i)
{
    struct rally *rally = &lane->pingpong->rallies[lane->out_count + i];
    struct tcp_in *in = &lane->ins[i];

    rally->in = in;
    rally->source = &rally->back_source;
    rally->source->script = way_back(&in->sink.script);
    rally->sent = &rally->back;
    rally->sink = &in->sink;
    tcp_cursor_start(&rally->source->at, &rally->source->script);
}

int tcp_pingpong_make(struct tcp_lane *lane)
{
    const struct pingpong_options *options = &lane->lane.request.phase->pingpong;
    struct tcp_pingpong *pingpong = calloc(1, sizeof *pingpong);

    if (pingpong == NULL)
        return -ENOMEM;
    lane->pingpong = pingpong;
    lane->poll = tcp_pingpong_poll;
    pingpong->rallies = calloc(lane->out_count + lane->in_count + 1, sizeof *pingpong->rallies);
    pingpong->histograms = calloc(lane->out_count + 1, sizeof *pingpong->histograms);
    if (pingpong->rallies == NULL || pingpong->histograms == NULL)
        return -ENOMEM;
    if (options->samples && lane->out_count > 0) {
        pingpong->sample_room = options->count * (options->random ? 1 : lane->out_count);
        pingpong->samples = malloc(pingpong->sample_room * sizeof *pingpong->samples);
        if (pingpong->samples == NULL)
            return -ENOMEM;
    }
    for (unsigned i = 0; i < lane->out_count; i++)
        plan_out(lane, i);
    for (unsigned i = 0; i < lane->in_count; i++)
        plan_in(lane, i);
    return 0;
}

void tcp_pingpong_free(struct tcp_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    free(lane->pingpong->rallies);
    free(lane->pingpong->histograms);
    free(lane->pingpong->samples);
    free(lane->pingpong);
}

/* --- bytes --- */

static void fault(struct tcp_lane *lane, const struct rally *rally, int why)
{
    if (rally->out != NULL)
        tcp_fault_out(lane, rally->out, why);
    else
        tcp_fault_in(lane, rally->in, why);
}

/* Sends what is left of the present message, as far as the kernel takes it. */
static void push(struct tcp_lane *lane, struct rally *rally)
{
    const struct tcp_cursor *at = &rally->source->at;
    uint64_t sequence = at->sequence;

    while (rally->writable && at->sequence == sequence) {
        struct msghdr message = {.msg_iov = lane->batch.iov};
        ssize_t sent;

        tcp_source_fill(rally->source, &lane->batch, at->length - at->position);
        message.msg_iovlen = lane->batch.count;
        sent = sendmsg(rally->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            fault(lane, rally, errno);
        rally->writable = sent == (ssize_t)lane->batch.bytes;
        if (sent > 0)
            tcp_source_sent(rally->source, (size_t)sent, rally->sent);
    }
}

/* Reads until nothing is left, or `messages` whole ones are there. Returns when the last bytes
 * came; 0: none did. */
static int64_t pull(struct tcp_lane *lane, struct rally *rally, uint64_t messages)
{
    int64_t at_ns = 0;

    while (rally->readable && !(rally->sink->at.sequence >= messages && rally->out != NULL)) {
        ssize_t got = recv(rally->fd, lane->buffer, TCP_READ_BYTES, MSG_DONTWAIT);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            rally->readable = false;
        } else if (got <= 0) {
            rally->readable = false;
            if (!(got == 0 && rally->sink->ended))
                fault(lane, rally, got < 0 ? errno : 0);
        } else {
            at_ns = clock_now();
            tcp_sink_feed(rally->sink, lane->buffer, (size_t)got);
        }
    }
    return at_ns;
}

/* --- the destination's end --- */

static void answer(struct tcp_lane *lane, struct rally *rally)
{
    struct tcp_in *in = rally->in;
    struct flow_side *side = in->flow->side;
    bool ended = in->sink.ended;
    int64_t at_ns = pull(lane, rally, UINT64_MAX);

    if (at_ns > 0) {
        side->first_ns = side->first_ns > 0 ? side->first_ns : at_ns;
        side->last_ns = at_ns;
        lane->lane.arrived_ns = at_ns;
    }
    while (rally->writable && rally->source->at.sequence < rally->sink->at.sequence)
        push(lane, rally);
    lane->ins_whole += !ended && in->sink.whole;
    lane->lane.received_all = lane->ins_whole == lane->in_count;
}

/* --- the source's end --- */

static bool is_measured(const struct phase *phase, int64_t begun_ns)
{
    return !phase_is_timed(phase) || (begun_ns >= phase->open_ns && begun_ns < phase->close_ns);
}

static void begin(struct tcp_lane *lane, struct rally *rally)
{
    const struct phase *phase = lane->lane.request.phase;
    struct flow_side *side = rally->sent;

    rally->begun_ns = clock_now();
    rally->under_way = true;
    rally->counts = is_measured(phase, rally->begun_ns);
    rally->measured += rally->counts;
    side->first_ns = side->first_ns > 0 ? side->first_ns : rally->begun_ns;
    push(lane, rally);
}

static void keep_sample(struct tcp_lane *lane, const struct rally *rally, uint64_t time_ns,
                        uint32_t size)
{
    struct tcp_pingpong *pingpong = lane->pingpong;
    int64_t since_ns = rally->begun_ns - lane->lane.request.phase->start_ns;

    if (pingpong->sample_count < pingpong->sample_room)
        pingpong->samples[pingpong->sample_count++] = (struct sample){
            .time_ns = time_ns < TIME_MOST ? time_ns : TIME_MOST,
            .dst = (uint16_t)rally->out->flow->flow->dst,
            .size = size,
            .begun_us = (uint32_t)(since_ns / NS_PER_US),
        };
}

/* Goes on with the message under way; true: it is back. */
static bool await_return(struct tcp_lane *lane, struct rally *rally)
{
    uint32_t size = rally->sink->at.length; /* known before its first byte */
    uint64_t time_ns;
    int64_t at_ns;

    if (rally->source->at.sequence == rally->played)
        push(lane, rally);
    at_ns = pull(lane, rally, rally->played + 1);
    if (rally->sink->at.sequence <= rally->played)
        return false;
    time_ns = (uint64_t)(at_ns - rally->begun_ns);
    if (rally->counts)
        histogram_add(rally->times, time_ns);
    keep_sample(lane, rally, time_ns, size);
    rally->under_way = false;
    rally->played++;
    rally->sent->last_ns = at_ns;
    rally->sent->intended = rally->sent->live.payload_bytes;
    lane->pingpong->played++;
    return true;
}

static bool is_over(const struct tcp_lane *lane, uint64_t played)
{
    uint64_t count = lane->lane.request.phase->pingpong.count;

    return clock_now() >= lane->lane.stop_ns || (count > 0 && played >= count);
}

/* Partners fixed: each flow has its own message under way. The loop goes round again only where
 * the answer was there at once. */
static void play(struct tcp_lane *lane, struct rally *rally)
{
    do {
        if (rally->under_way && !await_return(lane, rally))
            return;
        if (is_over(lane, rally->played))
            return;
        begin(lane, rally);
    } while (lane->lane.error.text[0] == '\0');
}

/* Partners random: one message under way, by a flow that is drawn for each. */
static void play_random(struct tcp_lane *lane)
{
    struct tcp_pingpong *pingpong = lane->pingpong;
    const struct lane_request *request = &lane->lane.request;
    uint64_t seed = draw_seed(request->phase->seed, request->rank, request->rank);

    do {
        uint64_t draw;

        if (pingpong->turn != NULL && !await_return(lane, pingpong->turn))
            return;
        draw = draw_bits(seed, pingpong->played);
        pingpong->turn = NULL;
        if (is_over(lane, pingpong->played))
            return;
        pingpong->turn = &pingpong->rallies[((draw >> 32) * lane->out_count) >> 32];
        begin(lane, pingpong->turn);
    } while (lane->lane.error.text[0] == '\0');
}

/* Says goodbye on every connection that has nothing under way and is to begin nothing more. */
static void end_rallies(struct tcp_lane *lane)
{
    const struct tcp_pingpong *pingpong = lane->pingpong;
    bool random = lane->lane.request.phase->pingpong.random;

    for (unsigned i = 0; i < lane->out_count; i++) {
        struct rally *rally = &pingpong->rallies[i];

        if (rally->out->ended || rally->under_way || (random && pingpong->turn != NULL) ||
            !is_over(lane, random ? pingpong->played : rally->played))
            continue;
        tcp_push_end(lane, rally->out);
    }
    if (lane->outs_ended < lane->out_count)
        return;
    if (lane->lane.stopped_ns == 0)
        lane->lane.stopped_ns = clock_now();
    lane->lane.sent_all = tcp_drained(lane);
}

/* --- the worker's call --- */

static void take_events(struct tcp_lane *lane)
{
    struct epoll_event events[EVENTS];
    int count;

    do {
        count = epoll_wait(lane->epoll, events, EVENTS, 0);
        for (int i = 0; i < count; i++) {
            struct rally *rally = &lane->pingpong->rallies[events[i].data.u32];

            rally->writable = rally->writable || (events[i].events & EPOLLOUT) != 0;
            rally->readable = rally->readable || (events[i].events & ~(uint32_t)EPOLLOUT) != 0;
        }
    } while (count == EVENTS);
}

int64_t tcp_pingpong_poll(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_pingpong *pingpong = lane->pingpong;
    struct lane *base = &lane->lane;
    bool random = base->request.phase->pingpong.random;

    take_events(lane);
    if (now_ns < base->request.phase->start_ns)
        return base->request.phase->start_ns;
    if (base->started_ns == 0) {
        base->started_ns = now_ns;
        for (unsigned i = 0; i < lane->out_count; i++)
            pingpong->rallies[i].fd = lane->outs[i].fd;
        for (unsigned i = 0; i < lane->in_count; i++)
            pingpong->rallies[lane->out_count + i].fd = lane->ins[i].fd;
    }
    for (unsigned i = 0; i < lane->in_count; i++)
        answer(lane, &pingpong->rallies[lane->out_count + i]);
    for (unsigned i = 0; i < lane->out_count && !random; i++)
        if (!lane->outs[i].ended)
            play(lane, &pingpong->rallies[i]);
    if (random && lane->out_count > 0 && !base->sent_all)
        play_random(lane);
    if (!base->sent_all)
        end_rallies(lane);
    if (lane->outs_ended == lane->out_count && !base->sent_all)
        return now_ns + DRAIN_LOOK_NS;
    return base->stop_ns > now_ns && !base->sent_all ? base->stop_ns : CLOCK_NEVER;
}

/* --- what was measured --- */

bool tcp_pingpong_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                          struct latency *sum)
{
    const struct tcp_lane *l = (const struct tcp_lane *)lane;

    if (l->pingpong == NULL || kind != LATENCY_PINGPONG)
        return false;
    for (unsigned i = 0; i < l->out_count; i++) {
        const struct rally *rally = &l->pingpong->rallies[i];

        /* By its ranks: with several queues the caller's flow is not the lane's own copy. */
        if (l->outs[i].flow->flow->src != flow->src || l->outs[i].flow->flow->dst != flow->dst)
            continue;
        histogram_merge(&sum->histogram, rally->times);
        sum->sent += rally->measured;
        return true;
    }
    return false;
}

size_t tcp_pingpong_samples(struct lane *lane, const struct sample **samples)
{
    const struct tcp_lane *l = (const struct tcp_lane *)lane;

    if (l->pingpong == NULL)
        return 0;
    *samples = l->pingpong->samples;
    return l->pingpong->sample_count;
}
