/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What messages there and back are made of: drawn sizes, folded plans, computing beside them.
 */
#include "clock.h"
#include "compute.h"
#include "draw.h"
#include "pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define DRAWS 100000u

static void sizes_are_uniform_in_their_logarithm(void **state)
{
    struct draw_sizes sizes = draw_sizes(7, 4, 65535);
    uint32_t by_power[16] = {0};

    (void)state;
    for (uint64_t n = 0; n < DRAWS; n++) {
        uint32_t size = draw_size(&sizes, n);

        assert_in_range(size, 4, 65535);
        by_power[31 - __builtin_clz(size)]++;
    }
    for (unsigned power = 2; power < 16; power++) /* 14 powers of two */
        assert_in_range(by_power[power], DRAWS / 14 * 95 / 100, DRAWS / 14 * 105 / 100);
}

static void both_ends_of_a_range_are_drawn(void **state)
{
    struct draw_sizes sizes = draw_sizes(1, 3, 5), one = draw_sizes(1, 1, 1);
    struct draw_sizes all = draw_sizes(9, 1, UINT32_MAX);
    uint32_t seen[6] = {0};

    (void)state;
    for (uint64_t n = 0; n < 1000; n++) {
        seen[draw_size(&sizes, n)]++;
        assert_int_equal(draw_size(&one, n), 1);
        assert_true(draw_size(&all, n) >= 1);
    }
    assert_true(seen[3] > seen[4] && seen[4] > seen[5] && seen[5] > 0);
}

/* The same on every machine: both ends of a flow depend on it. */
static void draws_are_fixed_by_their_seed(void **state)
{
    struct draw_sizes sizes = draw_sizes(draw_seed(1, 2, 3), 4, 1 << 20);

    (void)state;
    assert_true(draw_bits(0, 0) == 0xe220a8397b1dcdafu); /* SplitMix64's first of seed 0 */
    assert_true(draw_bits(0, 1) == 0x6e789e6aa1b965f4u);
    assert_true(draw_seed(1, 2, 3) != draw_seed(1, 3, 2));
    assert_int_equal(draw_size(&sizes, 0), 55458);
    assert_int_equal(draw_size(&sizes, 1), 42);
    assert_int_equal(draw_size(&sizes, 2), 101);
}

/* --- folded plans --- */

#define RANKS 8u

/* Marks each flow of a phase as senders and as receivers see it: they must agree. */
static unsigned count_flows(const struct pattern_plan *plan, uint32_t phase,
                            bool flows[RANKS][RANKS])
{
    bool received[RANKS][RANKS] = {{false}};
    unsigned count = 0;

    memset(flows, 0, RANKS * sizeof flows[0]);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct pattern_flow list[RANKS];
        size_t sent = pattern_flows(plan, phase, rank, PATTERN_SENDS, list, RANKS);

        assert_int_equal(pattern_flows(plan, phase, rank, PATTERN_SENDS, NULL, 0), sent);
        for (size_t i = 0; i < sent; i++, count++)
            flows[list[i].src][list[i].dst] = true;
        sent = pattern_flows(plan, phase, rank, PATTERN_RECEIVES, list, RANKS);
        for (size_t i = 0; i < sent; i++)
            received[list[i].src][list[i].dst] = true;
    }
    assert_memory_equal(flows, received, sizeof received);
    return count;
}

static struct pattern_plan *plan_of(const char *name, const char *order, bool there_and_back)
{
    const struct pattern_request request = {.name = name,
                                            .order = order,
                                            .n = RANKS,
                                            .seed = 1,
                                            .natural = strcmp(name, "ring") == 0,
                                            .there_and_back = there_and_back};
    struct pattern_plan *plan = NULL;
    char why[128];

    assert_int_equal(pattern_plan_make(&plan, &request, why, sizeof why), 0);
    return plan;
}

static void a_way_back_is_left_out(void **state)
{
    static const struct {
        const char *name;
        const char *order;
    } cases[] = {{"pairs", NULL},   {"aapc", "pairwise"}, {"aapc", "shift"},
                 {"aapc", "naive"}, {"ring", NULL},       {"chain", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pattern_plan *whole = plan_of(cases[i].name, cases[i].order, false);
        struct pattern_plan *folded = plan_of(cases[i].name, cases[i].order, true);
        bool all[RANKS][RANKS], some[RANKS][RANKS];

        for (uint32_t phase = 0; phase < pattern_phases(whole); phase++) {
            count_flows(whole, phase, all);
            count_flows(folded, phase, some);
            for (uint32_t a = 0; a < RANKS; a++)
                for (uint32_t b = 0; b < RANKS; b++)
                    assert_int_equal(some[a][b], all[a][b] && (a < b || !all[b][a]));
        }
        pattern_plan_free(whole);
        pattern_plan_free(folded);
    }
}

/* --- computing --- */

static void computing_is_told_apart(void **state)
{
    struct compute_conf conf = {.threads = 2, .share = 0.5, .start_ns = clock_now()};
    struct compute_part alone = {0}, beside = {0};
    struct compute *compute = NULL;

    (void)state;
    conf.messages_ns = conf.start_ns + 30 * NS_PER_MS;
    assert_int_equal(compute_start(&compute, &conf), 0);
    clock_sleep_until(conf.messages_ns + 30 * NS_PER_MS);
    compute_stop(compute);
    compute_sum(compute, &alone, &beside);
    compute_free(compute);
    assert_true(alone.operations > 0 && beside.operations > 0);
    assert_int_equal(alone.operations / alone.pieces.count,
                     beside.operations / beside.pieces.count);
    assert_true(alone.pieces.sum_ns < 2 * (uint64_t)(30 * NS_PER_MS)); /* it rests half the time */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_uniform_in_their_logarithm),
        cmocka_unit_test(both_ends_of_a_range_are_drawn),
        cmocka_unit_test(draws_are_fixed_by_their_seed),
        cmocka_unit_test(a_way_back_is_left_out),
        cmocka_unit_test(computing_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
