/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow_rate.h"

#include "clock.h"

#define PROBE_NS (10 * NS_PER_MS) /* between probes */
#define CATCH_UP_MOST 4e9         /* bytes: a pace counts them in 32 bits */
#define PROBES_SHARE 0.001        /* of the line, by all probes that a port sends ... */
#define PROBES_FPS 1000.0         /* ... and at most so many a flow */

uint64_t flow_load_bytes(const struct phase *phase, const uint32_t *sizes, unsigned streams,
                         unsigned stream)
{
    uint64_t total = 0;

    switch (phase->traffic) {
    case TRAFFIC_TRANSFER:
        return phase->transfer_bytes / streams + (stream < phase->transfer_bytes % streams);
    case TRAFFIC_PROBE:
        for (uint32_t i = 0; i < phase->probes; i++)
            total += sizes[i % phase->size_count];
        return total;
    default:
        return FLOW_ENDLESS;
    }
}

double flow_load_rate(const struct lane_request *request, const struct lane_flow *flow,
                      const uint32_t *sizes, double payload_share)
{
    const struct phase *phase = request->phase;
    double share = flow->share > 0 ? flow->share : 1.0 / request->send_count;
    double mean = 0;

    for (uint32_t i = 0; i < phase->size_count; i++)
        mean += (double)sizes[i] / phase->size_count;
    if (phase->traffic == TRAFFIC_PROBE)
        return mean * NS_PER_S / PROBE_NS;
    if (phase->load.unlimited)
        return 0;
    if (phase->load.rate_bps > 0)
        return phase->load.rate_bps / 8 * share * payload_share;
    return phase->load.rate_fps * mean * share;
}

void flow_load_pace(struct pace *pace, const struct phase *phase, double rate, double catch_up)
{
    pace_init(pace, rate, (uint32_t)(catch_up < CATCH_UP_MOST ? catch_up : CATCH_UP_MOST),
              phase->start_ns);
}

void flow_load_account(const struct lane *lane, const struct pace *pace, struct flow_side *side,
                       int64_t now_ns)
{
    const struct phase *phase = lane->request.phase;
    int64_t until_ns = now_ns < lane->stop_ns ? now_ns : lane->stop_ns;

    if (phase->traffic == TRAFFIC_TRANSFER)
        side->intended = phase->transfer_bytes;
    else if (phase->traffic == TRAFFIC_STREAM)
        side->intended = (uint64_t)pace_intended(pace, until_ns);
    if (side->intended < side->live.payload_bytes)
        side->intended = side->live.payload_bytes;
}

double flow_load_probe_rate(const struct lane_request *request, double line_bytes)
{
    double asked = request->phase->latency.probe_fps;
    double share_fps;

    if (request->phase->traffic != TRAFFIC_STREAM || asked == 0)
        return 0;
    if (asked > 0)
        return asked;
    if (request->line_rate_bps == 0 || request->send_count == 0)
        return PROBES_FPS;
    share_fps =
        PROBES_SHARE * (double)request->line_rate_bps / (8 * line_bytes) / request->send_count;
    return share_fps < PROBES_FPS ? share_fps : PROBES_FPS;
}
