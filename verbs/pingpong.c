/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages there and back (doc/messages.md, ../engine/pingpong.h). Each flow has a stream there, as
 * any flow, and a second one for the way back, from its destination to its source, on a queue pair
 * of its own: for each message that came (its wrong bytes are counted) the destination sends as
 * many bytes of its own. A round trip's time is taken before the message is posted and behind the
 * verification of what came back.
 *
 * With one message under way nobody sends what the other has no place for, so no credits are told.
 * On an unreliable service a message or its answer may be lost: then the source gives it up and
 * goes on with the next, whose number tells the destination what it has missed.
 */
#include "pingpong.h"
#include "clock.h"
#include "lane.h"

#include <errno.h>
#include <stdlib.h>

struct verbs_pingpong {
    struct pingpong game;
    struct lane_flow *backs; /* the ways back of what the lane sends, then of what it receives */
    struct flow_side *sides; /* their counts */
};

/* --- preparation --- */

int verbs_pingpong_check(const struct verbs_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const char *label = lane->port->label;

    if (lane->options.operation == VERBS_READ)
        return err_set(err, -EINVAL,
                       "%s: a read goes one way: its source posts nothing that could be timed; for "
                       "messages there and back use operation send or write",
                       label);
    if (lane->options.queue_pairs > 1)
        return err_set(
            err, -EINVAL,
            "%s: a message there and back goes by one queue pair each way, not %u: leave "
            "queue_pairs out",
            label, lane->options.queue_pairs);
    if (!lane->reliable && lane->options.operation == VERBS_WRITE && !lane->options.immediate)
        return err_set(err, -EINVAL,
                       "%s: over service uc a lost message is known by the number of the next one: "
                       "for messages there and back set immediate: true",
                       label);
    for (uint32_t i = 0; i < request->send_count; i++)
        if (request->sends[i].role == PATTERN_FORWARD)
            return err_set(err, -EINVAL, "%s: messages there and back are not forwarded", label);
    return 0;
}

/* One way back: as the flow, but its counts are its own. */
static void begin_back(struct verbs_pingpong *pingpong, uint32_t place,
                       const struct lane_flow *flow)
{
    pingpong->backs[place] = *flow;
    pingpong->backs[place].side = &pingpong->sides[place];
}

int verbs_pingpong_make(struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct verbs_pingpong *pingpong = calloc(1, sizeof *pingpong);
    size_t count = (size_t)request->send_count + request->receive_count + 1;
    int rc;

    if (pingpong == NULL)
        return -ENOMEM;
    lane->pingpong = pingpong;
    rc = pingpong_make(&pingpong->game, &lane->lane);
    pingpong->backs = calloc(count, sizeof *pingpong->backs);
    pingpong->sides = calloc(count, sizeof *pingpong->sides);
    if (rc != 0 || pingpong->backs == NULL || pingpong->sides == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < request->send_count; i++)
        begin_back(pingpong, i, &request->sends[i]);
    for (uint32_t i = 0; i < request->receive_count; i++)
        begin_back(pingpong, request->send_count + i, &request->receives[i]);
    return 0;
}

struct lane_flow *verbs_pingpong_back(const struct verbs_lane *lane, uint32_t place)
{
    return &lane->pingpong->backs[place];
}

void verbs_pingpong_free(struct verbs_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    pingpong_free(&lane->pingpong->game);
    free(lane->pingpong->backs);
    free(lane->pingpong->sides);
    free(lane->pingpong);
}

/* --- the destination's end --- */

/* What came is answered one for one; what an unreliable service lost is not. */
static void answer(const struct verbs_in *in, struct verbs_out *out, int64_t now_ns)
{
    uint64_t due = in->check.at.sequence - out->at.sequence;

    if (due > 1 && !in->end.lane->reliable)
        verbs_out_skip(out, due - 1);
    while (out->at.sequence < in->check.at.sequence && verbs_out_post(out, 1, now_ns) > 0)
        ;
    if (in->end.ended && out->at.sequence == in->check.at.sequence)
        out->stopping = true;
}

/* --- the source's end --- */

static bool is_lost(const struct verbs_lane *lane, const struct pingpong_turn *turn, int64_t now_ns)
{
    const struct pingpong *game = &lane->pingpong->game;

    return !lane->reliable &&
           now_ns - turn->begun_ns > pingpong_patience_ns(game, pingpong_bytes(game, turn));
}

/* Goes on with the message under way; true: it has ended. */
static bool await_return(struct verbs_lane *lane, struct pingpong_turn *turn, int64_t now_ns)
{
    struct pingpong *game = &lane->pingpong->game;
    struct verbs_out *out = &lane->outs[turn->flow];
    const struct verbs_in *in = &lane->ins[lane->lane.request.receive_count + turn->flow];
    struct flow_side *side = in->end.flow->side;
    uint64_t begun = game->flows[turn->flow].begun;

    if (out->at.sequence < begun)
        verbs_out_post(out, 1, now_ns);
    if (in->check.at.sequence >= begun && side->corrupted == 0)
        pingpong_back(game, turn, clock_now());
    else if (in->check.at.sequence >= begun || is_lost(lane, turn, now_ns))
        pingpong_give_up(game, turn); /* an answer with a wrong byte is none */
    else
        return false;
    side->corrupted = 0;
    return true;
}

static void play(struct verbs_lane *lane, struct pingpong_turn *turn, int64_t now_ns)
{
    if (turn->under_way && !await_return(lane, turn, now_ns))
        return;
    if (pingpong_begin(&lane->pingpong->game, turn))
        verbs_out_post(&lane->outs[turn->flow], 1, now_ns);
}

/* --- the worker's call --- */

static void end_stream(struct verbs_lane *lane, struct verbs_out *out, int64_t now_ns)
{
    if (!out->end.ended && out->stopping)
        verbs_out_finish(out, now_ns);
    lane->outs_ended += out->end.ended && !out->closed;
    out->closed = out->end.ended;
}

int64_t verbs_pingpong_send(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_pingpong *pingpong = lane->pingpong;
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 0; i < request->receive_count; i++)
        answer(&lane->ins[i], &lane->outs[request->send_count + i], now_ns);
    for (uint32_t i = 0; i < pingpong->game.turn_count; i++)
        play(lane, &pingpong->game.turns[i], now_ns);
    for (uint32_t i = 0; i < request->send_count; i++) {
        struct flow_side *side = request->sends[i].side;

        side->intended = side->live.payload_bytes;
        lane->outs[i].stopping |= pingpong_ended(&pingpong->game, i);
    }
    for (unsigned i = 0; i < lane->out_count; i++)
        end_stream(lane, &lane->outs[i], now_ns);
    return CLOCK_NEVER;
}

/* --- what was measured --- */

bool verbs_lane_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                        struct latency *sum)
{
    const struct verbs_lane *l = (const struct verbs_lane *)lane;

    return kind == LATENCY_PINGPONG && l->pingpong != NULL &&
           pingpong_latency(&l->pingpong->game, flow, sum);
}

size_t verbs_lane_samples(struct lane *lane, const struct sample **samples)
{
    const struct verbs_lane *l = (const struct verbs_lane *)lane;

    if (l->pingpong == NULL)
        return 0;
    *samples = l->pingpong->game.samples;
    return l->pingpong->game.sample_count;
}
