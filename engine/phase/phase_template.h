/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a trial's document asks of every port in a phase, as values with their defaults filled in.
 */
#ifndef ENGINE_PHASE_TEMPLATE_H
#define ENGINE_PHASE_TEMPLATE_H

#include "phase_run.h"

/* What all parts have in common. */
void phase_template_fill(struct phase_run *run);
/* The same for a lane, with what its part asks. */
void phase_template_apply(struct phase_lane *lane);

/* How long partners may take to be connected. */
int64_t phase_timeout_ns(const struct phase_run *run);

#endif
