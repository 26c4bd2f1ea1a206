/* SPDX-License-Identifier: BSD-3-Clause */
#include "reordering.h"

static struct gap *gap_at(struct reordering *reordering, unsigned place)
{
    return place < REORDERING_GAPS_NEAR ? &reordering->near[place] : &reordering->far[place];
}

/* Lets go of gaps that are filled, or whose frames would be late. */
static void forget_first(struct reordering *reordering, uint32_t *missing, uint32_t next)
{
    for (; reordering->first < reordering->end; reordering->first++) {
        const struct gap *gap = gap_at(reordering, reordering->first);

        if (gap->missing > 0 && next - gap->end < SEQUENCE_WINDOW)
            return;
        *missing -= gap->missing;
    }
    reordering->first = reordering->end = 0;
}

/* Moves gaps to the first places, where these are free: then few stay near. */
static void move_down(struct reordering *reordering)
{
    unsigned count = reordering->end - reordering->first;

    if (reordering->first < count && reordering->end < REORDERING_GAPS)
        return;
    for (unsigned i = 0; i < count; i++)
        *gap_at(reordering, i) = *gap_at(reordering, reordering->first + i);
    reordering->first = 0;
    reordering->end = (uint16_t)count;
}

void reordering_append(struct reordering *reordering, uint32_t *missing, uint32_t next,
                       const struct gap *gap)
{
    forget_first(reordering, missing, next);
    move_down(reordering);
    *gap_at(reordering, reordering->end++) = *gap;
}

/* Of a number that was missing. */
static struct gap *find_gap(struct reordering *reordering, uint32_t number)
{
    unsigned low = reordering->first, high = reordering->end - 1u;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if ((int32_t)(gap_at(reordering, middle)->end - number) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return gap_at(reordering, low);
}

/* How many arrivals directly before the frame have a greater number: all since it was overtaken,
 * but for reordered ones with a smaller number. Exact up to REORDERING_NEAR. */
static uint64_t count_nearest(const struct reordering *reordering,
                              const struct reordered_frame *frame, uint64_t extent)
{
    uint64_t nearest = extent;

    for (unsigned i = 0; i < REORDERING_NEAR; i++) {
        uint32_t arrival = reordering->recent[i].arrival;
        uint32_t since = (uint32_t)frame->arrival - 1 - arrival;

        if (arrival != 0 && since < nearest &&
            (int32_t)(reordering->recent[i].number - (uint32_t)frame->number) < 0)
            nearest = since;
    }
    return nearest;
}

void reordering_add(struct reordering *reordering, uint32_t *missing,
                    const struct reordered_frame *frame, struct flow_reordering *count)
{
    struct gap *gap = find_gap(reordering, (uint32_t)frame->number);
    uint64_t extent = (uint16_t)(frame->arrival - gap->arrival);

    gap->missing--;
    --*missing;
    count->extent_sum += extent;
    count->extent_max = extent > count->extent_max ? extent : count->extent_max;
    if (extent >= REORDERING_NEAR)
        count->near += count_nearest(reordering, frame, extent) >= REORDERING_NEAR;
    reordering->recent[reordering->recent_at].number = (uint32_t)frame->number;
    reordering->recent[reordering->recent_at].arrival = (uint32_t)frame->arrival;
    reordering->recent_at =
        reordering->recent_at + 1 < REORDERING_NEAR ? reordering->recent_at + 1 : 0;
}
