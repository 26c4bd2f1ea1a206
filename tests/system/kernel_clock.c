/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loaded before a node (LD_PRELOAD) in tests of `clock: ptp`: a kernel whose CLOCK_REALTIME is
 * synchronized to within 800 us, and that is ahead by AHEAD_US all the same.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define MAXERROR_US 800

int adjtimex(struct timex *kernel)
{
    memset(kernel, 0, sizeof *kernel);
    kernel->status = STA_PLL;
    kernel->maxerror = MAXERROR_US;
    return TIME_OK;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    const char *ahead_us = getenv("AHEAD_US");
    long rc = syscall(SYS_clock_gettime, clock, time);

    if (rc == 0 && clock == CLOCK_REALTIME && ahead_us != NULL) {
        time->tv_nsec += atol(ahead_us) * 1000;
        time->tv_sec += time->tv_nsec / 1000000000;
        time->tv_nsec %= 1000000000;
    }
    return (int)rc;
}
