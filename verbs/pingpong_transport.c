/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping-pong over verbs (doc/reference/messages.md, pingpong.h). Each flow has a stream to its
 * destination, as any flow, and a reply stream. A round trip's time is taken before the message is
 * posted and after the reply was verified.
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

    if (options->queue_pairs > 1)
        return err_set(
            err, -EINVAL,
            "%s: a ping-pong uses one queue pair each way, not %u: leave queue_pairs out", label,
            options->queue_pairs);
    if (lane->forwards)
        return err_set(err, -EINVAL, "%s: a ping-pong is not forwarded", label);
    return 0;
}

static int make(struct verbs_lane *lane, struct err *err)
{
    (void)err;
    lane->pingpong = calloc(1, sizeof *lane->pingpong);
    lane->lane.pingpong = lane->pingpong;
    return lane->pingpong != NULL ? pingpong_make(lane->pingpong, &lane->lane) : -ENOMEM;
}

static void free_pingpong(struct verbs_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    pingpong_free(lane->pingpong);
    free(lane->pingpong);
}

/* --- the source --- */

static bool send_message(struct lane *base, const struct pingpong_turn *turn, int64_t now_ns)
{
    verbs_sender_post(&((struct verbs_lane *)base)->senders[turn->flow], 1, now_ns);
    return false;
}

static enum pingpong_state await_reply(struct lane *base, const struct pingpong_turn *turn,
                                       int64_t now_ns, int64_t *at_ns)
{
    struct verbs_lane *lane = (struct verbs_lane *)base;
    struct verbs_sender *sender = &lane->senders[turn->flow];
    const struct verbs_receiver *replies = verbs_replies_to(lane, turn->flow);
    struct flow_side *side = replies->base.flow->side;
    uint64_t begun = lane->pingpong->flows[turn->flow].begun;
    bool whole = side->corrupted == 0; /* a reply with a wrong byte is none */
    bool back;

    if (sender->at.sequence < begun)
        verbs_sender_post(sender, 1, now_ns);
    back = replies->verifier.at.sequence >= begun;
    if (!back && (lane->context.reliable || now_ns <= pingpong_due_ns(lane->pingpong, turn)))
        return PINGPONG_AWAITED;
    side->corrupted = 0;
    *at_ns = clock_now();
    return back && whole ? PINGPONG_BACK : PINGPONG_LOST;
}

static int64_t run_pingpong(struct verbs_lane *lane, int64_t now_ns)
{
    static const struct pingpong_hooks hooks = {.send = send_message, .await = await_reply};
    struct pingpong *game = lane->pingpong;
    const struct lane_request *request = &lane->lane.request;

    verbs_replies_send(lane, now_ns);
    (void)pingpong_run(game, &hooks, now_ns);
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
    .send = run_pingpong,
};
