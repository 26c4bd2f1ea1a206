/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How far ahead a frame's number can be: before the phase's start is known, no farther than what a
 * sender may send at once, whatever its stamp says and however long the machine runs.
 */
#include "sequence_limit.h"

#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define UP_NS (INT64_C(86400) * 1000000000) /* the machine's clock */

static struct sequence_limit a_limit(int64_t start_ns)
{
    return (struct sequence_limit){
        .frames_per_ns = 0.001, .at_once = sequence_limit_at_once(32, 8), .start_ns = start_ns};
}

static bool allows(const struct sequence_limit *limit, int32_t ahead, uint64_t stamp_ns,
                   int64_t last_ns, int64_t now_ns)
{
    int64_t sent_ns = sequence_limit_stamp(limit, stamp_ns, 0, now_ns);

    return sequence_limit_allows(limit, ahead, sent_ns, last_ns, now_ns);
}

static void before_the_start(void **state)
{
    struct sequence_limit limit = a_limit(0);
    int32_t most = (int32_t)limit.at_once;

    assert_true(allows(&limit, most, 0, 0, UP_NS));
    assert_false(allows(&limit, most + 1, 0, 0, UP_NS));
    assert_false(allows(&limit, most + 1, UINT64_MAX / 2, 0, UP_NS));
    assert_false(allows(&limit, INT32_MAX, (uint64_t)UP_NS, 0, UP_NS));
    assert_false(allows(&limit, most + 1, (uint64_t)UP_NS, UP_NS - 10, UP_NS));
}

static void after_the_start_by_time(void **state)
{
    struct sequence_limit limit = a_limit(UP_NS);
    int32_t most = (int32_t)limit.at_once + 1000; /* in 1 ms */

    assert_true(allows(&limit, most, 1000000, UP_NS, UP_NS + 1000000));
    assert_false(allows(&limit, most + 1, 1000000, UP_NS, UP_NS + 1000000));
    assert_false(allows(&limit, INT32_MAX, UINT64_MAX / 2, UP_NS, UP_NS + 1000000));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_start),
        cmocka_unit_test(after_the_start_by_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
