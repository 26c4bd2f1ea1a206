/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ways back: a lane whose messages are answered has a second stream for each flow, from its
 * destination to its source, on a queue pair of its own. The destination sends as many bytes for
 * each message that came (its wrong bytes are counted). Nobody sends what the other has no place
 * for, so no credits are told.
 */
#include "lane.h"

#include <errno.h>
#include <stdlib.h>

#define SEEN_BITS 64

/* As the flow, but its counts are its own. */
static void begin_back(struct verbs_lane *lane, uint32_t place, const struct lane_flow *flow)
{
    lane->backs[place] = *flow;
    lane->backs[place].side = &lane->back_sides[place];
}

int verbs_backs_make(struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    size_t count = (size_t)request->send_count + request->receive_count + 1;

    lane->backs = calloc(count, sizeof *lane->backs);
    lane->back_sides = calloc(count, sizeof *lane->back_sides);
    if (lane->backs == NULL || lane->back_sides == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < request->send_count; i++)
        begin_back(lane, i, &request->sends[i]);
    for (uint32_t i = 0; i < request->receive_count; i++)
        begin_back(lane, request->send_count + i, &request->receives[i]);
    return 0;
}

void verbs_backs_free(struct verbs_lane *lane)
{
    free(lane->backs);
    free(lane->back_sides);
}

/* What an unreliable service lost has not come; nor has, in time, what came behind a later one. */
static bool has_come(const struct verbs_in *in, uint64_t behind)
{
    return in->end.lane->reliable ||
           (behind <= SEEN_BITS && (in->check.seen >> (behind - 1) & 1) != 0);
}

static void answer(const struct verbs_in *in, struct verbs_out *out, int64_t now_ns)
{
    uint64_t due = in->check.at.sequence;

    while (out->at.sequence < due) {
        if (!has_come(in, due - out->at.sequence))
            verbs_out_skip(out, 1);
        else if (verbs_out_post(out, 1, now_ns) == 0)
            break;
    }
    if (in->end.ended && out->at.sequence == due)
        out->stopping = true;
}

void verbs_backs_answer(struct verbs_lane *lane, int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 0; i < request->receive_count; i++)
        answer(&lane->ins[i], &lane->outs[request->send_count + i], now_ns);
}

void verbs_backs_end(struct verbs_lane *lane, int64_t now_ns)
{
    for (unsigned i = 0; i < lane->out_count; i++) {
        struct verbs_out *out = &lane->outs[i];

        if (!out->end.ended && out->stopping)
            verbs_out_finish(out, now_ns);
        lane->outs_ended += out->end.ended && !out->closed;
        out->closed = out->end.ended;
    }
}
