/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the records of a phase share, and the parts that report_phase puts together.
 */
#ifndef ENGINE_REPORT_RECORD_H
#define ENGINE_REPORT_RECORD_H

#include "phase_run.h"

/* A record with the place that all of a phase's records share, then these rows; writes it, too. */
json_t *report_make(const struct phase_run *run, const char *type, const struct record_row *rows);
void report_write(const struct phase_run *run, const char *type, const struct record_row *rows);

/* Whether the lane's transport counts frames; messages. */
bool report_counts_frames(const struct phase_lane *lane);
bool report_counts_messages(const struct phase_run *run, const struct phase_lane *lane);
/* A count, null unless `counted`. */
json_t *report_count(bool counted, uint64_t count);
/* A local time in run time; null when it is 0. */
json_t *report_run_time(const struct phase_run *run, int64_t local_ns);
/* A port's name by its rank in the lane's network, and the network's. */
json_t *report_rank(const struct phase_lane *lane, uint32_t rank);
json_t *report_network(const struct phase_lane *lane);

/* A histogram's buckets, as text. */
json_t *report_buckets(const struct histogram *histogram);
/* Its least or greatest value; null when it has none. */
json_t *report_extreme(const struct histogram *histogram, uint64_t extreme_ns);

/* What flows sent and received, good or not: what the network's counters must show. */
uint64_t report_frames(const struct lane_flow *flows, uint32_t count);

/* All records of a lane's flows; of its port; of its schedule. */
void report_flows(const struct phase_run *run, const struct phase_lane *lane);
void report_port(const struct phase_run *run, const struct phase_lane *lane);
void report_misdelivered(const struct phase_run *run, const struct phase_lane *lane);
void report_execution(const struct phase_run *run, const struct phase_lane *lane);

#endif
