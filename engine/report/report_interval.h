/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `interim` records: interval results while a phase runs.
 */
#ifndef ENGINE_REPORT_INTERVAL_H
#define ENGINE_REPORT_INTERVAL_H

#include "phase_run.h"

/* The interim results that are due; `all`: those that are not, too. */
void report_interim(struct phase_run *run, bool all);

#endif
