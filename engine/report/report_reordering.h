/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `disorder` records: reordering of a flow (RFC 4737).
 */
#ifndef ENGINE_REPORT_REORDERING_H
#define ENGINE_REPORT_REORDERING_H

#include "phase_run.h"

/* How a flow's frames were out of order, if they were. */
void report_disorder(const struct phase_run *run, const struct phase_lane *lane,
                     const struct lane_flow *flow);

#endif
