/* SPDX-License-Identifier: BSD-3-Clause */
#include "common.h"

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <x86intrin.h>

_Noreturn void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

double bench_tsc_rate(void)
{
    int64_t begin_ns = clock_now();
    uint64_t ticks = __rdtsc();

    clock_sleep_until(begin_ns + NS_PER_S / 20);
    return (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
}

int64_t bench_cpu_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

long bench_preemptions(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

void bench_verdict(const char *what, double value, const char *unit, bool at_most, double reach)
{
    bool good = at_most ? value <= reach : value >= reach;

    printf("%s: %.4g %s (reach: at %s %g): %s\n", what, value, unit, at_most ? "most" : "least",
           reach, good ? "PASS" : "RED");
    fflush(stdout);
}

void bench_show_frames(double frames, double ns)
{
    printf("%.0f frames/s, %.3f ns, %.2f cycles a frame\n", frames * 1e9 / ns, ns / frames,
           ns / frames * bench_tsc_rate());
}
