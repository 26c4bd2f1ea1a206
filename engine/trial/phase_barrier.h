/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What nodes agree on in barriers: when a phase starts and how long it sends, and what it
 * was like on all of them.
 */
#ifndef ENGINE_PHASE_BARRIER_H
#define ENGINE_PHASE_BARRIER_H

#include "phase_run.h"

/** @brief This node's lanes are ready; when do all start? 0, or -ECANCELED. */
int phase_barrier_start(struct phase_run *run);
/**
 * @brief All nodes are through: what the phase was like on all of them.
 *
 * `rc` below 0: the run ends in the middle, no barrier is entered, and what there is was measured
 * by this node alone. Returns `rc`, or -ECANCELED.
 */
int phase_barrier_end(struct phase_run *run, int rc);
/** @brief What this start would have needed, for the start margin of the next. */
void phase_barrier_note_start(const struct phase_run *run);

#endif
