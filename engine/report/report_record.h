/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What the records of a phase share, and the parts that report_phase puts together.
 */
#ifndef ENGINE_REPORT_RECORD_H
#define ENGINE_REPORT_RECORD_H

#include "phase_run.h"

/**
 * @brief Make a record with the place that all of a phase's records share, then these rows.
 *
 * @param run Phase.
 * @param type Type of the record.
 * @param rows Rows; their values are taken over.
 * @return Record, for record_send().
 */
json_t *report_make(const struct phase_run *run, const char *type, const struct record_row *rows);
/**
 * @brief Send a record with the place that all of a phase's records share, then these rows.
 *
 * @param run Phase.
 * @param type Type of the record.
 * @param rows Rows; their values are taken over.
 */
void report_write(const struct phase_run *run, const char *type, const struct record_row *rows);

/**
 * @brief Return whether the lane's transport counts frames.
 *
 * @param lane Lane.
 * @return True: it does.
 */
bool report_counts_frames(const struct phase_lane *lane);
/**
 * @brief Return whether the lane's transport counts messages.
 *
 * @param run Phase.
 * @param lane Lane.
 * @return True: it does.
 */
bool report_counts_messages(const struct phase_run *run, const struct phase_lane *lane);
/**
 * @brief Make a count, null unless `counted`.
 *
 * @return Value, for a row.
 */
json_t *report_count(bool counted, uint64_t count);
/**
 * @brief Make a local time in run time; null where it is 0.
 *
 * @param run Phase.
 * @return Value, for a row.
 */
json_t *report_run_time(const struct phase_run *run, int64_t local_ns);
/**
 * @brief Make a port's name from its rank in the lane's network.
 *
 * @param lane Lane.
 * @param rank Rank, from 0.
 * @return Value, for a row.
 */
json_t *report_rank(const struct phase_lane *lane, uint32_t rank);
/**
 * @brief Make the network's name.
 *
 * @param lane Lane.
 * @return Value, for a row.
 */
json_t *report_network(const struct phase_lane *lane);

/**
 * @brief Make the buckets of a histogram, as text.
 *
 * @param histogram Histogram.
 * @return Value, for a row.
 */
json_t *report_buckets(const struct histogram *histogram);
/**
 * @brief Make the least or greatest value of a histogram; null where it has none.
 *
 * @param histogram Histogram.
 * @return Value, for a row.
 */
json_t *report_extreme(const struct histogram *histogram, uint64_t extreme_ns);

/**
 * @brief Return what flows sent and received, good or not: what the network's counters must show.
 *
 * @param flows Flows.
 * @return Frames.
 */
uint64_t report_frames(const struct lane_flow *flows, uint32_t count);

/**
 * @brief Report all flows of a lane.
 *
 * @param run Phase.
 * @param lane Lane.
 */
void report_flows(const struct phase_run *run, const struct phase_lane *lane);
/**
 * @brief Report a lane's port.
 *
 * @param run Phase.
 * @param lane Lane.
 */
void report_port(const struct phase_run *run, const struct phase_lane *lane);
/**
 * @brief Report the misdelivered frames of a lane's port, by flow.
 *
 * @param run Phase.
 * @param lane Lane.
 */
void report_misdelivered(const struct phase_run *run, const struct phase_lane *lane);
/**
 * @brief Report the execution of a lane's schedule.
 *
 * @param run Phase.
 * @param lane Lane.
 */
void report_execution(const struct phase_run *run, const struct phase_lane *lane);

#endif
