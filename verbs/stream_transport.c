/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams, transfers and connectivity checks over verbs: each flow sends at its pace on its queue
 * pairs in turn.
 */
#include "clock.h"
#include "lane.h"
#include "lane_options.h"

/* --- load --- */

/* The part of the line that is payload. */
static double payload_share(const struct verbs_lane *lane)
{
    double payload = 0;
    double line = 0;

    for (uint32_t i = 0; i < lane->lane.request.phase->size_count; i++) {
        payload += lane->sizes[i];
        line += verbs_line_bytes(lane, lane->sizes[i]);
    }
    return payload / line;
}

static void set_pace(struct verbs_lane *lane, struct verbs_flow *flow)
{
    const struct phase *phase = lane->lane.request.phase;
    double rate = flow_load_rate(&lane->lane.request, flow->flow, lane->sizes, payload_share(lane));
    double most = rate + rate * FLOW_LOAD_GATHER_NS / NS_PER_S + 1; /* as tcp */

    flow_load_pace(&flow->pace, phase, rate, phase->traffic == TRAFFIC_PROBE ? 1 : most);
    flow->unpaced = rate <= 0;
}

/* What a forwarder is asked for is what it has taken. */
static void account_intended(const struct verbs_lane *lane, struct verbs_flow *flow, int64_t now_ns)
{
    struct flow_side *side = flow->flow->side;

    if (flow->senders[0].from != NULL) {
        const struct flow_side *from = flow->senders[0].from->base.flow->side;

        side->intended = from->live.payload_bytes + from->corrupted;
    } else {
        flow_load_account(&lane->lane, &flow->pace, side, now_ns);
    }
}

static void start(struct verbs_lane *lane)
{
    for (uint32_t i = 0; i < lane->lane.request.send_count; i++)
        set_pace(lane, &lane->flows[i]);
}

/* --- sending --- */

/* What a forwarder has taken up to the eof is all that it will send. */
static void follow_eof(struct verbs_sender *sender)
{
    sender->stopping |= sender->from != NULL && sender->from->base.finished &&
                        sender->at.sequence == sender->from->verifier.at.sequence;
}

/* One stream's turn; returns the bytes posted. */
static uint64_t send_stream(struct verbs_sender *sender, uint64_t budget, bool stopping,
                            int64_t now_ns)
{
    uint64_t bytes = 0;

    if (sender->from != NULL)
        follow_eof(sender);
    else
        sender->stopping |= stopping;
    if (!verbs_sender_at_end(sender))
        bytes = verbs_sender_post(sender, budget, now_ns);
    if (verbs_sender_at_end(sender))
        verbs_sender_finish(sender, now_ns);
    return bytes;
}

/* Posts what the flow's load allows now; returns when the next is due. */
static int64_t send_flow(struct verbs_lane *lane, struct verbs_flow *flow, int64_t now_ns)
{
    bool stopping = now_ns >= lane->lane.stop_ns;
    bool free_running = flow->unpaced || stopping || flow->senders[0].from != NULL;
    uint64_t budget = free_running ? UINT64_MAX : pace_allow(&flow->pace, now_ns, 1, UINT32_MAX);
    uint64_t posted = 0;

    for (unsigned i = 0; i < lane->streams; i++) {
        struct verbs_sender *sender = &flow->senders[(flow->turn + i) % lane->streams];

        if (!sender->base.finished)
            posted += send_stream(sender, budget > posted ? budget - posted : 0, stopping, now_ns);
    }
    flow->turn++;
    if (posted > 0) {
        pace_spend(&flow->pace, posted);
        if (flow->flow->side->first_ns == 0)
            flow->flow->side->first_ns = now_ns;
    }
    return free_running || flow->pace.next_ns <= now_ns ? now_ns : flow->pace.next_ns;
}

static int64_t send_all(struct verbs_lane *lane, int64_t now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        struct verbs_flow *flow = &lane->flows[i];
        int64_t due_ns;

        due_ns = send_flow(lane, flow, now_ns);
        account_intended(lane, flow, now_ns);
        wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
    }
    return wake_ns;
}

const struct verbs_traffic verbs_traffic_stream = {.start = start, .send = send_all};
