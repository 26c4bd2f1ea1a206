/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What messages there and back are made of: drawn sizes, folded plans, computing beside them.
 */
#include "clock.h"
#include "compute_load.h"
#include "pattern.h"
#include "prng.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRAWS 100000u

/* Uniform in their logarithm, both ends of the range included; and the same on every machine, since
 * both ends of a flow depend on it. */
static void sizes_are_drawn(void **state)
{
    struct prng_sizes sizes = prng_sizes(7, 4, 65535), few = prng_sizes(1, 3, 5);
    struct prng_sizes fixed = prng_sizes(prng_seed(1, 2, 3), 4, 1 << 20);
    struct prng_sizes one = prng_sizes(1, 1, 1), all = prng_sizes(9, 1, UINT32_MAX);
    uint32_t by_power[16] = {0}, seen[6] = {0};

    for (uint64_t n = 0; n < DRAWS; n++) {
        uint32_t size = prng_size(&sizes, n);

        assert_in_range(size, 4, 65535);
        by_power[31 - __builtin_clz(size)]++;
        seen[prng_size(&few, n)]++;
        assert_int_equal(prng_size(&one, n), 1);
        assert_true(prng_size(&all, n) >= 1);
    }
    for (unsigned power = 2; power < 16; power++) /* 14 powers of two */
        assert_in_range(by_power[power], DRAWS / 14 * 95 / 100, DRAWS / 14 * 105 / 100);
    assert_true(seen[3] > seen[4] && seen[4] > seen[5] && seen[5] > 0);
    assert_true(prng_bits(0, 0) == 0xe220a8397b1dcdafu); /* SplitMix64's first of seed 0 */
    assert_true(prng_bits(0, 1) == 0x6e789e6aa1b965f4u);
    assert_true(prng_seed(1, 2, 3) != prng_seed(1, 3, 2));
    assert_int_equal(prng_size(&fixed, 0), 55458);
    assert_int_equal(prng_size(&fixed, 1), 42);
    assert_int_equal(prng_size(&fixed, 2), 101);
}

/* --- folded plans --- */

#define RANKS 8u

/* Marks each flow of a phase as senders and as receivers see it: they must agree. */
static void mark_flows(const struct pattern_plan *plan, uint32_t phase, bool flows[RANKS][RANKS])
{
    bool received[RANKS][RANKS] = {{false}};

    memset(flows, 0, RANKS * sizeof flows[0]);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (unsigned side = 0; side < 2; side++) {
            struct pattern_flow list[RANKS];
            size_t count = pattern_flows(plan, phase, rank,
                                         side == 0 ? PATTERN_SENDS : PATTERN_RECEIVES, list, RANKS);

            for (size_t i = 0; i < count; i++)
                (side == 0 ? flows : received)[list[i].src][list[i].dst] = true;
        }
    assert_memory_equal(flows, received, sizeof received);
}

static void a_way_back_is_left_out(void **state)
{
    static const char *const cases[][2] = {{"pairs", NULL},   {"aapc", "pairwise"},
                                           {"aapc", "shift"}, {"aapc", "naive"},
                                           {"ring", NULL},    {"chain", NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pattern_plan *plans[2]; /* whole, folded */
        bool all[RANKS][RANKS], some[RANKS][RANKS];

        for (unsigned folded = 0; folded < 2; folded++) {
            const struct pattern_request request = {.name = cases[i][0],
                                                    .order = cases[i][1],
                                                    .n = RANKS,
                                                    .seed = 1,
                                                    .round_trip = folded};
            char why[128];

            assert_int_equal(pattern_plan_make(&plans[folded], &request, why, sizeof why), 0);
        }
        for (uint32_t phase = 0; phase < pattern_phases(plans[0]); phase++) {
            mark_flows(plans[0], phase, all);
            mark_flows(plans[1], phase, some);
            for (uint32_t pair = 0; pair < RANKS * RANKS; pair++) {
                uint32_t a = pair / RANKS, b = pair % RANKS;

                assert_int_equal(some[a][b], all[a][b] && (a < b || !all[b][a]));
            }
        }
        pattern_plan_free(plans[0]);
        pattern_plan_free(plans[1]);
    }
}

/* --- computing --- */

static void computing_is_told_apart(void **state)
{
    struct compute_conf conf = {.threads = 2, .share = 0.5, .start_ns = clock_now()};
    struct compute_part alone = {0}, beside = {0};
    struct compute *compute = NULL;

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
        cmocka_unit_test(sizes_are_drawn),
        cmocka_unit_test(a_way_back_is_left_out),
        cmocka_unit_test(computing_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
