/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a phase starts, how long it sends, and when the next may start.
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

#endif
