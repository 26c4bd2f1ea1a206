/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The times of a phase: what nodes agree on in the barriers before it (when it starts, how
 * long it sends) and behind it (what it was like on all of them).
 */
#ifndef ENGINE_PHASE_TIMES_H
#define ENGINE_PHASE_TIMES_H

#include "phase_run.h"

/**
 * @brief Agree on the start and write the phase's times, once this node's lanes are ready.
 *
 * Phases that follow each other by the clock have one barrier before the first, then a fixed step.
 *
 * @param run Phase.
 * @return 0, or -ECANCELED.
 */
int phase_agree_start(struct phase_run *run);
/**
 * @brief Agree on what the phase was like on all nodes, once this node's workers are done.
 *
 * @param run Phase; its outcome is written.
 * @param rc Below 0: the run ends in the middle, no barrier is entered, and what there is was
 *        measured by this node alone.
 * @return `rc`, or -ECANCELED.
 */
int phase_agree_end(struct phase_run *run, int rc);

/**
 * @brief Return how long a phase that goes by the clock is held for partners.
 *
 * @param run Phase.
 * @return ns since its start.
 */
int64_t phase_hold_ns(const struct phase_run *run);

/**
 * @brief Return what is known of this node's clock in a phase: once it is over, better than before.
 *
 * @param run Phase.
 * @return Shift and bound.
 */
struct phase_clock clock_of_phase(const struct phase_run *run);

#endif
