/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a stream's frames say of time: one-way delay, from a frame's stamp to its arrival, and its
 * variation between frames that follow each other (IPDV: RFC 3393, RFC 5481 4.1). No I/O and
 * nothing of DPDK's.
 *
 * Every frame is measured, so what it touches is small: one line by stream, which holds sums and
 * bounds, and one bucket of each kind. Numbers of values are not counted: buckets know them.
 */
#ifndef ENGINE_DPDK_TIMES_H
#define ENGINE_DPDK_TIMES_H

#include "histogram.h"

#include <assert.h>
#include <stdbool.h>

#define TIMES_NONE UINT64_MAX /* no delay that the next frame's could be compared with */

enum times_kind { TIMES_ONE_WAY, TIMES_IPDV, TIMES_KINDS };

/* A flow's, which its streams share. 36 KB, of which a flow touches some pages. */
struct times_buckets {
    uint64_t counts[TIMES_KINDS][HISTOGRAM_BUCKETS];
};

struct times_bounds {
    uint64_t sum_ns;
    uint64_t least_ns;
    uint64_t greatest_ns;
};

struct times {
    struct times_bounds bounds[TIMES_KINDS];
    uint64_t last_ns; /* the delay of the stream's last frame, or TIMES_NONE */
    struct times_buckets *buckets;
} __attribute__((aligned(64)));
static_assert(sizeof(struct times) == 64, "a stream's times are one cache line");

static inline void times_init(struct times *times, struct times_buckets *buckets)
{
    *times = (struct times){.last_ns = TIMES_NONE, .buckets = buckets};
    for (unsigned kind = 0; kind < TIMES_KINDS; kind++)
        times->bounds[kind].least_ns = UINT64_MAX;
}

static inline void times_count(struct times *times, enum times_kind kind, uint64_t value_ns,
                               uint64_t count)
{
    struct times_bounds *bounds = &times->bounds[kind];

    bounds->sum_ns += value_ns * count;
    bounds->least_ns = value_ns < bounds->least_ns ? value_ns : bounds->least_ns;
    bounds->greatest_ns = value_ns > bounds->greatest_ns ? value_ns : bounds->greatest_ns;
    times->buckets->counts[kind][histogram_index(value_ns)] += count;
}

static inline uint64_t times_apart(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
}

/* Frames that were delivered, of one delay; several: they came one right behind the other, stamped
 * and read together. `ahead`: the first one's sequence less the one that was expected next. Only
 * neighbours in sequence, in order, are compared: behind a gap the comparison begins anew, and a
 * reordered frame does not take part. */
static inline void times_add(struct times *times, uint64_t delay_ns, int32_t ahead, uint32_t count)
{
    times_count(times, TIMES_ONE_WAY, delay_ns, count);
    if (__builtin_expect(ahead < 0, false))
        return;
    if (__builtin_expect(ahead == 0 && times->last_ns != TIMES_NONE, true))
        times_count(times, TIMES_IPDV, times_apart(delay_ns, times->last_ns), 1);
    if (count > 1)
        times_count(times, TIMES_IPDV, 0, count - 1);
    times->last_ns = delay_ns;
}

/* Stamps and arrivals are times since the phase's start, each by its end's clock. A stamp that is
 * later than the arrival shows what clocks differ by: 0 is the nearest that can be. */
static inline uint64_t times_delay(int64_t came_ns, uint64_t stamp_ns)
{
    int64_t delay_ns = came_ns - (int64_t)stamp_ns;

    return delay_ns > 0 ? (uint64_t)delay_ns : 0;
}

/* Adds a flow's times, of all its streams. */
void times_sum(const struct times *streams, uint32_t count, enum times_kind kind,
               struct histogram *sum);

#endif
