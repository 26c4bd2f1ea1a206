/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe_frames.h"

#include "counters.h"

double probe_rate(const struct probe_budget *budget)
{
    double bits = 8.0 * (budget->frame_bytes + FRAME_OVERHEAD_L1);
    double frames = (double)budget->line_rate_bps / bits, rate;

    if (budget->line_rate_bps == 0 && budget->load.unlimited)
        return PROBE_FLOW_FPS;
    if (budget->line_rate_bps == 0)
        frames = budget->load.rate_bps > 0 ? budget->load.rate_bps / bits : budget->load.rate_fps;
    rate = PROBE_LOAD_SHARE * frames / (budget->flows > 0 ? budget->flows : 1);
    return rate < PROBE_FLOW_FPS ? rate : PROBE_FLOW_FPS;
}

double probe_displaces(const struct probe_budget *budget, double rate_fps)
{
    const struct load *load = &budget->load;
    double line_bps = (double)budget->line_rate_bps;
    double bits = 8.0 * (budget->frame_bytes + FRAME_OVERHEAD_L1);
    double probes_bps = rate_fps * budget->flows * bits;
    double load_bps = load->unlimited      ? line_bps
                      : load->rate_bps > 0 ? load->rate_bps
                                           : load->rate_fps * bits;
    double excess_bps = load_bps + probes_bps - line_bps;

    if (line_bps == 0 || probes_bps == 0 || excess_bps <= 0)
        return 0;
    return excess_bps < probes_bps ? excess_bps / probes_bps : 1;
}
