/* SPDX-License-Identifier: BSD-3-Clause */
#include "reply_streams.h"

#include <errno.h>
#include <stdlib.h>

#define SEEN_BITS 64

/* As the flow, but its counts are its own. */
static void add_reply(struct verbs_lane *lane, uint32_t place, const struct lane_flow *flow)
{
    lane->replies[place] = *flow;
    lane->replies[place].side = &lane->reply_sides[place];
}

int verbs_replies_make(struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    size_t count = (size_t)request->send_count + request->receive_count + 1;

    lane->replies = calloc(count, sizeof *lane->replies);
    lane->reply_sides = calloc(count, sizeof *lane->reply_sides);
    if (lane->replies == NULL || lane->reply_sides == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < request->send_count; i++)
        add_reply(lane, i, &request->sends[i]);
    for (uint32_t i = 0; i < request->receive_count; i++)
        add_reply(lane, request->send_count + i, &request->receives[i]);
    return 0;
}

void verbs_replies_free(struct verbs_lane *lane)
{
    free(lane->replies);
    free(lane->reply_sides);
}

struct verbs_receiver *verbs_replies_to(const struct verbs_lane *lane, uint32_t flow)
{
    return &lane->receivers[lane->lane.request.receive_count + flow];
}

/* What an unreliable service lost has not come; nor has, in time, what came behind a later one. */
static bool has_come(const struct verbs_receiver *receiver, uint64_t behind)
{
    return receiver->base.context->reliable ||
           (behind <= SEEN_BITS && (receiver->verifier.seen >> (behind - 1) & 1) != 0);
}

static void answer(const struct verbs_receiver *receiver, struct verbs_sender *sender,
                   int64_t now_ns)
{
    uint64_t due = receiver->verifier.at.sequence;

    while (sender->at.sequence < due) {
        if (!has_come(receiver, due - sender->at.sequence))
            verbs_sender_skip(sender, 1);
        else if (verbs_sender_post(sender, 1, now_ns) == 0)
            break;
    }
    if (receiver->base.finished && sender->at.sequence == due)
        sender->stopping = true;
}

void verbs_replies_send(struct verbs_lane *lane, int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 0; i < request->receive_count; i++)
        answer(&lane->receivers[i], &lane->senders[request->send_count + i], now_ns);
}

void verbs_senders_finish(struct verbs_lane *lane, int64_t now_ns)
{
    for (unsigned i = 0; i < lane->sender_count; i++) {
        struct verbs_sender *sender = &lane->senders[i];

        if (!sender->base.finished && sender->stopping)
            verbs_sender_finish(sender, now_ns);
    }
}
