/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief When a phase starts, how long it sends, and when the next may start; what is known of this
 * node's clock in it, and what it cost. Times are in ns of CLOCK_MONOTONIC.
 */
#ifndef ENGINE_PHASE_TIMES_H
#define ENGINE_PHASE_TIMES_H

#include "phase_run.h"

/** @brief Returns whether phases follow each other by the clock: one barrier before the first, then
 * a fixed step. */
bool phase_goes_by_clock(const struct phase_run *run);

/** @brief Returns the time from the start of a phase that goes by the clock to the next one's. */
int64_t phase_clock_step_ns(const struct phase_run *run);

/** @brief Returns the time from the start of a phase that goes by the clock until it is held no
 * longer for partners. */
int64_t phase_clock_hold_ns(const struct phase_run *run);

/** @brief Returns how long this node's ports send if nothing hinders them, as far as they know. */
int64_t phase_own_sending_ns(const struct phase_run *run);

/**
 * @brief Writes the agreed start, and what follows from it, into the template and each lane's
 * phase.
 * @param run the phase, before its workers start
 * @param start_ns in local time
 */
void phase_set_times(struct phase_run *run, int64_t start_ns);

/** @brief Returns how long partners may take to be connected. */
int64_t phase_timeout_ns(const struct phase_run *run);

/** @brief Returns what is known of this node's clock in the phase: once it is over, better than
 * before. */
struct phase_clock clock_of_phase(const struct phase_run *run);

/** @brief Returns the CPU time that this process has used, and that the machine's CPUs have idled.
 */
struct phase_cost phase_cost_now(void);

#endif
