/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Delay statistics of a stream's frames: one-way delay, from a frame's stamp to its arrival,
 * and its variation between successive frames (IPDV: RFC 3393, RFC 5481 4.1).
 *
 * No I/O and no DPDK.
 *
 * Every frame is measured, so its data are small: one cache line per stream. The frames of a
 * sender's burst share a stamp, and those of a receiver's burst an arrival, so most frames have the
 * same delay as the frame before. A run of equal delays is counted, and added to the sums and
 * buckets when it ends. Numbers of values are not counted, because the buckets have them.
 *
 * @see RFC 3393; RFC 5481, section 4.1
 */
#ifndef ENGINE_DELAY_STATS_H
#define ENGINE_DELAY_STATS_H

#include "histogram.h"

#include <assert.h>
#include <string.h>

#define DELAY_NONE UINT64_MAX             /**< no delay to compare the next frame's with */
#define DELAY_RUN_MAX (UINT32_MAX - 1024) /**< leaves room for one burst more */

enum delay_kind { DELAY_ONE_WAY, DELAY_IPDV, DELAY_KINDS };

/**
 * @brief Delay buckets of a flow, which its streams share.
 *
 * 36 KB, of which a flow touches some pages.
 */
struct delay_stats_buckets {
    uint64_t counts[DELAY_KINDS][HISTOGRAM_BUCKETS];
};

struct delay_stats_bounds {
    uint64_t sum_ns;
    uint64_t min_ns;
    uint64_t max_ns;
};

struct delay_stats {
    struct delay_stats_bounds bounds[DELAY_KINDS];
    uint64_t last_ns; /**< delay of the stream's last frame, or DELAY_NONE */
    uint32_t run;     /**< successive frames with this delay, not yet added */
    uint32_t flow;    /**< index of the flow's buckets */
} __attribute__((aligned(64)));
static_assert(sizeof(struct delay_stats) == 64, "a stream's statistics are one cache line");

/**
 * @brief Initialise a stream's delay statistics; its first frame is not compared with another.
 *
 * @param stats Delays of a stream.
 * @param flow Flow whose buckets it has, among all.
 */
static inline void delay_stats_init(struct delay_stats *stats, uint32_t flow)
{
    *stats = (struct delay_stats){.last_ns = DELAY_NONE, .flow = flow};
    for (unsigned kind = 0; kind < DELAY_KINDS; kind++)
        stats->bounds[kind].min_ns = UINT64_MAX;
}

/**
 * @brief Add equal delays to bounds and buckets.
 *
 * @param bounds Sum, least and greatest; added to.
 * @param counts Buckets; added to.
 * @param value_ns Time, ns.
 * @param count How many values.
 */
static inline void delay_stats_count(struct delay_stats_bounds *bounds, uint64_t *counts,
                                     uint64_t value_ns, uint64_t count)
{
    bounds->sum_ns += value_ns * count;
    bounds->min_ns = value_ns < bounds->min_ns ? value_ns : bounds->min_ns;
    bounds->max_ns = value_ns > bounds->max_ns ? value_ns : bounds->max_ns;
    counts[histogram_index(value_ns)] += count;
}

/**
 * @brief Add a run of equal delays to sums and buckets.
 *
 * The run's first frame was compared when it arrived; the others differ by nothing.
 *
 * @param stats Delays of a stream.
 * @param all Buckets by flow.
 */
static inline void delay_stats_end_run(struct delay_stats *stats, struct delay_stats_buckets *all)
{
    uint64_t(*counts)[HISTOGRAM_BUCKETS] = all[stats->flow].counts;

    if (stats->run > 0)
        delay_stats_count(&stats->bounds[DELAY_ONE_WAY], counts[DELAY_ONE_WAY], stats->last_ns,
                          stats->run);
    if (stats->run > 1)
        delay_stats_count(&stats->bounds[DELAY_IPDV], counts[DELAY_IPDV], 0, stats->run - 1);
    stats->run = 0;
}

/**
 * @brief Start a new comparison, so that the next frame is not compared with the last one.
 *
 * @param stats Delays of a stream.
 * @param all Buckets by flow.
 */
static inline void delay_stats_restart(struct delay_stats *stats, struct delay_stats_buckets *all)
{
    delay_stats_end_run(stats, all);
    stats->last_ns = DELAY_NONE;
}

/**
 * @brief Add to a stream's delays a run of frames with equal delay, right after the last frame
 * added.
 *
 * @param stats Delays of a stream.
 * @param all Buckets by flow.
 * @param delay_ns One-way delay, ns.
 * @param count Frames.
 */
static inline void delay_stats_follow(struct delay_stats *stats, struct delay_stats_buckets *all,
                                      uint64_t delay_ns, uint32_t count)
{
    if (__builtin_expect(delay_ns == stats->last_ns && stats->run < DELAY_RUN_MAX, true)) {
        stats->run += count;
        return;
    }
    delay_stats_end_run(stats, all);
    if (stats->last_ns != DELAY_NONE)
        delay_stats_count(
            &stats->bounds[DELAY_IPDV], all[stats->flow].counts[DELAY_IPDV],
            delay_ns > stats->last_ns ? delay_ns - stats->last_ns : stats->last_ns - delay_ns, 1);
    stats->last_ns = delay_ns;
    stats->run = count;
}

/**
 * @brief Add one delivered frame.
 *
 * Only frames in sequence are compared with their predecessor: after a gap the comparison starts
 * again, and a reordered frame is left out.
 *
 * @param stats Delays of a stream.
 * @param all Buckets by flow.
 * @param delay_ns One-way delay, ns.
 * @param ahead Its sequence less the one that was expected next.
 */
static inline void delay_stats_add(struct delay_stats *stats, struct delay_stats_buckets *all,
                                   uint64_t delay_ns, int32_t ahead)
{
    if (ahead < 0) {
        delay_stats_count(&stats->bounds[DELAY_ONE_WAY], all[stats->flow].counts[DELAY_ONE_WAY],
                          delay_ns, 1);
        return;
    }
    if (ahead > 0)
        delay_stats_restart(stats, all);
    delay_stats_follow(stats, all, delay_ns, 1);
}

/**
 * @brief Return the delay between a stamp and an arrival, each by its end's clock.
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
 * @param count How many streams.
 * @param all Buckets by flow.
 * @param kind Which of the delays.
 * @param sum Takes the sum.
 */
static inline void delay_stats_sum(struct delay_stats *streams, uint32_t count,
                                   struct delay_stats_buckets *all, enum delay_kind kind,
                                   struct histogram *sum)
{
    struct histogram flow = {.min_ns = UINT64_MAX};

    for (uint32_t i = 0; i < count; i++) {
        const struct delay_stats_bounds *bounds = &streams[i].bounds[kind];

        delay_stats_end_run(&streams[i], all);
        flow.sum_ns += bounds->sum_ns;
        flow.min_ns = bounds->min_ns < flow.min_ns ? bounds->min_ns : flow.min_ns;
        flow.max_ns = bounds->max_ns > flow.max_ns ? bounds->max_ns : flow.max_ns;
    }
    memcpy(flow.buckets, all[streams->flow].counts[kind], sizeof flow.buckets);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        flow.count += flow.buckets[i];
    if (flow.max_ns >> HISTOGRAM_POWERS)
        flow.beyond = flow.buckets[HISTOGRAM_BUCKETS - 1];
    histogram_merge(sum, &flow);
}

#endif
