/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The records of trials and phases that have ended (doc/node-protocol.md).
 */
#ifndef ENGINE_REPORT_PHASE_H
#define ENGINE_REPORT_PHASE_H

#include "phase_run.h"

/* The records of a phase that has ended. */
void report_phase(struct phase_run *run);
void report_probe(const struct phase_run *run);
void report_lane_errors(const struct phase_run *run);
/* Before the start: says so if this node comes too late for the window. */
void report_late(const struct phase_run *run);
void report_trial(const struct trial *trial, const char *state);
/* What the transport's times come to on a loopback in this node. */
void report_floor(const struct trial *trial, const struct latency floor[LATENCY_KINDS]);

#endif
