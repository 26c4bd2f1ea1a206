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
#include "rally.h"

#include <errno.h>
#include <stdlib.h>

#define DRAIN_LOOK_NS (100 * NS_PER_US)
#define TIME_MOST ((UINT64_C(1) << 48) - 1) /* of a sample: 78 hours */

static_assert(sizeof(struct sample) == 16, "layout");
static_assert(PATTERN_RANKS_MAX <= 65536, "a rank fits into a sample");

/* A flow whose messages go there and back, at its source. */
struct player {
    struct tcp_rally *rally;
    bool under_way;
    bool counts; /* the message under way is one of those to be measured */
    int64_t begun_ns;
    uint64_t played;
    uint64_t measured;
    struct histogram times;
};

struct tcp_pingpong {
    struct tcp_rally *rallies; /* of the connections out, then of those in */
    struct player *players;    /* of the connections out */
    struct sample *samples;
    size_t sample_count;
    size_t sample_room;
    struct player *turn; /* partners random: whose message is under way; NULL: none */
    uint64_t played;     /* by all flows */
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

int tcp_pingpong_make(struct tcp_lane *lane)
{
    const struct pingpong_options *options = &lane->lane.request.phase->pingpong;
    struct tcp_pingpong *pingpong = calloc(1, sizeof *pingpong);

    if (pingpong == NULL)
        return -ENOMEM;
    lane->pingpong = pingpong;
    lane->poll = tcp_pingpong_poll;
    pingpong->rallies = calloc(lane->out_count + lane->in_count + 1, sizeof *pingpong->rallies);
    pingpong->players = calloc(lane->out_count + 1, sizeof *pingpong->players);
    if (pingpong->rallies == NULL || pingpong->players == NULL)
        return -ENOMEM;
    if (options->samples && lane->out_count > 0) {
        pingpong->sample_room = options->count * (options->random ? 1 : lane->out_count);
        pingpong->samples = malloc(pingpong->sample_room * sizeof *pingpong->samples);
        if (pingpong->samples == NULL)
            return -ENOMEM;
    }
    for (unsigned i = 0; i < lane->out_count; i++) {
        tcp_rally_out(&pingpong->rallies[i], &lane->outs[i]);
        pingpong->players[i].rally = &pingpong->rallies[i];
    }
    for (unsigned i = 0; i < lane->in_count; i++)
        tcp_rally_in(&pingpong->rallies[lane->out_count + i], &lane->ins[i]);
    return 0;
}

void tcp_pingpong_free(struct tcp_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    free(lane->pingpong->rallies);
    free(lane->pingpong->players);
    free(lane->pingpong->samples);
    free(lane->pingpong);
}

/* --- the destination's end --- */

static void answer(struct tcp_lane *lane, struct tcp_rally *rally)
{
    struct tcp_in *in = rally->in;
    struct flow_side *side = in->flow->side;
    bool ended = in->sink.ended;
    int64_t at_ns = tcp_rally_answer(lane, rally);

    if (at_ns > 0) {
        side->first_ns = side->first_ns > 0 ? side->first_ns : at_ns;
        side->last_ns = at_ns;
        lane->lane.arrived_ns = at_ns;
    }
    lane->ins_whole += !ended && in->sink.whole;
    lane->lane.received_all = lane->ins_whole == lane->in_count;
}

/* --- the source's end --- */

static bool is_measured(const struct phase *phase, int64_t begun_ns)
{
    return !phase_is_timed(phase) || (begun_ns >= phase->open_ns && begun_ns < phase->close_ns);
}

static void begin(struct tcp_lane *lane, struct player *player)
{
    const struct phase *phase = lane->lane.request.phase;
    struct flow_side *side = player->rally->sent;

    player->begun_ns = clock_now();
    player->under_way = true;
    player->counts = is_measured(phase, player->begun_ns);
    player->measured += player->counts;
    side->first_ns = side->first_ns > 0 ? side->first_ns : player->begun_ns;
    tcp_rally_push(lane, player->rally);
}

static void keep_sample(struct tcp_lane *lane, const struct player *player, uint64_t time_ns,
                        uint32_t size)
{
    struct tcp_pingpong *pingpong = lane->pingpong;
    int64_t since_ns = player->begun_ns - lane->lane.request.phase->start_ns;

    if (pingpong->sample_count < pingpong->sample_room)
        pingpong->samples[pingpong->sample_count++] = (struct sample){
            .time_ns = time_ns < TIME_MOST ? time_ns : TIME_MOST,
            .dst = (uint16_t)player->rally->out->flow->flow->dst,
            .size = size,
            .begun_us = (uint32_t)(since_ns / NS_PER_US),
        };
}

/* Goes on with the message under way; true: it is back. */
static bool await_return(struct tcp_lane *lane, struct player *player)
{
    struct tcp_rally *rally = player->rally;
    uint32_t size = rally->sink->at.length; /* known before its first byte */
    uint64_t time_ns;
    int64_t at_ns;

    if (rally->source->at.sequence == player->played)
        tcp_rally_push(lane, player->rally);
    at_ns = tcp_rally_pull(lane, rally, player->played + 1);
    if (rally->sink->at.sequence <= player->played)
        return false;
    time_ns = (uint64_t)(at_ns - player->begun_ns);
    if (player->counts)
        histogram_add(&player->times, time_ns);
    keep_sample(lane, player, time_ns, size);
    player->under_way = false;
    player->played++;
    player->rally->sent->last_ns = at_ns;
    player->rally->sent->intended = player->rally->sent->live.payload_bytes;
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
static void play(struct tcp_lane *lane, struct player *player)
{
    do {
        if (player->under_way && !await_return(lane, player))
            return;
        if (is_over(lane, player->played))
            return;
        begin(lane, player);
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
        pingpong->turn = &pingpong->players[((draw >> 32) * lane->out_count) >> 32];
        begin(lane, pingpong->turn);
    } while (lane->lane.error.text[0] == '\0');
}

/* Says goodbye on every connection that has nothing under way and is to begin nothing more. */
static void end_rallies(struct tcp_lane *lane)
{
    const struct tcp_pingpong *pingpong = lane->pingpong;
    bool random = lane->lane.request.phase->pingpong.random;

    for (unsigned i = 0; i < lane->out_count; i++) {
        struct player *player = &pingpong->players[i];

        if (player->rally->out->ended || player->under_way || (random && pingpong->turn != NULL) ||
            !is_over(lane, random ? pingpong->played : player->played))
            continue;
        tcp_push_end(lane, player->rally->out);
    }
    if (lane->outs_ended < lane->out_count)
        return;
    if (lane->lane.stopped_ns == 0)
        lane->lane.stopped_ns = clock_now();
    lane->lane.sent_all = tcp_drained(lane);
}

/* --- the worker's call --- */

int64_t tcp_pingpong_poll(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_pingpong *pingpong = lane->pingpong;
    struct lane *base = &lane->lane;
    bool random = base->request.phase->pingpong.random;
    int64_t begins_ns = base->request.phase->start_ns + base->request.phase->pingpong.quiet_ns;

    tcp_rally_events(pingpong->rallies, lane->epoll);
    if (now_ns < begins_ns)
        return begins_ns;
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    for (unsigned i = 0; i < lane->in_count; i++)
        answer(lane, &pingpong->rallies[lane->out_count + i]);
    for (unsigned i = 0; i < lane->out_count && !random; i++)
        if (!lane->outs[i].ended)
            play(lane, &pingpong->players[i]);
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

    if (kind == LATENCY_ROUND_TRIP)
        return tcp_probes_latency(l, flow, sum);
    if (l->pingpong == NULL || kind != LATENCY_PINGPONG)
        return false;
    for (unsigned i = 0; i < l->out_count; i++) {
        const struct player *player = &l->pingpong->players[i];

        /* By its ranks: with several queues the caller's flow is not the lane's own copy. */
        if (l->outs[i].flow->flow->src != flow->src || l->outs[i].flow->flow->dst != flow->dst)
            continue;
        histogram_merge(&sum->histogram, &player->times);
        sum->sent += player->measured;
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
