/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include <errno.h>
#include <sys/timex.h>

const char *const clock_words[CLOCK_MODES + 1] = {
    [CLOCK_AUTO] = "auto",
    [CLOCK_SHARED] = "shared",
    [CLOCK_PTP] = "ptp",
    [CLOCK_ESTIMATED] = "estimated",
};

void clock_sleep_until(int64_t time_ns)
{
    struct timespec t = {.tv_sec = time_ns / NS_PER_S, .tv_nsec = time_ns % NS_PER_S};

    /* For a past time the kernel would still set a timer: 15 us in a guest. */
    if (time_ns <= clock_now())
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* --- the kernel's CLOCK_REALTIME --- */

#define READS 5

void kernel_sync_classify(struct kernel_sync_status *status, int state, const struct timex *kernel)
{
    status->synchronized = state >= 0 && state != TIME_ERROR && (kernel->status & STA_UNSYNC) == 0;
    status->maxerror_ns = kernel->maxerror * NS_PER_US;
}

void kernel_sync_read(struct kernel_sync_status *status)
{
    struct timex kernel = {.modes = 0};
    int64_t tightest_ns = INT64_MAX;

    kernel_sync_classify(status, adjtimex(&kernel), &kernel);
    for (unsigned i = 0; i < READS; i++) {
        struct timespec realtime;
        int64_t before_ns = clock_now(), took_ns;

        clock_gettime(CLOCK_REALTIME, &realtime);
        took_ns = clock_now() - before_ns;
        if (took_ns >= tightest_ns)
            continue;
        tightest_ns = took_ns;
        status->offset_ns =
            (int64_t)realtime.tv_sec * NS_PER_S + realtime.tv_nsec - before_ns - took_ns / 2;
    }
    status->maxerror_ns += tightest_ns / 2 + 1;
}
