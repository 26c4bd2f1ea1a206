/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `samples` and `compute` records.
 */
#ifndef ENGINE_REPORT_MESSAGES_H
#define ENGINE_REPORT_MESSAGES_H

#include "phase_run.h"

/* Single times of messages; what was computed beside them. */
void report_samples(const struct phase_run *run);
void report_compute(const struct phase_run *run);
void report_compute_failed(const struct phase_run *run, int code);

#endif
