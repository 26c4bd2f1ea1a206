/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages there and back (doc/messages.md, ../pingpong.h). The source of a flow sends one, the
 * destination verifies it whole and sends as many bytes of its own back on the same connection, the
 * source verifies those: that is a round trip. Then the next one begins.
 *
 * A round trip's time is taken before the call that sends the message's first bytes and behind the
 * one that reads the last byte that came back: what an application would wait.
 */
#include "pingpong.h"
#include "clock.h"
#include "rally.h"

#include <errno.h>
#include <stdlib.h>

#define DRAIN_LOOK_NS (100 * NS_PER_US)

struct tcp_pingpong {
    struct pingpong game;
    struct tcp_rally *rallies; /* of the connections out, as the game's flows; then of those in */
};

/* --- preparation --- */

int tcp_pingpong_check(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    const char *port = request->port->ip.conf->name;

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
    struct tcp_pingpong *pingpong = calloc(1, sizeof *pingpong);
    int rc;

    if (pingpong == NULL)
        return -ENOMEM;
    lane->pingpong = pingpong;
    lane->poll = tcp_pingpong_poll;
    rc = pingpong_make(&pingpong->game, &lane->lane);
    pingpong->rallies = calloc(lane->out_count + lane->in_count + 1, sizeof *pingpong->rallies);
    if (rc != 0 || pingpong->rallies == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < lane->out_count; i++)
        tcp_rally_out(&pingpong->rallies[i], &lane->outs[i]);
    for (unsigned i = 0; i < lane->in_count; i++)
        tcp_rally_in(&pingpong->rallies[lane->out_count + i], &lane->ins[i]);
    return 0;
}

void tcp_pingpong_free(struct tcp_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    pingpong_free(&lane->pingpong->game);
    free(lane->pingpong->rallies);
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

/* Goes on with the message under way; true: it is back. */
static bool await_return(struct tcp_lane *lane, struct pingpong_turn *turn)
{
    struct pingpong *game = &lane->pingpong->game;
    struct tcp_rally *rally = &lane->pingpong->rallies[turn->flow];
    uint64_t begun = game->flows[turn->flow].begun;
    int64_t at_ns;

    if (rally->source->at.sequence < begun)
        tcp_rally_push(lane, rally);
    at_ns = tcp_rally_pull(lane, rally, begun);
    if (rally->sink->at.sequence < begun)
        return false;
    rally->sent->intended = rally->sent->live.payload_bytes;
    pingpong_back(game, turn, at_ns);
    return true;
}

/* The loop goes round again only where the answer was there at once. */
static void play(struct tcp_lane *lane, struct pingpong_turn *turn)
{
    do {
        if (turn->under_way && !await_return(lane, turn))
            return;
        if (!pingpong_begin(&lane->pingpong->game, turn))
            return;
        tcp_rally_push(lane, &lane->pingpong->rallies[turn->flow]);
    } while (lane->lane.error.text[0] == '\0');
}

/* Says goodbye on every connection that has nothing under way and is to begin nothing more. */
static void end_rallies(struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->out_count; i++)
        if (!lane->outs[i].ended && pingpong_ended(&lane->pingpong->game, i))
            tcp_push_end(lane, &lane->outs[i]);
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
    int64_t opens_ns = pingpong_opens_ns(base->request.phase);

    tcp_rally_events(pingpong->rallies, lane->epoll);
    if (now_ns < opens_ns)
        return opens_ns;
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    for (unsigned i = 0; i < lane->in_count; i++)
        answer(lane, &pingpong->rallies[lane->out_count + i]);
    for (uint32_t i = 0; i < pingpong->game.turn_count; i++)
        play(lane, &pingpong->game.turns[i]);
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
    return kind == LATENCY_PINGPONG && l->pingpong != NULL &&
           pingpong_latency(&l->pingpong->game, flow, sum);
}

size_t tcp_pingpong_samples(struct lane *lane, const struct sample **samples)
{
    const struct tcp_lane *l = (const struct tcp_lane *)lane;

    if (l->pingpong == NULL)
        return 0;
    *samples = l->pingpong->game.samples;
    return l->pingpong->game.sample_count;
}
