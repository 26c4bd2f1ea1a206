/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief One-way delays of a stream's frames, from a frame's stamp to its arrival.
 *
 * No I/O and no DPDK.
 *
 * Every frame is measured, so its data are small: one cache line per stream. The frames of a
 * sender's burst share a stamp, and those of a receiver's burst an arrival, so most frames have the
 * same delay as the frame before. A run of equal delays is counted, and added to the sums and
 * buckets when it ends. Numbers of values are not counted, because the buckets have them.
 */
#ifndef ENGINE_DELAY_STATS_H
#define ENGINE_DELAY_STATS_H

#include "histogram.h"

#include <assert.h>
#include <string.h>

#define DELAY_RUN_MAX (UINT32_MAX - 1024) /**< leaves room for one burst more */

/**
 * @brief Histogram buckets of one flow's delays; all streams of the flow add to them.
 *
 * 18 KB, of which a flow touches some pages.
 */
struct delay_stats_buckets {
    uint64_t counts[HISTOGRAM_BUCKETS];
};

struct delay_stats {
    uint64_t sum_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t last_ns; /**< delay of the stream's last frame */
    uint32_t run;     /**< successive frames with this delay, not yet added */
    uint32_t flow;    /**< index of the flow's buckets */
} __attribute__((aligned(64)));
static_assert(sizeof(struct delay_stats) == 64, "a stream's statistics are one cache line");

/**
 * @brief Initialise a stream's delay statistics.
 *
 * @param stats Delays of a stream.
 * @param flow Index of the flow whose buckets the stream uses.
 */
static inline void delay_stats_init(struct delay_stats *stats, uint32_t flow)
{
    *stats = (struct delay_stats){.min_ns = UINT64_MAX, .flow = flow};
}

/**
 * @brief End a stream's run of frames with equal delay: add the run to the sum, min, max and
 * buckets.
 *
 * @param stats Delays of a stream.
 * @param all Delay buckets of all flows, by flow index.
 */
static inline void delay_stats_end_run(struct delay_stats *stats, struct delay_stats_buckets *all)
{
    if (stats->run == 0)
        return;
    stats->sum_ns += stats->last_ns * stats->run;
    stats->min_ns = stats->last_ns < stats->min_ns ? stats->last_ns : stats->min_ns;
    stats->max_ns = stats->last_ns > stats->max_ns ? stats->last_ns : stats->max_ns;
    all[stats->flow].counts[histogram_index(stats->last_ns)] += stats->run;
    stats->run = 0;
}

/**
 * @brief Add delivered frames that have the same delay to a stream's statistics.
 *
 * @param stats Delays of a stream.
 * @param all Delay buckets of all flows, by flow index.
 * @param delay_ns One-way delay, ns.
 * @param count Frames, one burst at most.
 */
static inline void delay_stats_add(struct delay_stats *stats, struct delay_stats_buckets *all,
                                   uint64_t delay_ns, uint32_t count)
{
    if (__builtin_expect(delay_ns != stats->last_ns || stats->run >= DELAY_RUN_MAX, false)) {
        delay_stats_end_run(stats, all);
        stats->last_ns = delay_ns;
    }
    stats->run += count;
}

/**
 * @brief Return a frame's one-way delay: its arrival time by the receiver's clock minus its time
 * stamp by the sender's clock.
 *
 * A stamp later than the arrival shows a clock difference; the delay is then 0.
 *
 * @param came_ns Arrival, ns since the phase's start.
 * @param stamp_ns Stamp, ns since the phase's start.
 * @return Delay, ns.
 */
static inline uint64_t delay_stats_delay(int64_t came_ns, uint64_t stamp_ns)
{
    int64_t delay_ns = came_ns - (int64_t)stamp_ns;

    return delay_ns > 0 ? (uint64_t)delay_ns : 0;
}

/**
 * @brief Add the delay statistics of all streams of a flow to a sum; end each stream's run of
 * equal delays first.
 *
 * @param streams Streams of the flow.
 * @param count Number of streams.
 * @param all Delay buckets of all flows, by flow index.
 * @param sum Histogram to which the delays are added.
 */
static inline void delay_stats_sum(struct delay_stats *streams, uint32_t count,
                                   struct delay_stats_buckets *all, struct histogram *sum)
{
    struct histogram flow = {.min_ns = UINT64_MAX};

    for (uint32_t i = 0; i < count; i++) {
        const struct delay_stats *stats = &streams[i];

        delay_stats_end_run(&streams[i], all);
        flow.sum_ns += stats->sum_ns;
        flow.min_ns = stats->min_ns < flow.min_ns ? stats->min_ns : flow.min_ns;
        flow.max_ns = stats->max_ns > flow.max_ns ? stats->max_ns : flow.max_ns;
    }
    memcpy(flow.buckets, all[streams->flow].counts, sizeof flow.buckets);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        flow.count += flow.buckets[i];
    if (flow.max_ns >> HISTOGRAM_POWERS)
        flow.beyond = flow.buckets[HISTOGRAM_BUCKETS - 1];
    histogram_merge(sum, &flow);
}

#endif
