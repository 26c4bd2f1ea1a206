/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The time stamp counter against the kernel's clocks: by made-up marks, and on this machine.
 */
#include "clock.h"
#include "tsc.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A counter of 2.5 GHz, calibrated after a second. */
static const struct tsc even = {
    .begin = {.ticks = 1, .raw_ns = 0},
    .calibrated = {.ticks = 2500000001, .raw_ns = NS_PER_S, .monotonic_ns = 77 * NS_PER_S},
    .hz = 2.5e9,
};

/* Ten seconds later: so many ticks and nanoseconds more than there should be. */
static struct tsc_report after(int64_t ticks, int64_t monotonic_ns)
{
    struct tsc_mark now = {
        .ticks = even.calibrated.ticks + (uint64_t)(25000000000 + ticks),
        .raw_ns = even.calibrated.raw_ns + 10 * NS_PER_S,
        .monotonic_ns = even.calibrated.monotonic_ns + 10 * NS_PER_S + monotonic_ns,
    };
    struct tsc_report report;

    assert_true(tsc_compare(&even, &now, &report));
    return report;
}

static void drift_is_the_counter_s_alone(void **state)
{
    assert_true(fabs(after(0, 0).drift_ppm) < 1e-3);
    assert_true(fabs(after(0, 0).slew_ppm) < 1e-3);
    assert_true(fabs(after(250000, 0).drift_ppm - 10) < 1e-3);
    assert_true(fabs(after(-500000, 0).drift_ppm + 20) < 1e-3);
    assert_true(fabs(after(0, 5000000).drift_ppm) < 1e-3); /* NTP's slewing is not drift */
    assert_true(fabs(after(0, 5000000).slew_ppm - 500) < 1e-3);
}

static void too_short_a_time_says_nothing(void **state)
{
    struct tsc_mark now = even.calibrated;
    struct tsc_report report;
    struct tsc none = {.hz = 0};

    now.raw_ns += 99 * NS_PER_MS;
    assert_false(tsc_compare(&even, &now, &report));
    now.raw_ns += NS_PER_S;
    assert_false(tsc_compare(&none, &now, &report));
}

static void this_machine_s_counter_runs_evenly(void **state)
{
    struct tsc_report report;
    struct tsc tsc;

    tsc_begin(&tsc);
    if (tsc.begin.ticks == 0)
        skip();
    tsc_calibrate(&tsc);
    assert_true(tsc.hz == 0); /* not yet */
    clock_sleep_until(clock_now() + 110 * NS_PER_MS);
    tsc_calibrate(&tsc);
    assert_true(tsc.hz > 1e8 && tsc.hz < 1e10);
    assert_false(tsc_check(&tsc, &report));
    clock_sleep_until(clock_now() + 110 * NS_PER_MS);
    assert_true(tsc_check(&tsc, &report));
    assert_true(fabs(report.drift_ppm) < 500); /* a busy machine may come between two reads */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_is_the_counter_s_alone),
        cmocka_unit_test(too_short_a_time_says_nothing),
        cmocka_unit_test(this_machine_s_counter_runs_evenly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
