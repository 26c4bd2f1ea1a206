/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Interval results: what had come of each of a lane's received flows at every so many
 * milliseconds of the window, so that a link that sags for a moment is seen.
 *
 * The worker marks, the main thread takes the marks and writes records of them; neither waits for
 * the other. Counts in a mark are since the start of the phase: where there is no room for a mark,
 * or the worker comes too late for it, the next one covers a longer span and nothing is lost.
 */
#ifndef ENGINE_INTERVAL_RING_H
#define ENGINE_INTERVAL_RING_H

#include "clock.h"
#include "transport.h"

#include <stdint.h>

#define INTERVAL_ROOM 16u /**< marks that can wait to be taken */

/**
 * @brief When marks are made: at open_ns and every step_ns behind it, the last one at close_ns at
 * the latest (CLOCK_NEVER: as long as the phase runs).
 *
 * Local time.
 */
struct interval_grid {
    int64_t open_ns;
    int64_t step_ns;
    int64_t close_ns;
};

struct interval_mark {
    int64_t at_ns;   /**< when it was really made */
    uint32_t number; /**< in the grid: 0 is at open_ns */
    uint64_t *bytes; /**< payload by flow, since the phase began */
};

struct interval_ring; /* opaque */

/**
 * @brief Make room for the marks of so many flows.
 *
 * @param flows Flows of the lane.
 * @return Ring, for interval_ring_free(); NULL: out of memory.
 */
struct interval_ring *interval_ring_make(uint32_t flows);
/**
 * @brief Free a ring.
 *
 * @param ring Ring of marks.
 */
void interval_ring_free(struct interval_ring *ring);
/**
 * @brief Set when marks are made; before the worker begins.
 *
 * @param ring Ring of marks.
 * @param grid When marks are made.
 */
void interval_ring_begin(struct interval_ring *ring, const struct interval_grid *grid);

/**
 * @brief Make the mark that is due, if one is, of flows that are accounted; for the worker.
 *
 * @param ring Ring of marks.
 * @param flows Flows of the lane.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param most Flows that are marked at once, at most.
 * @return Time of the next mark; `now_ns`: this one has more flows; CLOCK_NEVER: none will be.
 */
int64_t interval_ring_mark(struct interval_ring *ring, const struct lane_flow *flows,
                           int64_t now_ns, uint32_t most);

/**
 * @brief Return how many marks wait; for the main thread.
 *
 * @param ring Ring of marks.
 * @return Marks.
 */
uint32_t interval_ring_waiting(const struct interval_ring *ring);
/**
 * @brief Return the first mark that waits, good until it is dropped; there is one.
 *
 * @param ring Ring of marks.
 * @return Mark.
 */
struct interval_mark interval_ring_first(const struct interval_ring *ring);
/**
 * @brief Drop the first mark that waits.
 *
 * @param ring Ring of marks.
 */
void interval_ring_drop(struct interval_ring *ring);

#endif
