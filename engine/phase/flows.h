/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a port is asked in a phase: its flows, sizes, options and load.
 */
#ifndef ENGINE_FLOWS_H
#define ENGINE_FLOWS_H

#include "phase_run.h"

/* What all parts of a trial have in common in this phase. */
void flows_fill_template(struct phase_run *run);
/* The same for a lane, with what its part asks. */
void flows_apply_template(struct phase_lane *lane);
/* The flows that the lane's rank sends and receives, from the pattern's plan. 0 or -ENOMEM; what
 * was made is the lane's, also in part. */
int flows_make(const struct phase_run *run, struct phase_lane *lane);
/* The port's load. -EINVAL with the sentence when its line or this node's cores can't carry it. */
int flows_set_load(struct phase_run *run, struct phase_lane *lane, struct err *err);

#endif
