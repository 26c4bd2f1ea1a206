/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The lanes of a phase on this node: which flows each port sends and receives, at which
 * load; their preparation and release.
 */
#ifndef ENGINE_LANES_H
#define ENGINE_LANES_H

#include "phase_run.h"

/**
 * @brief Make this node's lanes of a phase (flows, loads, partners' addresses) and connect them.
 *
 * Waits for partners while the node's loop goes on.
 *
 * @param run Phase.
 * @return 0; -ECANCELED: the run ends; another negative errno, and node->err has the sentence.
 */
int lanes_prepare(struct phase_run *run);
/**
 * @brief Release what was made, also in part.
 *
 * @param run Phase.
 */
void lanes_release(struct phase_run *run);
/**
 * @brief Sum up what each port's queues counted, and when they began and ended; the workers are
 * done.
 *
 * @param run Phase.
 */
void lanes_gather(struct phase_run *run);
/**
 * @brief Return the phase's lane to which a transport's lane belongs.
 *
 * @param run Phase.
 * @param lane Lane.
 * @return Lane of the phase.
 */
const struct phase_lane *lanes_owner(const struct phase_run *run, const struct lane *lane);

/**
 * @brief Return the name between nodes of a rank's published address.
 *
 * @param trial Trial.
 * @param part Part of the trial, from 0.
 * @param rank Rank, from 0.
 * @return Number.
 */
uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank);

#endif
