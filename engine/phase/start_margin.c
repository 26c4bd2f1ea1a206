/* SPDX-License-Identifier: BSD-3-Clause */
#include "start_margin.h"

#include "clock.h"

#define FIRST_SLEEP_NS (20 * NS_PER_MS)
#define FIRST_POLL_NS (2 * NS_PER_MS)
#define CAREFUL_TIMES 4 /* the longest needed but for an outlier, so many times, */
#define CAREFUL_SHARE 4 /* and no less than this part of the first margin */
/* ... and no more than this, or than half as much again as it was needed. */
#define CAREFUL_MOST_NS (500 * NS_PER_MS)
#define OUTLIER_NOTES 3 /* of so many starts or more one is forgotten, the longest */
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

static int64_t careful_ns(const int64_t sorted_ns[MARGIN_MEMORY], uint32_t count)
{
    int64_t longest_ns = sorted_ns[count - (count >= OUTLIER_NOTES ? 2 : 1)];
    int64_t most_ns = longest_ns + longest_ns / HASTE_SHARE;

    most_ns = most_ns > CAREFUL_MOST_NS ? most_ns : CAREFUL_MOST_NS;
    return CAREFUL_TIMES * longest_ns < most_ns ? CAREFUL_TIMES * longest_ns : most_ns;
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
                       : careful_ns(sorted_ns, count);
    return wanted_ns > floor_ns ? wanted_ns : floor_ns;
}
