/* SPDX-License-Identifier: BSD-3-Clause */
#include "reordering.h"

/* How many arrivals directly before the frame have a greater number: all since it was overtaken,
 * but for reordered ones with a smaller number. Exact up to REORDERING_NEAR. */
static uint64_t count_nearest(const struct reordering *reordering, uint64_t number,
                              uint64_t arrival, uint64_t extent)
{
    uint64_t nearest = extent;

    for (unsigned i = 0; i < REORDERING_NEAR; i++) {
        uint32_t since = (uint32_t)arrival - 1 - reordering->recent[i].arrival;

        if (reordering->recent[i].arrival != 0 && since < nearest &&
            (int32_t)(reordering->recent[i].number - (uint32_t)number) < 0)
            nearest = since;
    }
    return nearest;
}

void reordering_add(struct reordering *reordering, uint64_t number, uint64_t arrival,
                    struct flow_reordering *count)
{
    struct reordering_arrival *first = &reordering->overtaken[number % REORDERING_FIRST];
    bool near = first->arrival != 0 && first->number == (uint32_t)number;
    uint64_t extent =
        (uint16_t)(arrival - (near ? first->arrival : reordering->far[number % SEQUENCE_WINDOW]));

    first->arrival = near ? 0 : first->arrival;
    count->extent_sum += extent;
    count->extent_max = extent > count->extent_max ? extent : count->extent_max;
    count->near += count_nearest(reordering, number, arrival, extent) >= REORDERING_NEAR;
    reordering->recent[reordering->recent_at] =
        (struct reordering_arrival){(uint32_t)number, (uint32_t)arrival};
    reordering->recent_at = (reordering->recent_at + 1) % REORDERING_NEAR;
}
