/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The margin from a barrier to a start: a safe guess first, then what the last starts needed.
 */
#include "clock.h"
#include "start_margin.h"

#include <stddef.h>

#include <cmocka.h>

#define RUNS 3

/* What starts needed, so many times each, and the margins that follow. */
static const struct {
    struct {
        unsigned times;
        int64_t needed_us;
    } starts[RUNS];
    int64_t hasty_us, careful_us;
} cases[] = {
    {{{0}}, 20000, 20000},
    /* One start that took much longer does not slow the next phases down; streams remember two. */
    {{{1, 9000}, {MARGIN_MEMORY - 1, 1000}}, 1500, 5000},
    {{{1, 9000}, {MARGIN_MEMORY - 1, 1000}, {2, 9000}}, 1500, 36000}, /* the ninth replaces one */
    {{{MARGIN_MEMORY, 1000}, {MARGIN_MEMORY / 2 + 1, 10000}}, 15000, 40000},
    /* A node that was away for seconds, once, is forgotten as soon as there are others to compare
     * with. Where each start needs seconds, they get them. */
    {{{1, 4000000}}, 6000000, 6000000},
    {{{1, 4000000}, {2, 1000}}, 1500, 5000},
    {{{MARGIN_MEMORY, 200000}}, 300000, 500000},
    {{{MARGIN_MEMORY, 2000000}}, 3000000, 3000000},
    {{{1, 0}}, 100, 5000},
};

static void margins_follow_what_starts_needed(void **state)
{
    struct start_margin margin;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start_margin_init(&margin, true);
        for (size_t s = 0; s < RUNS; s++)
            for (unsigned t = 0; t < cases[i].starts[s].times; t++)
                start_margin_note(&margin, cases[i].starts[s].needed_us * NS_PER_US);
        assert_int_equal(start_margin_next(&margin, true), cases[i].hasty_us * NS_PER_US);
        assert_int_equal(start_margin_next(&margin, false), cases[i].careful_us * NS_PER_US);
    }
    start_margin_init(&margin, false);
    assert_int_equal(start_margin_next(&margin, true), 2 * NS_PER_MS);
    start_margin_note(&margin, 1);
    assert_int_equal(start_margin_next(&margin, false), 500 * NS_PER_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(margins_follow_what_starts_needed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
