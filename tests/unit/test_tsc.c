/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frequency of this machine's time stamp counter.
 */
#include "clock.h"
#include "tsc.h"

#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_frequency_is_known_after_a_tenth_of_a_second(void **state)
{
    struct tsc_mark begin = tsc_now();

    if (begin.ticks == 0)
        skip();
    assert_true(tsc_hz(&(struct tsc_mark){begin.ticks, clock_now()}) == 0);
    clock_sleep_until(begin.at_ns + 110 * NS_PER_MS);
    assert_true(tsc_hz(&begin) > 1e8 && tsc_hz(&begin) < 1e10);
    begin.ticks = 0;
    assert_true(tsc_hz(&begin) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_frequency_is_known_after_a_tenth_of_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
