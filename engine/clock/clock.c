/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include <assert.h>
#include <errno.h>

const char *clock_mode_name(enum clock_mode mode)
{
    static const char *const names[] = {
        [CLOCK_AUTO] = "auto",
        [CLOCK_SHARED] = "shared",
        [CLOCK_PTP] = "ptp",
        [CLOCK_ESTIMATED] = "estimated",
    };

    static_assert(sizeof names / sizeof names[0] == CLOCK_MODES, "each has a name");
    return names[mode];
}

void clock_sleep_until(int64_t time_ns)
{
    struct timespec t = {.tv_sec = time_ns / NS_PER_S, .tv_nsec = time_ns % NS_PER_S};

    if (time_ns <= clock_now()) /* the kernel would set a timer all the same: 15 us in a guest */
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}
