/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `execution` records: the times of a schedule's repetitions.
 */
#ifndef ENGINE_REPORT_EXECUTION_H
#define ENGINE_REPORT_EXECUTION_H

#include "phase_run.h"

/* What a rank needed for the repetitions of its schedule. */
void report_execution(const struct phase_run *run, const struct phase_lane *lane);

#endif
