/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_sync_status.h"

#include "clock.h"

#define READS 5

static int64_t realtime_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

void kernel_sync_classify(struct kernel_sync_status *discipline, int state,
                          const struct timex *kernel)
{
    discipline->synchronized =
        state >= 0 && state != TIME_ERROR && (kernel->status & STA_UNSYNC) == 0;
    discipline->maxerror_ns = kernel->maxerror * NS_PER_US;
    discipline->esterror_ns = kernel->esterror * NS_PER_US;
}

void kernel_sync_read(struct kernel_sync_status *discipline)
{
    struct timex kernel = {.modes = 0};
    int64_t tightest_ns = INT64_MAX;

    kernel_sync_classify(discipline, adjtimex(&kernel), &kernel);
    for (unsigned i = 0; i < READS; i++) {
        int64_t before_ns = clock_now();
        int64_t realtime_ns = realtime_now();
        int64_t took_ns = clock_now() - before_ns;

        if (took_ns >= tightest_ns)
            continue;
        tightest_ns = took_ns;
        discipline->offset_ns = realtime_ns - before_ns - took_ns / 2;
    }
    discipline->maxerror_ns += tightest_ns / 2 + 1;
}
