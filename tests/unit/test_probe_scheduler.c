/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe_scheduler.h"

#include <stddef.h>

#include <cmocka.h>

#define GAP_NS 1000000

/* In a second as many as the rate says, no two closer than half of their distance, and at distances
 * that fill the range: not the same again and again. */
static void is_even_but_not_regular(void **state)
{
    unsigned tenths[10] = {0}, count = 0;
    struct probe_scheduler scheduler;
    int64_t last_ns = 0;

    probe_scheduler_begin(&scheduler, GAP_NS, 5000, 42);
    assert_in_range(scheduler.next_ns, 5000, 5000 + GAP_NS);
    for (; scheduler.next_ns < 1000 * GAP_NS + 5000; count++) {
        int64_t gap_ns = scheduler.next_ns - last_ns;

        if (last_ns > 0) {
            assert_in_range(gap_ns, GAP_NS / 2, 3 * GAP_NS / 2);
            tenths[(gap_ns - GAP_NS / 2) * 10 / (GAP_NS + 1)]++;
        }
        last_ns = scheduler.next_ns;
        probe_scheduler_step(&scheduler, scheduler.next_ns);
    }
    assert_in_range(count, 970, 1030);
    for (unsigned i = 0; i < 10; i++)
        assert_in_range(tenths[i], 60, 140);
}

/* Who slept does not send what it missed. */
static void skips_what_was_missed(void **state)
{
    struct probe_scheduler scheduler;

    probe_scheduler_begin(&scheduler, GAP_NS, 0, 1);
    probe_scheduler_step(&scheduler, 50 * GAP_NS);
    assert_in_range(scheduler.next_ns, 50 * GAP_NS + GAP_NS / 2, 51 * GAP_NS + GAP_NS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_even_but_not_regular),
        cmocka_unit_test(skips_what_was_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
