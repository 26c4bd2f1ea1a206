/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe_scheduler.h"

#include "prng.h"

/* 0 to below 1. */
static double fraction(struct probe_scheduler *scheduler)
{
    return (double)(prng_bits(scheduler->seed, scheduler->count++) >> 11) * 0x1p-53;
}

void probe_scheduler_begin(struct probe_scheduler *scheduler, double gap_ns, int64_t begin_ns,
                           uint64_t seed)
{
    *scheduler = (struct probe_scheduler){.gap_ns = gap_ns, .seed = seed};
    scheduler->next_ns = begin_ns + (int64_t)(fraction(scheduler) * gap_ns);
}

void probe_scheduler_step(struct probe_scheduler *scheduler, int64_t now_ns)
{
    int64_t from_ns = scheduler->next_ns;

    if ((double)(now_ns - from_ns) > scheduler->gap_ns)
        from_ns = now_ns;
    scheduler->next_ns = from_ns + (int64_t)((0.5 + fraction(scheduler)) * scheduler->gap_ns);
}
