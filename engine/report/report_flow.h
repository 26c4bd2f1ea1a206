/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `flow` records, one for each side of a flow, and `latency` records with its histograms.
 */
#ifndef ENGINE_REPORT_FLOW_H
#define ENGINE_REPORT_FLOW_H

#include "phase_run.h"

/* One side of a flow: its port's lane, when its counters were copied, and which side. */
struct flow_place {
    const struct phase_lane *lane;
    const struct worker_lane *timing;
    bool source;
};

void report_flow(const struct phase_run *run, const struct flow_place *place,
                 const struct lane_flow *flow);

void report_latency(const struct phase_run *run, const struct flow_place *place,
                    const struct lane_flow *flow);

/* What all records of times say beside their buckets. */
void report_set_latency(json_t *record, enum latency_kind kind, const struct latency *latency,
                        int64_t bound_ns);

#endif
