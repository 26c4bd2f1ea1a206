/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The records of trials and phases: each kind is a table of keys and values in the file of
 * what it is about.
 *
 * doc/reference/node-protocol.md says what they mean.
 */
#ifndef ENGINE_REPORT_H
#define ENGINE_REPORT_H

#include "phase_run.h"

/**
 * @brief Report the rates of the node and its ports since the record before, while a phase runs; in
 * the window the mean since its first record.
 *
 * @param run Phase.
 */
void report_progress(struct phase_run *run, int64_t *last_ns);
/**
 * @brief Report interval results that are due; `all`: also those that are not.
 *
 * @param run Phase.
 * @param all Also those that are not due.
 */
void report_interval(struct phase_run *run, bool all);
/**
 * @brief Report, before the start, that this node comes too late for the window.
 *
 * @param run Phase.
 */
void report_late(const struct phase_run *run);

/**
 * @brief Report what went wrong with the lanes of a phase that has ended.
 *
 * @param run Phase.
 */
void report_lane_errors(const struct phase_run *run);
/**
 * @brief Report a phase that has ended.
 *
 * @param run Phase.
 */
void report_phase(struct phase_run *run);
/**
 * @brief Report the connectivity check of a plan's flows.
 *
 * @param run Phase.
 */
void report_probe(const struct phase_run *run);
/**
 * @brief Report single times of messages.
 *
 * @param run Phase.
 */
void report_samples(const struct phase_run *run);
/**
 * @brief Report what was computed beside messages.
 *
 * @param run Phase.
 */
void report_compute(const struct phase_run *run);

/**
 * @brief Report the end of a trial.
 *
 * @param trial Trial.
 * @param state How the trial ended.
 */
void report_trial(const struct trial *trial, const char *state);

#endif
