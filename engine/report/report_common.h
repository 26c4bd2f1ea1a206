/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the records of a phase share.
 */
#ifndef ENGINE_REPORT_COMMON_H
#define ENGINE_REPORT_COMMON_H

#include "phase_run.h"

/* A new record with the place that all of a phase's records share. */
json_t *report_new(const struct phase_run *run, const char *type);
/* A histogram in as many records as its buckets need: how many, and what each says of it. */
#define REPORT_HISTOGRAM_TEXT 480 /* bytes of buckets in one, which has room for long names */
uint32_t report_histogram_parts(const struct histogram *histogram);
void report_histogram_part(json_t *record, uint32_t part, uint32_t parts, const char *buckets);

void report_set_u64(json_t *record, const char *key, uint64_t value);
/* A port's name by its rank in the lane's network. */
const char *report_rank_name(const struct phase_lane *lane, uint32_t rank);
/* A local time in run time; null when it is 0. */
void report_set_run_time(const struct phase_run *run, json_t *record, const char *key,
                         int64_t local_ns);
/* Whether the transport counts frames; messages. */
bool report_counts_frames(const struct phase_run *run);
bool report_counts_messages(const struct phase_run *run);
void report_set_counts(const struct phase_run *run, json_t *record, const struct flow_count *count);

/* What flows sent and received, good or not: what the network's counters must show. */
uint64_t report_frames(const struct lane_flow *flows, uint32_t count);

#endif
