/* SPDX-License-Identifier: BSD-3-Clause */
#include "sequence_limit.h"

#define SLACK 1.05 /* a gap that was refused in error is believed after 20 times its length */
#define FRAMES_PER_NS_MAX 0.15 /* 100 Gbit/s of 64-byte frames: no send queue takes more */

void sequence_limit_add(struct sequence_limit *limit, const struct lane_flow *flow,
                        const struct load *load, uint64_t line_bps, uint32_t least_bytes)
{
    double bits = 8.0 * (least_bytes + FRAME_OVERHEAD_L1);
    double part = load->part > 0 ? load->part : 1;
    double line = line_bps > 0 ? (double)line_bps : load->rate_bps / part;
    double frames_per_ns = (line > 0 ? line / bits : load->rate_fps / part) * SLACK / 1e9;

    /* A forwarder sends what has waited as fast as its driver takes it. */
    if (flow->role == PATTERN_FORWARD || load->unlimited)
        frames_per_ns = FRAMES_PER_NS_MAX;
    if (frames_per_ns > limit->frames_per_ns)
        limit->frames_per_ns = frames_per_ns;
}
