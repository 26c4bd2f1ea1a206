/* SPDX-License-Identifier: BSD-3-Clause */
#include "reordering.h"

void disorder_gap(struct disorder *disorder, const struct sequence *stream, uint64_t from,
                  uint64_t arrival)
{
    uint64_t end = stream->next - 1;

    if (end - from > SEQUENCE_WINDOW)
        from = end - SEQUENCE_WINDOW; /* those before it would be late */
    for (uint64_t number = from; number < end; number++)
        disorder->overtaken[number % SEQUENCE_WINDOW] = (uint32_t)arrival;
}

/* How many arrivals directly before the frame have a greater number: all since it was overtaken,
 * but for reordered ones with a smaller number. Exact up to DISORDER_NEAR. */
static uint64_t count_nearest(const struct disorder *disorder, const struct disorder_frame *frame,
                              uint64_t extent)
{
    uint64_t nearest = extent;

    for (unsigned i = 0; i < DISORDER_NEAR; i++) {
        uint64_t arrival = disorder->recent[i].arrival;

        if (arrival != 0 && disorder->recent[i].number < frame->number &&
            frame->arrival - 1 - arrival < nearest)
            nearest = frame->arrival - 1 - arrival;
    }
    return nearest;
}

void disorder_add(struct disorder *disorder, const struct disorder_frame *frame,
                  struct flow_disorder *count)
{
    uint64_t extent =
        (uint32_t)frame->arrival - disorder->overtaken[frame->number % SEQUENCE_WINDOW];

    extent = (uint32_t)extent; /* arrivals may have wrapped in 32 bits */
    count->extent_sum += extent;
    count->extent_most = extent > count->extent_most ? extent : count->extent_most;
    count->near += count_nearest(disorder, frame, extent) >= DISORDER_NEAR;
    disorder->recent[disorder->recent_at].number = frame->number;
    disorder->recent[disorder->recent_at].arrival = frame->arrival;
    disorder->recent_at = (disorder->recent_at + 1) % DISORDER_NEAR;
}
