/* SPDX-License-Identifier: BSD-3-Clause */
#include "delay_stats.h"

#include <string.h>

void delay_stats_sum(struct delay_stats *streams, uint32_t count, struct delay_stats_buckets *all,
                     enum delay_kind kind, struct histogram *sum)
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
