/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of a phase.
 */
#include "phase_stage.h"

#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_a_phase_goes_from_empty_to_ended_by_one_way(void **state)
{
    enum phase_stage stage = PHASE_EMPTY;

    for (enum phase_stage next = PHASE_BEGUN; next <= PHASE_ENDED; next++) {
        for (enum phase_stage other = PHASE_BEGUN; other <= PHASE_ENDED; other++)
            assert_int_equal(phase_may_enter(stage, other), other == next);
        phase_enter(&stage, next);
    }
    assert_int_equal(stage, PHASE_ENDED);
}

static void test_it_fails_only_before_it_is_ready(void **state)
{
    for (enum phase_stage stage = PHASE_EMPTY; stage < PHASE_STAGES; stage++)
        assert_int_equal(phase_may_enter(stage, PHASE_FAILED), stage < PHASE_READY);
}

static void test_it_is_released_at_any_time(void **state)
{
    for (enum phase_stage stage = PHASE_EMPTY; stage < PHASE_STAGES; stage++)
        assert_true(phase_may_enter(stage, PHASE_EMPTY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_phase_goes_from_empty_to_ended_by_one_way),
        cmocka_unit_test(test_it_fails_only_before_it_is_ready),
        cmocka_unit_test(test_it_is_released_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
