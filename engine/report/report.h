/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The records of trials and phases: each kind is a table of keys and values in the file of what it
 * is about. doc/reference/node-protocol.md says what they mean.
 */
#ifndef ENGINE_REPORT_H
#define ENGINE_REPORT_H

#include "phase_run.h"

/* While a phase runs. `progress`: the rates of the node and its ports since the record before, at
 * *last_ns, which becomes now; in the window the mean since its first record. Interval results that
 * are due; `all`: those that are not, too. */
void report_progress(struct phase_run *run, int64_t *last_ns);
void report_interval(struct phase_run *run, bool all);
/* Before the start: says so if this node comes too late for the window. */
void report_late(const struct phase_run *run);

/* Of a phase that has ended, or of the probe of a plan's flows. */
void report_lane_errors(const struct phase_run *run);
void report_phase(struct phase_run *run);
void report_probe(const struct phase_run *run);
/* Single times of messages; what was computed beside them. */
void report_samples(const struct phase_run *run);
void report_compute(const struct phase_run *run);

void report_trial(const struct trial *trial, const char *state);

#endif
