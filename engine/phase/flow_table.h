/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The flows that one of this node's ranks sends and receives in a phase, from the pattern's plan.
 */
#ifndef ENGINE_FLOW_TABLE_H
#define ENGINE_FLOW_TABLE_H

#include "phase_run.h"

/* 0 or -ENOMEM; what was made is the lane's, also in part. */
int flow_table_fill(const struct phase_run *run, struct phase_lane *lane);

#endif
