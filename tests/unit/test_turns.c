/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns: each flow has its share of a round, spread over it.
 */
#include "turns.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct turns turns_of(const double *shares, uint32_t count)
{
    struct lane_flow flows[256] = {0};
    struct turns turns;

    assert_in_range(count, 1, 256);
    for (uint32_t i = 0; i < count; i++)
        flows[i].share = shares[i];
    assert_int_equal(turns_make(&turns, flows, count), 0);
    return turns;
}

static void flows_without_shares_have_no_table(void **state)
{
    struct turns turns = turns_of((const double[]){0, 0, 0}, 3);

    assert_null(turns.flow);
    turns_free(&turns);
}

static void halves_and_quarters_are_spread(void **state)
{
    static const uint32_t expected[] = {0, 1, 2, 0};
    struct turns turns = turns_of((const double[]){0.5, 0.25, 0.25}, 3);

    assert_int_equal(turns.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(turns.flow[i], expected[i]);
    turns_free(&turns);
}

static void decimal_percents_are_exact(void **state)
{
    struct turns turns = turns_of((const double[]){0.9998 / 1.0098, 0.01 / 1.0098}, 2);
    uint32_t few = 0, last = 0;

    for (uint32_t i = 0; i < turns.count; i++)
        few += turns.flow[i] == 1;
    assert_float_equal((double)few / turns.count, 0.01 / 1.0098, 0.5 / TURNS_MAX);
    turns_free(&turns);
    turns = turns_of((const double[]){0.99, 0.01}, 2);
    assert_int_equal(turns.count, 100);
    for (uint32_t i = 0; i < turns.count; i++)
        last = turns.flow[i] == 1 ? i : last;
    assert_int_equal(turns.flow[last], 1);
    assert_in_range(last, 49, 50);
    turns_free(&turns);
}

/* At any time no flow is a frame ahead of its share, or behind it, by more than the others' ties.
 */
static void any_shares_are_met_all_along(void **state)
{
    srand(1);
    for (unsigned try = 0; try < 100; try++) {
        uint32_t count = 2 + (uint32_t)rand() % 20, sent[256] = {0};
        double shares[256], sum = 0;
        struct turns turns;

        for (uint32_t i = 0; i < count; i++)
            sum += shares[i] = 1 + rand() % 1000;
        for (uint32_t i = 0; i < count; i++)
            shares[i] /= sum;
        turns = turns_of(shares, count);
        assert_in_range(turns.count, count, TURNS_MAX + count);
        for (uint32_t turn = 0; turn < turns.count; turn++) {
            uint32_t flow = turns.flow[turn];

            assert_in_range(flow, 0, count - 1);
            sent[flow]++;
            if (fabs(sent[flow] - shares[flow] * (turn + 1)) > 1 + count / 2.0)
                fail_msg("flow %u of %u: %u of %u", flow, count, sent[flow], turn + 1);
        }
        for (uint32_t i = 0; i < count; i++)
            assert_float_equal((double)sent[i] / turns.count, shares[i], 1.0 / TURNS_MAX);
        turns_free(&turns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_without_shares_have_no_table),
        cmocka_unit_test(halves_and_quarters_are_spread),
        cmocka_unit_test(decimal_percents_are_exact),
        cmocka_unit_test(any_shares_are_met_all_along),
    };

    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
