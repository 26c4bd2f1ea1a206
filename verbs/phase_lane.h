/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the engine sees as one lane: that of the phase's load, and beside it the lane of the load's
 * latency probes, if the phase has any. The functions are those of transport.h.
 */
#ifndef VERBS_PHASE_LANE_H
#define VERBS_PHASE_LANE_H

#include "transport.h"

int verbs_phase_lane_prepare(struct lane **lane, const struct lane_request *request,
                             struct err *err);
int verbs_phase_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
int verbs_phase_lane_wake_fd(struct lane *lane);
void verbs_phase_lane_start(struct lane *lane, int64_t now_ns);
int64_t verbs_phase_lane_poll(struct lane *lane, int64_t now_ns);
/* Its queue pairs and what they were made of. */
unsigned verbs_phase_lane_metrics(struct lane *lane, const struct lane_flow *flow,
                                  struct measure *out, unsigned room);
bool verbs_phase_lane_latency(struct lane *lane, const struct lane_flow *flow,
                              enum latency_kind kind, struct latency *sum);
size_t verbs_phase_lane_samples(struct lane *lane, const struct sample **samples);
void verbs_phase_lane_destroy(struct lane *lane);

#endif
