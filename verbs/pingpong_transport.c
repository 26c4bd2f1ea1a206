/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping-pong over verbs (doc/messages.md, pingpong.h). Each flow has a stream to its destination, as
 * any flow, and a reply stream. A round trip's time is taken before the message is posted and after
 * the reply was verified.
 *
 * On an unreliable service a message or its reply may be lost: then the source gives it up and goes
 * on with the next, whose number tells the destination what it has missed.
 */
#include "clock.h"
#include "lane.h"
#include "pingpong.h"
#include "reply_streams.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS 4u /* late messages of an unreliable service need a place, too */

/* --- preparation --- */

static int check(const struct verbs_lane *lane, struct err *err)
{
    const struct verbs_options *options = &lane->context.options;
    const char *label = lane->context.port->label;

    if (options->operation == VERBS_READ)
        return err_set(err, -EINVAL,
                       "%s: a read goes one way: its source posts nothing that could be timed; for "
                       "messages there and back use operation send or write",
                       label);
    if (options->queue_pairs > 1)
        return err_set(
            err, -EINVAL,
            "%s: a message there and back goes by one queue pair each way, not %u: leave "
            "queue_pairs out",
            label, options->queue_pairs);
    if (!lane->context.reliable && options->operation == VERBS_WRITE && !options->immediate)
        return err_set(err, -EINVAL,
                       "%s: over service uc a lost message is known by the number of the next one: "
                       "for messages there and back set immediate: true",
                       label);
    if (lane->forwards)
        return err_set(err, -EINVAL, "%s: messages there and back are not forwarded", label);
    return 0;
}

static int make(struct verbs_lane *lane, struct err *err)
{
    (void)err;
    lane->pingpong = calloc(1, sizeof *lane->pingpong);
    return lane->pingpong != NULL ? pingpong_make(lane->pingpong, &lane->lane) : -ENOMEM;
}

static void free_pingpong(struct verbs_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    pingpong_free(lane->pingpong);
    free(lane->pingpong);
}

static uint32_t largest(const struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    uint32_t most = phase->pingpong.size_most;

    for (uint32_t i = 0; i < phase->size_count && phase->pingpong.size_most == 0; i++)
        most = lane->sizes[i] > most ? lane->sizes[i] : most;
    return most;
}

/* --- the source --- */

static bool is_lost(const struct verbs_lane *lane, const struct pingpong_turn *turn, int64_t now_ns)
{
    const struct pingpong *game = lane->pingpong;

    return !lane->context.reliable &&
           now_ns - turn->begun_ns > pingpong_patience_ns(game, pingpong_bytes(game, turn));
}

/* Goes on with the message in flight; true: it has ended. */
static bool await_reply(struct verbs_lane *lane, struct pingpong_turn *turn, int64_t now_ns)
{
    struct pingpong *game = lane->pingpong;
    struct verbs_sender *sender = &lane->senders[turn->flow];
    const struct verbs_receiver *replies = verbs_replies_to(lane, turn->flow);
    struct flow_side *side = replies->base.flow->side;
    uint64_t begun = game->flows[turn->flow].begun;

    if (sender->at.sequence < begun)
        verbs_sender_post(sender, 1, now_ns);
    if (replies->verifier.at.sequence >= begun && side->corrupted == 0)
        pingpong_back(game, turn, clock_now());
    else if (replies->verifier.at.sequence >= begun || is_lost(lane, turn, now_ns))
        pingpong_give_up(game, turn); /* a reply with a wrong byte is none */
    else
        return false;
    side->corrupted = 0;
    return true;
}

static int64_t run_pingpong(struct verbs_lane *lane, int64_t now_ns)
{
    struct pingpong *game = lane->pingpong;
    const struct lane_request *request = &lane->lane.request;

    verbs_replies_send(lane, now_ns);
    for (uint32_t i = 0; i < game->turn_count; i++) {
        struct pingpong_turn *turn = &game->turns[i];

        if (turn->under_way && !await_reply(lane, turn, now_ns))
            continue;
        if (pingpong_begin(game, turn))
            verbs_sender_post(&lane->senders[turn->flow], 1, now_ns);
    }
    for (uint32_t i = 0; i < request->send_count; i++) {
        struct flow_side *side = request->sends[i].side;

        side->intended = side->live.payload_bytes;
        lane->senders[i].stopping |= pingpong_ended(game, i);
    }
    verbs_senders_finish(lane, now_ns);
    return CLOCK_NEVER;
}

const struct verbs_traffic verbs_traffic_pingpong = {
    .has_replies = true,
    .may_rest = true,
    .slots = SLOTS,
    .check = check,
    .make = make,
    .free = free_pingpong,
    .largest = largest,
    .send = run_pingpong,
};
