/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What nodes agree on in barriers: when a phase starts and how long it sends, and what it was like
 * on all of them.
 */
#ifndef ENGINE_PHASE_BARRIER_H
#define ENGINE_PHASE_BARRIER_H

#include "phase_run.h"

/* This node's lanes are ready; when do all start? 0, or -ECANCELED. */
int phase_barrier_start(struct phase_run *run);
/* All nodes are through: what the phase was like on all of them. 0, or -ECANCELED. */
int phase_barrier_end(struct phase_run *run);
/* The run ends in the middle: what there is was measured by this node alone. */
void phase_barrier_alone(struct phase_run *run);
/* What this start would have needed, for the start margin of the next. */
void phase_barrier_note_start(const struct phase_run *run);

#endif
