/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The CPU's time stamp counter beside the kernel's clocks. Times in a node are CLOCK_MONOTONIC's
 * (clock.h): it is the same for all threads, and right over an hour, which a counter calibrated for
 * a tenth of a second is not; NTP's slewing moves it, and a counter would have to follow. Reading
 * it through the vDSO costs 28 cycles more than the bare counter, less than one a frame in bursts
 * of 64 (tests/bench/clock.c). The counter says what a frame costs in cycles, and it is a second
 * witness: when it and the kernel's raw clock drift apart, one of them is wrong, and so is every
 * rate.
 */
#ifndef ENGINE_TSC_H
#define ENGINE_TSC_H

#include <stdbool.h>
#include <stdint.h>

#define TSC_DRIFT_PPM 10.0 /* more is reported */

/* All clocks at one moment, as well as they can be read. */
struct tsc_mark {
    uint64_t ticks;
    int64_t raw_ns;       /* CLOCK_MONOTONIC_RAW */
    int64_t monotonic_ns; /* CLOCK_MONOTONIC */
};

struct tsc {
    struct tsc_mark begin;
    struct tsc_mark calibrated;
    double
        hz; /* 0: no counter that runs evenly (invariant TSC, CPUID 80000007h), or not known yet */
};

struct tsc_report {
    double drift_ppm; /* of the counter against CLOCK_MONOTONIC_RAW, since it was calibrated */
    double slew_ppm;  /* of CLOCK_MONOTONIC against it, by whoever disciplines the clock */
};

void tsc_begin(struct tsc *tsc);
/* Calibrates once a tenth of a second has passed since the begin; before that, and once it is done,
 * it does nothing. Costs some microseconds. */
void tsc_calibrate(struct tsc *tsc);
/* False: nothing can be said yet, or there is no such counter. */
bool tsc_check(const struct tsc *tsc, struct tsc_report *report);
/* The same from marks that were taken before: no clock is read. */
bool tsc_compare(const struct tsc *tsc, const struct tsc_mark *now, struct tsc_report *report);

#endif
