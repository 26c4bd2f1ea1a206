/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The margin from a barrier to a start: a safe guess first, then what the last starts needed.
 */
#include "clock.h"
#include "start_margin.h"

#include <stddef.h>

#include <cmocka.h>

static void begins_on_the_safe_side(void **state)
{
    struct start_margin margin;

    start_margin_init(&margin, true);
    assert_int_equal(start_margin_next(&margin, true), 20 * NS_PER_MS);
    assert_int_equal(start_margin_next(&margin, false), 20 * NS_PER_MS);
    start_margin_init(&margin, false);
    assert_int_equal(start_margin_next(&margin, true), 2 * NS_PER_MS);
}

/* One start that took much longer does not slow the next phases down; streams remember two. */
static void tells_the_usual_from_the_longest(void **state)
{
    struct start_margin margin;

    start_margin_init(&margin, true);
    start_margin_note(&margin, 9 * NS_PER_MS);
    for (unsigned i = 1; i < MARGIN_MEMORY; i++)
        start_margin_note(&margin, NS_PER_MS);
    assert_int_equal(start_margin_next(&margin, true), 3 * NS_PER_MS / 2);
    assert_int_equal(start_margin_next(&margin, false), 5 * NS_PER_MS);
    start_margin_note(&margin, 9 * NS_PER_MS); /* the ninth takes the place of the first */
    start_margin_note(&margin, 9 * NS_PER_MS);
    assert_int_equal(start_margin_next(&margin, false), 36 * NS_PER_MS);
}

static void follows_what_becomes_slower(void **state)
{
    struct start_margin margin;

    start_margin_init(&margin, true);
    for (unsigned i = 0; i < MARGIN_MEMORY; i++)
        start_margin_note(&margin, NS_PER_MS);
    for (unsigned i = 0; i <= MARGIN_MEMORY / 2; i++)
        start_margin_note(&margin, 10 * NS_PER_MS);
    assert_int_equal(start_margin_next(&margin, true), 15 * NS_PER_MS);
}

/* A node that was away for seconds, once, is forgotten as soon as there are others to compare with.
 * Where each start needs seconds, they get them. */
static void has_a_ceiling(void **state)
{
    struct start_margin margin;

    start_margin_init(&margin, true);
    start_margin_note(&margin, 4 * NS_PER_S);
    assert_int_equal(start_margin_next(&margin, false), 6 * NS_PER_S);
    for (unsigned i = 0; i < 2; i++)
        start_margin_note(&margin, NS_PER_MS);
    assert_int_equal(start_margin_next(&margin, false), 5 * NS_PER_MS);
    for (unsigned i = 0; i < MARGIN_MEMORY; i++)
        start_margin_note(&margin, 200 * NS_PER_MS);
    assert_int_equal(start_margin_next(&margin, false), 500 * NS_PER_MS);
    for (unsigned i = 0; i < MARGIN_MEMORY; i++)
        start_margin_note(&margin, 2 * NS_PER_S);
    assert_int_equal(start_margin_next(&margin, false), 3 * NS_PER_S);
}

static void has_a_floor(void **state)
{
    struct start_margin margin;

    start_margin_init(&margin, false);
    start_margin_note(&margin, 1);
    assert_int_equal(start_margin_next(&margin, true), 100 * NS_PER_US);
    assert_int_equal(start_margin_next(&margin, false), 500 * NS_PER_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_on_the_safe_side),
        cmocka_unit_test(tells_the_usual_from_the_longest),
        cmocka_unit_test(follows_what_becomes_slower),
        cmocka_unit_test(has_a_ceiling),
        cmocka_unit_test(has_a_floor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
