/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The start margin: how long after a barrier a phase starts.
 *
 * No I/O. A barrier tells all nodes when the last of them entered it; the start is a margin later.
 * Until then each must be through the barrier and its workers at their lanes, or it starts late.
 * How long that took at the last starts is noted, and the next margin follows from it; all nodes
 * take the longest that any of them wants. The first is a guess on the safe side.
 *
 * Two kinds of haste. A transfer waits for its slowest rank anyway and is often short, so that the
 * margin is most of what it costs to go from one to the next: it gets the median of what was needed
 * and half as much again. A stream lasts seconds and a late rank spoils its window: it gets four
 * times the longest, but for one outlier, and half a second at most unless starts need more.
 */
#ifndef ENGINE_START_MARGIN_H
#define ENGINE_START_MARGIN_H

#include <stdbool.h>
#include <stdint.h>

#define MARGIN_MEMORY 8

struct start_margin {
    int64_t first_ns;
    int64_t needed_ns[MARGIN_MEMORY]; /**< at the last starts, in a ring */
    uint32_t noted;
};

/**
 * @brief Begin without any start.
 *
 * @param margin Margin.
 * @param sleeps Cores are shared, so threads wake up late.
 */
void start_margin_init(struct start_margin *margin, bool sleeps);
/**
 * @brief Note one start: from the last entry into the barrier until this node's workers were at
 * their lanes.
 *
 * @param margin Margin.
 * @param needed_ns What the start needed, ns.
 */
void start_margin_note(struct start_margin *margin, int64_t needed_ns);
/**
 * @brief Return the margin of the next start.
 *
 * @param margin Margin.
 * @return ns.
 */
int64_t start_margin_next(const struct start_margin *margin, bool hastes);

#endif
