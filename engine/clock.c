/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include <errno.h>

void clock_sleep_until(int64_t time_ns)
{
    struct timespec t = {.tv_sec = time_ns / NS_PER_S, .tv_nsec = time_ns % NS_PER_S};

    if (time_ns <= clock_now()) /* the kernel would set a timer all the same: 15 us in a guest */
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}
