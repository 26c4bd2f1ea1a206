/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `clock` records: this node's clock in a phase.
 */
#ifndef ENGINE_REPORT_CLOCK_H
#define ENGINE_REPORT_CLOCK_H

#include "phase_run.h"

/* Writes the record of run->clock. */
void report_clock(const struct phase_run *run);

#endif
