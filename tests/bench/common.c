/* SPDX-License-Identifier: BSD-3-Clause */
#include "common.h"

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <x86intrin.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

double bench_tsc_rate(void)
{
    int64_t begin_ns = clock_now();
    uint64_t ticks = __rdtsc();

    clock_sleep_until(begin_ns + NS_PER_S / 20);
    return (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
}

int64_t bench_thread_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t bench_others_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_thread_ns();
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
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void verdict(const char *what, double value, const char *unit, const char *reach, bool good)
{
    printf("%s: %.4g%s%s (reach: %s): %s\n", what, value, unit[0] != '\0' ? " " : "", unit, reach,
           good ? "PASS" : "RED");
    fflush(stdout);
}

void bench_at_most(const char *what, double value, const char *unit, double reach)
{
    char text[48];

    snprintf(text, sizeof text, "at most %g", reach);
    verdict(what, value, unit, text, value <= reach);
}

void bench_at_least(const char *what, double value, const char *unit, double reach)
{
    char text[48];

    snprintf(text, sizeof text, "at least %g", reach);
    verdict(what, value, unit, text, value >= reach);
}
