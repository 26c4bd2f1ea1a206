/* SPDX-License-Identifier: BSD-3-Clause */
#include "tsc.h"

#include "clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

/* AMD64 Architecture Programmer's Manual 3, CPUID Fn8000_0007 EDX bit 8; Intel SDM 3B, 18.17.1. */
static uint64_t read_ticks(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0 ? __rdtsc() : 0;
}
#else
static uint64_t read_ticks(void)
{
    return 0;
}
#endif

struct tsc_mark tsc_now(void)
{
    uint64_t ticks = read_ticks(); /* before the time: CPUID takes long in a guest */

    return (struct tsc_mark){ticks, clock_now()};
}

double tsc_hz(const struct tsc_mark *begin)
{
    struct tsc_mark now = tsc_now();

    if (begin->ticks == 0 || now.at_ns - begin->at_ns < 100 * NS_PER_MS)
        return 0;
    return (double)(now.ticks - begin->ticks) * 1e9 / (double)(now.at_ns - begin->at_ns);
}
