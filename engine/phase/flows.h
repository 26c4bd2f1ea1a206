/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a port is asked in a phase: its flows, sizes, options and load.
 */
#ifndef ENGINE_FLOWS_H
#define ENGINE_FLOWS_H

#include "phase_run.h"

/**
 * @brief Fills in what all parts of a trial have in common in this phase.
 * @param run its template is written
 */
void flows_fill_template(struct phase_run *run);

/**
 * @brief Fills in what a lane's part asks in this phase, on top of the common template.
 * @param lane its phase and the transport's options are written
 */
void flows_apply_template(struct phase_lane *lane);

/**
 * @brief Makes the flows that a lane's rank sends and receives, from the pattern's plan.
 *
 * The probe has the flows of all phases, each once. Time and memory follow from the rank's own
 * flows.
 *
 * @param run the phase
 * @param lane owns what was made, also in part
 * @return 0, or -ENOMEM
 */
int flows_make(const struct phase_run *run, struct phase_lane *lane);

/**
 * @brief Resolves the load of a lane's port.
 * @param run sums up the cores that the loads of this node's ports need
 * @param lane its load is written
 * @param err the sentence of a failure
 * @return 0, or -EINVAL when the port's line or this node's cores can't carry the load
 */
int flows_set_load(struct phase_run *run, struct phase_lane *lane, struct err *err);

#endif
