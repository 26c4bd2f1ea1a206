/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a stream's frames say of time: one-way delay, from a frame's stamp to its arrival, and its
 * variation between frames that follow each other (IPDV: RFC 3393, RFC 5481 4.1). No I/O and
 * nothing of DPDK's.
 *
 * Every frame is measured, so what it touches is small: one line by stream. The frames of a
 * sender's burst share its stamp, and those of a receiver's their arrival, so most have the same
 * delay as the frame before. Such a run is counted where it is, and added to the sums and buckets
 * when it ends. Numbers of values are not counted: buckets know them.
 */
#ifndef ENGINE_DELAY_STATS_H
#define ENGINE_DELAY_STATS_H

#include "histogram.h"

#include <assert.h>
#include <stdbool.h>

#define TIMES_NONE UINT64_MAX /* no delay that the next frame's could be compared with */
#define TIMES_RUN_MAX (UINT32_MAX - 1024) /* then a burst more still has room */

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
    uint32_t run;     /* frames with that delay, one right behind the other, not yet added */
    uint32_t flow;    /* whose buckets, among all */
} __attribute__((aligned(64)));
static_assert(sizeof(struct times) == 64, "a stream's times are one cache line");

static inline void times_init(struct times *times, uint32_t flow)
{
    *times = (struct times){.last_ns = TIMES_NONE, .flow = flow};
    for (unsigned kind = 0; kind < TIMES_KINDS; kind++)
        times->bounds[kind].least_ns = UINT64_MAX;
}

static inline void times_count(struct times_bounds *bounds, uint64_t *counts, uint64_t value_ns,
                               uint64_t count)
{
    bounds->sum_ns += value_ns * count;
    bounds->least_ns = value_ns < bounds->least_ns ? value_ns : bounds->least_ns;
    bounds->greatest_ns = value_ns > bounds->greatest_ns ? value_ns : bounds->greatest_ns;
    counts[histogram_index(value_ns)] += count;
}

/* Adds the run. Its first frame was compared when it came, the others differ by nothing. */
static inline void times_end_run(struct times *times, struct times_buckets *all)
{
    uint64_t(*counts)[HISTOGRAM_BUCKETS] = all[times->flow].counts;

    if (times->run > 0)
        times_count(&times->bounds[TIMES_ONE_WAY], counts[TIMES_ONE_WAY], times->last_ns,
                    times->run);
    if (times->run > 1)
        times_count(&times->bounds[TIMES_IPDV], counts[TIMES_IPDV], 0, times->run - 1);
    times->run = 0;
}

/* The next frame is compared with none. */
static inline void times_restart(struct times *times, struct times_buckets *all)
{
    times_end_run(times, all);
    times->last_ns = TIMES_NONE;
}

static inline uint64_t times_apart(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
}

/* Frames of one delay that were delivered, right one behind the other and behind the last one. */
static inline void times_follow(struct times *times, struct times_buckets *all, uint64_t delay_ns,
                                uint32_t count)
{
    if (__builtin_expect(delay_ns == times->last_ns && times->run < TIMES_RUN_MAX, true)) {
        times->run += count;
        return;
    }
    times_end_run(times, all);
    if (times->last_ns != TIMES_NONE)
        times_count(&times->bounds[TIMES_IPDV], all[times->flow].counts[TIMES_IPDV],
                    times_apart(delay_ns, times->last_ns), 1);
    times->last_ns = delay_ns;
    times->run = count;
}

/* One frame that was delivered. `ahead`: its sequence less the one that was expected next. Only
 * neighbours in sequence, in order, are compared: behind a gap the comparison begins anew, and a
 * reordered frame does not take part. `all`: buckets by flow. */
static inline void times_add(struct times *times, struct times_buckets *all, uint64_t delay_ns,
                             int32_t ahead)
{
    if (ahead < 0) {
        times_count(&times->bounds[TIMES_ONE_WAY], all[times->flow].counts[TIMES_ONE_WAY], delay_ns,
                    1);
        return;
    }
    if (ahead > 0)
        times_restart(times, all);
    times_follow(times, all, delay_ns, 1);
}

/* Stamps and arrivals are times since the phase's start, each by its end's clock. A stamp that is
 * later than the arrival shows what clocks differ by: 0 is the nearest that can be. */
static inline uint64_t times_delay(int64_t came_ns, uint64_t stamp_ns)
{
    int64_t delay_ns = came_ns - (int64_t)stamp_ns;

    return delay_ns > 0 ? (uint64_t)delay_ns : 0;
}

/* Adds a flow's times, of all its streams. Ends their runs. */
void times_sum(struct times *streams, uint32_t count, struct times_buckets *all,
               enum times_kind kind, struct histogram *sum);

#endif
