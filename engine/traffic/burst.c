/* SPDX-License-Identifier: BSD-3-Clause */
#include "burst.h"

#include <math.h>

uint64_t burst_of_port(uint64_t frames, double part)
{
    double own = round((double)frames * part);

    return own > 1 ? (uint64_t)own : 1;
}

/* What flow `i` of the port's `flows` sends; `before`: the sum of the shares before it. */
static uint64_t burst_of_flow(uint64_t frames, const struct lane_flow *flow, uint32_t i,
                              uint32_t flows, double before)
{
    if (flow->share <= 0)
        return frames / flows + (i < frames % flows);
    return (uint64_t)(llround((double)frames * (before + flow->share)) -
                      llround((double)frames * before));
}

uint64_t burst_of_lane(const struct lane_request *request)
{
    uint64_t frames = request->phase->burst.own_frames;
    bool alone = request->port_sends == NULL;
    const struct lane_flow *sends = alone ? request->sends : request->port_sends;
    uint32_t flows = alone ? request->send_count : request->port_send_count, own = 0;
    uint64_t sum = 0;
    double before = 0;

    for (uint32_t i = 0; i < flows && own < request->send_count; i++) {
        if (sends[i].dst == request->sends[own].dst) {
            sum += burst_of_flow(frames, &sends[i], i, flows, before);
            own++;
        }
        before += sends[i].share;
    }
    return sum;
}
