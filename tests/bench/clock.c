/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a look at the clock costs: clock_now() (clock_gettime through the vDSO) beside the bare time
 * stamp counter, and what is left of it on each frame of a burst. A worker looks once for each lane
 * that it polls and once for itself. Measured in turn; medians.
 */
#include "clock.h"
#include "common.h"

#include <stdio.h>
#include <x86intrin.h>

#define ROUNDS 9
#define READS 2000000
#define LOOKS 2 /* a round of a worker with one lane */
#define REACH 2.0

static double clock_ns(void)
{
    int64_t begin_ns = bench_thread_ns();
    int64_t last_ns = 0;

    for (unsigned i = 0; i < READS; i++)
        last_ns = clock_now();
    (void)*(volatile int64_t *)&last_ns;
    return (double)(bench_thread_ns() - begin_ns) / READS;
}

static double counter_ns(void)
{
    int64_t begin_ns = bench_thread_ns();
    uint64_t last = 0;

    for (unsigned i = 0; i < READS; i++)
        last = __rdtsc();
    (void)*(volatile uint64_t *)&last;
    return (double)(bench_thread_ns() - begin_ns) / READS;
}

int main(void)
{
    double kernel[ROUNDS], counter[ROUNDS];
    double rate = bench_tsc_rate();
    double look_ns, bare_ns;

    for (unsigned i = 0; i < ROUNDS; i++) {
        kernel[i] = clock_ns();
        counter[i] = counter_ns();
    }
    look_ns = bench_median(kernel, ROUNDS);
    bare_ns = bench_median(counter, ROUNDS);
    printf("clock_now %.1f ns, %.0f cycles; counter %.1f ns, %.0f cycles; ratio %.2f\n", look_ns,
           look_ns * rate, bare_ns, bare_ns * rate, look_ns / bare_ns);
    for (unsigned burst = 8; burst <= 128; burst *= 2)
        printf("burst of %u: %.2f cycles a frame for %d looks, %.2f by the bare counter\n", burst,
               LOOKS * look_ns * rate / burst, LOOKS, LOOKS * bare_ns * rate / burst);
    bench_at_most("gained by the bare counter, burst of 64",
                  LOOKS * (look_ns - bare_ns) * rate / 64, "cycles a frame", REACH);
    return 0;
}
