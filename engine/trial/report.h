/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The records of trials and phases (doc/developer/node-protocol.md).
 */
#ifndef ENGINE_REPORT_H
#define ENGINE_REPORT_H

#include "phase.h"

/**
 * @brief Report, before the start, that this node comes too late for the window.
 *
 * @param run Phase.
 */
void report_late(const struct phase_run *run);
/**
 * @brief Report the rates of the node and its ports, while a phase runs.
 *
 * They are since the record before; in the window the mean since its first record, so that they
 * come to what the table says. All records say the node's sums.
 *
 * @param run Phase.
 * @param last_ns When the record before was made; takes the time of this one.
 */
void report_progress(struct phase_run *run, int64_t *last_ns);
/**
 * @brief Report what came of each flow from mark to mark, several marks in a record.
 *
 * @param run Phase.
 * @param all Also marks that could wait for others.
 */
void report_intervals(struct phase_run *run, bool all);
/**
 * @brief Report a phase that has ended: its faults, each side of its flows, its ports, the node.
 *
 * Of a connectivity check: flows that are not reached, and ports; nothing where it is done again.
 *
 * @param run Phase.
 */
void report_end(struct phase_run *run);

/**
 * @brief Report the end of a trial.
 *
 * @param trial Trial.
 * @param state How the trial ended.
 */
void report_trial(const struct trial *trial, const char *state);

#endif
