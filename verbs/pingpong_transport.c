/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages there and back (doc/messages.md, ../engine/pingpong.h). Each flow has a stream there, as
 * any flow, and a way back (back.c). A round trip's time is taken before the message is posted and
 * behind the verification of what came back.
 *
 * On an unreliable service a message or its answer may be lost: then the source gives it up and
 * goes on with the next, whose number tells the destination what it has missed.
 */
#include "clock.h"
#include "latency_probes.h"
#include "pingpong.h"

#include <errno.h>
#include <stdlib.h>

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

int verbs_pingpong_make(struct verbs_lane *lane)
{
    lane->pingpong = calloc(1, sizeof *lane->pingpong);
    return lane->pingpong != NULL ? pingpong_make(lane->pingpong, &lane->lane) : -ENOMEM;
}

void verbs_pingpong_free(struct verbs_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    pingpong_free(lane->pingpong);
    free(lane->pingpong);
}

/* --- the source's end --- */

static bool is_lost(const struct verbs_lane *lane, const struct pingpong_turn *turn, int64_t now_ns)
{
    const struct pingpong *game = lane->pingpong;

    return !lane->reliable &&
           now_ns - turn->begun_ns > pingpong_patience_ns(game, pingpong_bytes(game, turn));
}

/* Goes on with the message under way; true: it has ended. */
static bool await_return(struct verbs_lane *lane, struct pingpong_turn *turn, int64_t now_ns)
{
    struct pingpong *game = lane->pingpong;
    struct verbs_sender *sender = &lane->senders[turn->flow];
    const struct verbs_receiver *receiver =
        &lane->receivers[lane->lane.request.receive_count + turn->flow];
    struct flow_side *side = receiver->endpoint.flow->side;
    uint64_t begun = game->flows[turn->flow].begun;

    if (sender->at.sequence < begun)
        verbs_sender_post(sender, 1, now_ns);
    if (receiver->verifier.at.sequence >= begun && side->corrupted == 0)
        pingpong_back(game, turn, clock_now());
    else if (receiver->verifier.at.sequence >= begun || is_lost(lane, turn, now_ns))
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
    if (pingpong_begin(lane->pingpong, turn))
        verbs_sender_post(&lane->senders[turn->flow], 1, now_ns);
}

/* --- the worker's call --- */

int64_t verbs_pingpong_send(struct verbs_lane *lane, int64_t now_ns)
{
    struct pingpong *game = lane->pingpong;
    const struct lane_request *request = &lane->lane.request;

    verbs_replies_send(lane, now_ns);
    for (uint32_t i = 0; i < game->turn_count; i++)
        play(lane, &game->turns[i], now_ns);
    for (uint32_t i = 0; i < request->send_count; i++) {
        struct flow_side *side = request->sends[i].side;

        side->intended = side->live.payload_bytes;
        lane->senders[i].stopping |= pingpong_ended(game, i);
    }
    verbs_streams_finish(lane, now_ns);
    return CLOCK_NEVER;
}

/* --- what was measured --- */

bool verbs_lane_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                        struct latency *sum)
{
    const struct verbs_lane *l = (const struct verbs_lane *)lane;

    if (kind == LATENCY_ROUND_TRIP)
        return verbs_probes_latency(l, flow, sum);
    return kind == LATENCY_PINGPONG && l->pingpong != NULL &&
           pingpong_latency(l->pingpong, flow, sum);
}

size_t verbs_lane_samples(struct lane *lane, const struct sample **samples)
{
    const struct verbs_lane *l = (const struct verbs_lane *)lane;

    if (l->pingpong == NULL)
        return 0;
    *samples = l->pingpong->samples;
    return l->pingpong->sample_count;
}
