/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lanes of a phase on this node: which flows each port sends and receives, at which load; their
 * preparation and release.
 */
#ifndef ENGINE_LANES_H
#define ENGINE_LANES_H

#include "phase_run.h"

/* Makes this node's lanes of a phase (flows, loads, partners' addresses) and connects them. Waits
 * for partners while the node's loop goes on. 0; -ECANCELED when it fails (node->err says why). */
int lanes_prepare(struct phase_run *run);
/* Releases what was made, also in part. */
void lanes_release(struct phase_run *run);
/* The workers are done: sums up what each port's queues counted, and when they began and ended. */
void lanes_gather(struct phase_run *run);
/* Whose lane this is. */
const struct phase_lane *lanes_owner(const struct phase_run *run, const struct lane *lane);

/* How a rank's published address is called between nodes. */
uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank);

#endif
