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
