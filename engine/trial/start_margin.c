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

int64_t start_margin_next(const struct start_margin *margin, bool hastes)
{
    uint32_t count = margin->noted < MARGIN_MEMORY ? margin->noted : MARGIN_MEMORY;
    int64_t sorted_ns[MARGIN_MEMORY]; /* the notes, shortest first */
    int64_t longest_ns, wanted_ns, most_ns;

    if (count == 0)
        return margin->first_ns;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && sorted_ns[at - 1] > margin->needed_ns[i]; at--)
            sorted_ns[at] = sorted_ns[at - 1];
        sorted_ns[at] = margin->needed_ns[i];
    }
    if (hastes) {
        wanted_ns = sorted_ns[count / 2] + sorted_ns[count / 2] / HASTE_SHARE;
        return wanted_ns > HASTE_FLOOR_NS ? wanted_ns : HASTE_FLOOR_NS;
    }
    longest_ns = sorted_ns[count - (count >= OUTLIER_NOTES ? 2 : 1)];
    most_ns = longest_ns + longest_ns / HASTE_SHARE;
    most_ns = most_ns > CAREFUL_MOST_NS ? most_ns : CAREFUL_MOST_NS;
    wanted_ns = CAREFUL_TIMES * longest_ns < most_ns ? CAREFUL_TIMES * longest_ns : most_ns;
    return wanted_ns > margin->first_ns / CAREFUL_SHARE ? wanted_ns
                                                        : margin->first_ns / CAREFUL_SHARE;
}
