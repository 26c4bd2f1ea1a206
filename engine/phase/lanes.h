/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lanes of a phase on this node: which flows each port sends and receives, at which load; their
 * preparation and release.
 */
#ifndef ENGINE_LANES_H
#define ENGINE_LANES_H

#include "phase_run.h"

/* Begins this node's lanes of a phase: which flows, at which load. A failure is kept in the run
 * until it is the phase's turn. */
int lanes_begin(struct phase_run *run);
/* Goes on with them without waiting, as far as PHASE_READY: partners' addresses fetched, lanes
 * prepared and connected. 0: all are ready. -EAGAIN: not yet, and the sentence may name a partner
 * that is waited for. `ahead`: other phases run before this one and may give memory back. */
int lanes_advance(struct phase_run *run, bool ahead, struct err *err);
/* The same to the end. -ECANCELED when it fails or has failed (node->err says why). */
int lanes_prepare(struct phase_run *run);
/* What is readable when lanes_advance would get further; -1: nothing tells. */
int lanes_connect_fd(const struct phase_run *run);
/* Releases what was made, also in part: PHASE_EMPTY. */
void lanes_release(struct phase_run *run);
/* Whose lane this is. */
const struct phase_lane *lanes_owner(const struct phase_run *run, const struct lane *lane);

/* How a rank's published address is called between nodes. */
uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank);

#endif
