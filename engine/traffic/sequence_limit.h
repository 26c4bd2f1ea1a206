/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief How far ahead of the expected number a frame's number can be: as far as the fastest sender
 * can have come since the last frame.
 *
 * A greater jump is forged, and refused: otherwise it would make every honest frame behind it late.
 */
#ifndef ENGINE_SEQUENCE_LIMIT_H
#define ENGINE_SEQUENCE_LIMIT_H

#include "sequence.h"
#include "transport.h"

#define SEQUENCE_CLOCKS_NS 1000000 /**< by which the clocks of two ends may differ */

struct sequence_limit {
    double frames_per_ns; /**< of the fastest sender; raised by each flow */
    double at_once;
    int64_t start_ns; /**< the phase's: stamps count from there; 0: not known yet */
};

/**
 * @brief Return what a sender may send at once, with what a late one may add.
 *
 * Within the window a jump makes no honest frame late.
 *
 * @return Frames.
 */
static inline double sequence_limit_at_once(uint32_t burst, uint32_t catch_up)
{
    return SEQUENCE_WINDOW + burst + catch_up;
}

/**
 * @brief Take a flow into account.
 *
 * @param limit Limit.
 * @param flow Flow.
 * @param load Load.
 */
void sequence_limit_add(struct sequence_limit *limit, const struct lane_flow *flow,
                        const struct load *load, uint64_t line_bps, uint32_t least_bytes);

/**
 * @brief Return when a frame was sent, since the start: its stamp, unless the stamp is of the
 * future or before that of an earlier frame.
 *
 * Before the start is known, no stamp says anything.
 *
 * @param limit Limit.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return ns since the start.
 */
static inline int64_t sequence_limit_stamp(const struct sequence_limit *limit, uint64_t stamp_ns,
                                           int64_t earlier_ns, int64_t now_ns)
{
    int64_t newest_ns = now_ns - limit->start_ns + SEQUENCE_CLOCKS_NS;
    int64_t sent_ns = (int64_t)stamp_ns < newest_ns ? (int64_t)stamp_ns : newest_ns;

    if (limit->start_ns == 0)
        return earlier_ns;
    return sent_ns > earlier_ns ? sent_ns : earlier_ns;
}

/**
 * @brief Return whether a sender can have numbered so many frames.
 *
 * Stamps tell how long it had for them, also where frames waited in a queue or here. Where clocks
 * differ by more than they should, the time between arrivals is all there is. Before the start is
 * known, a sender has had no time.
 *
 * @param limit Limit.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: it can.
 */
static inline bool sequence_limit_allows(const struct sequence_limit *limit, int32_t ahead,
                                         int64_t sent_ns, int64_t last_ns, int64_t now_ns)
{
    int64_t heard_ns = now_ns - (last_ns > 0 ? last_ns : limit->start_ns);

    if (limit->start_ns == 0)
        return ahead <= limit->at_once;
    return ahead <= limit->at_once +
                        limit->frames_per_ns * (double)(sent_ns > heard_ns ? sent_ns : heard_ns);
}

#endif
