/* SPDX-License-Identifier: BSD-3-Clause */
#include "start_margin.h"

#include "clock.h"

#define FIRST_SLEEP_NS (20 * NS_PER_MS)
#define FIRST_POLL_NS (2 * NS_PER_MS)
#define CAREFUL_TIMES 4 /* the longest needed, so many times, */
#define CAREFUL_SHARE 4 /* and no less than this part of the first margin */
#define HASTE_SHARE 2   /* the usual need, and this part of it more */
#define HASTE_FLOOR_NS (100 * NS_PER_US)

void start_margin_init(struct start_margin *margin, bool sleeps)
{
    *margin = (struct start_margin){.first_ns = sleeps ? FIRST_SLEEP_NS : FIRST_POLL_NS};
}

void start_margin_note(struct start_margin *margin, int64_t needed_ns)
{
    margin->needed_ns[margin->noted++ % MARGIN_MEMORY] = needed_ns;
}

/* The notes in order, shortest first; returns how many. */
static uint32_t sort_notes(const struct start_margin *margin, int64_t sorted_ns[MARGIN_MEMORY])
{
    uint32_t count = margin->noted < MARGIN_MEMORY ? margin->noted : MARGIN_MEMORY;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && sorted_ns[at - 1] > margin->needed_ns[i]; at--)
            sorted_ns[at] = sorted_ns[at - 1];
        sorted_ns[at] = margin->needed_ns[i];
    }
    return count;
}

int64_t start_margin_next(const struct start_margin *margin, bool hastes)
{
    int64_t sorted_ns[MARGIN_MEMORY];
    uint32_t count = sort_notes(margin, sorted_ns);
    int64_t floor_ns = hastes ? HASTE_FLOOR_NS : margin->first_ns / CAREFUL_SHARE;
    int64_t wanted_ns;

    if (count == 0)
        return margin->first_ns;
    wanted_ns = hastes ? sorted_ns[count / 2] + sorted_ns[count / 2] / HASTE_SHARE
                       : CAREFUL_TIMES * sorted_ns[count - 1];
    return wanted_ns > floor_ns ? wanted_ns : floor_ns;
}
