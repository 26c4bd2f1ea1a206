/* SPDX-License-Identifier: BSD-3-Clause */
#include "reply_streams.h"

#define SEEN_BITS 64

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

/* Sends a reply to each message that came. */
static void send_replies(const struct verbs_receiver *receiver, struct verbs_sender *sender,
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
        send_replies(&lane->receivers[i], &lane->senders[request->send_count + i], now_ns);
}

void verbs_senders_finish(struct verbs_lane *lane, int64_t now_ns)
{
    for (unsigned i = 0; i < lane->sender_count; i++) {
        struct verbs_sender *sender = &lane->senders[i];

        if (!sender->base.finished && sender->stopping)
            verbs_sender_finish(sender, now_ns);
    }
}
