/* SPDX-License-Identifier: BSD-3-Clause */
#include "tsc.h"

#include "clock.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define SPAN_NS (100 * NS_PER_MS) /* with 50 ns at either end: 1 ppm */
#define READS 32

#if defined(__x86_64__)
static uint64_t ticks_now(void)
{
    unsigned cpu;

    return __rdtscp(&cpu); /* waits for what came before it */
}

/* AMD64 Architecture Programmer's Manual 3, CPUID Fn8000_0007 EDX bit 8; Intel SDM 3B, 18.17.1. */
static bool invariant(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
}
#else
static uint64_t ticks_now(void)
{
    return 0;
}

static bool invariant(void)
{
    return false;
}
#endif

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* The kernel's clocks are read between two reads of the counter; the tightest pair of many is the
 * one that nothing came between. */
static void take(struct tsc_mark *mark)
{
    uint64_t tightest = UINT64_MAX;

    for (unsigned i = 0; i < READS; i++) {
        uint64_t before = ticks_now();
        int64_t raw_ns = read_ns(CLOCK_MONOTONIC_RAW);
        uint64_t after = ticks_now();
        int64_t monotonic_ns = read_ns(CLOCK_MONOTONIC);

        if (after - before >= tightest)
            continue;
        tightest = after - before;
        *mark = (struct tsc_mark){before + tightest / 2, raw_ns, monotonic_ns};
    }
}

void tsc_begin(struct tsc *tsc)
{
    *tsc = (struct tsc){.hz = 0};
    if (invariant())
        take(&tsc->begin);
}

static double rate_hz(const struct tsc_mark *from, const struct tsc_mark *to)
{
    return (double)(to->ticks - from->ticks) * 1e9 / (double)(to->raw_ns - from->raw_ns);
}

void tsc_calibrate(struct tsc *tsc)
{
    if (tsc->begin.ticks == 0 || tsc->hz > 0 ||
        read_ns(CLOCK_MONOTONIC_RAW) - tsc->begin.raw_ns < SPAN_NS)
        return;
    take(&tsc->calibrated);
    tsc->hz = rate_hz(&tsc->begin, &tsc->calibrated);
}

bool tsc_compare(const struct tsc *tsc, const struct tsc_mark *now, struct tsc_report *report)
{
    const struct tsc_mark *from = &tsc->calibrated;

    if (tsc->hz <= 0 || now->raw_ns - from->raw_ns < SPAN_NS)
        return false;
    report->drift_ppm = (rate_hz(from, now) / tsc->hz - 1) * 1e6;
    report->slew_ppm =
        (double)(now->monotonic_ns - from->monotonic_ns - (now->raw_ns - from->raw_ns)) /
        (double)(now->raw_ns - from->raw_ns) * 1e6;
    return true;
}

bool tsc_check(const struct tsc *tsc, struct tsc_report *report)
{
    struct tsc_mark now;

    if (tsc->hz <= 0)
        return false;
    take(&now);
    return tsc_compare(tsc, &now, report);
}
