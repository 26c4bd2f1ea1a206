/* SPDX-License-Identifier: BSD-3-Clause */
#include "reordering.h"

static struct gap *gap_at(struct disorder *disorder, unsigned place)
{
    return place < DISORDER_GAPS_NEAR ? &disorder->near[place] : &disorder->far[place];
}

/* Lets go of gaps that are filled, or whose frames would be late. */
static void forget_first(struct disorder *disorder, uint32_t *missing, uint32_t next)
{
    for (; disorder->first < disorder->end; disorder->first++) {
        const struct gap *gap = gap_at(disorder, disorder->first);

        if (gap->missing > 0 && next - gap->end < SEQUENCE_WINDOW)
            return;
        *missing -= gap->missing;
    }
    disorder->first = disorder->end = 0;
}

/* Moves gaps to the first places, where these are free: then few stay near. */
static void move_down(struct disorder *disorder)
{
    unsigned count = disorder->end - disorder->first;

    if (disorder->first < count && disorder->end < DISORDER_GAPS)
        return;
    for (unsigned i = 0; i < count; i++)
        *gap_at(disorder, i) = *gap_at(disorder, disorder->first + i);
    disorder->first = 0;
    disorder->end = (uint16_t)count;
}

void disorder_append(struct disorder *disorder, uint32_t *missing, uint32_t next,
                     const struct gap *gap)
{
    forget_first(disorder, missing, next);
    move_down(disorder);
    *gap_at(disorder, disorder->end++) = *gap;
}

/* Of a number that was missing. */
static struct gap *find_gap(struct disorder *disorder, uint32_t number)
{
    unsigned low = disorder->first, high = disorder->end - 1u;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if ((int32_t)(gap_at(disorder, middle)->end - number) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return gap_at(disorder, low);
}

/* How many arrivals directly before the frame have a greater number: all since it was overtaken,
 * but for reordered ones with a smaller number. Exact up to DISORDER_NEAR. */
static uint64_t count_nearest(const struct disorder *disorder, const struct disorder_frame *frame,
                              uint64_t extent)
{
    uint64_t nearest = extent;

    for (unsigned i = 0; i < DISORDER_NEAR; i++) {
        uint32_t arrival = disorder->recent[i].arrival;
        uint32_t since = (uint32_t)frame->arrival - 1 - arrival;

        if (arrival != 0 && since < nearest &&
            (int32_t)(disorder->recent[i].number - (uint32_t)frame->number) < 0)
            nearest = since;
    }
    return nearest;
}

void disorder_add(struct disorder *disorder, uint32_t *missing, const struct disorder_frame *frame,
                  struct flow_disorder *count)
{
    struct gap *gap = find_gap(disorder, (uint32_t)frame->number);
    uint64_t extent = (uint16_t)(frame->arrival - gap->arrival);

    gap->missing--;
    --*missing;
    count->extent_sum += extent;
    count->extent_most = extent > count->extent_most ? extent : count->extent_most;
    if (extent >= DISORDER_NEAR)
        count->near += count_nearest(disorder, frame, extent) >= DISORDER_NEAR;
    disorder->recent[disorder->recent_at].number = (uint32_t)frame->number;
    disorder->recent[disorder->recent_at].arrival = (uint32_t)frame->arrival;
    disorder->recent_at = disorder->recent_at + 1 < DISORDER_NEAR ? disorder->recent_at + 1 : 0;
}
