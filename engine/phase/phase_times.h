/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a phase starts, how long it sends, and when the next may start; what is known of this node's
 * clock in it, and what it cost.
 */
#ifndef ENGINE_PHASE_TIMES_H
#define ENGINE_PHASE_TIMES_H

#include "phase_run.h"

/* Phases that follow each other by the clock: one barrier before the first, then a fixed step. */
bool phase_goes_by_clock(const struct phase_run *run);
int64_t phase_clock_step_ns(const struct phase_run *run);
/* How long this node's ports send, as far as they know. */
int64_t phase_own_sending_ns(const struct phase_run *run);

/* From a phase's start until it is held no longer. */
int64_t phase_clock_hold_ns(const struct phase_run *run);
/* Writes the agreed start and what follows from it into the template and each lane's phase. */
void phase_set_times(struct phase_run *run, int64_t start_ns);

/* How long partners may take to be connected. */
int64_t phase_timeout_ns(const struct phase_run *run);

/* What is known of this node's clock in the phase, as well as it is known now: when the phase is
 * over, better than before. */
struct phase_clock clock_of_phase(const struct phase_run *run);
struct phase_cost phase_cost_now(void);

#endif
