/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clock offsets over simulated paths: jittered, asymmetric, lossy, with clocks that drift apart.
 * The truth must always be within the bound, and the bound must become useful.
 */
#include "barrier_sim.h"
#include "offset.h"
#include "run_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define US NS_PER_US
#define MS NS_PER_MS
#define S NS_PER_S
#define ROUNDING_NS 3 /* each clock shows whole nanoseconds */
#define NODES 8

/* A clock as a function of true time. */
struct crystal {
    int64_t start_ns;
    double ppm;
};

static int64_t shows(const struct crystal *crystal, int64_t true_ns)
{
    return crystal->start_ns + true_ns + (int64_t)((double)true_ns * crystal->ppm * 1e-6);
}

struct path {
    int64_t there_ns, there_jitter_ns;
    int64_t back_ns, back_jitter_ns;
    int64_t hold_ns; /* between a question's arrival and the answer */
    int64_t period_ns;
    double loss;
};

static const struct path paths[] = {
    {20 * US, 5 * US, 20 * US, 5 * US, 10 * US, 10 * MS, 0},
    {20 * US, 200 * US, 20 * US, 200 * US, 10 * US, 10 * MS, 0.1},
    {20 * US, 0, 900 * US, 0, 10 * US, 10 * MS, 0},
    {3 * MS, 5 * MS, 20 * US, 100 * US, 1 * MS, 100 * MS, 0.3},
    {50 * US, 50 * US, 80 * US, 50 * US, 2 * S, 1 * S, 0.1},
};

static int64_t jitter(uint64_t *random, int64_t range_ns)
{
    return range_ns ? (int64_t)(sim_random(random) % (uint64_t)range_ns) : 0;
}

static bool lost(uint64_t *random, const struct path *path)
{
    return (double)(sim_random(random) >> 11) * 0x1p-53 < path->loss;
}

/* How far the estimate is from the truth beyond what it admits; negative: it holds. */
static int64_t excess_ns(struct offset_estimate estimate, const struct crystal *ours,
                         const struct crystal *theirs, int64_t true_ns)
{
    int64_t truth_ns = shows(theirs, true_ns) - shows(ours, true_ns);

    return llabs(estimate.offset_ns - truth_ns) - estimate.bound_ns - ROUNDING_NS;
}

static void the_truth_is_within_the_bound(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        const struct path *path = &paths[round % (sizeof(paths) / sizeof(paths[0]))];
        const struct crystal ours = {(int64_t)(sim_random(&random) % (1000 * S)),
                                     (double)(sim_random(&random) % 200) - 100};
        const struct crystal theirs = {(int64_t)(sim_random(&random) % (1000 * S)),
                                       (double)(sim_random(&random) % 200) - 100};
        struct offset_estimate estimate = {0, -1};
        struct offset offset;
        int64_t now_ns = 0;

        offset_init(&offset);
        for (unsigned exchange = 0; exchange < 300; exchange++) {
            int64_t there_ns = now_ns + path->there_ns + jitter(&random, path->there_jitter_ns);
            int64_t reply_ns = there_ns + path->hold_ns;
            int64_t back_ns = reply_ns + path->back_ns + jitter(&random, path->back_jitter_ns);

            if (!lost(&random, path)) {
                offset_departed(&offset, shows(&ours, now_ns), shows(&theirs, there_ns));
                offset_arrived(&offset, shows(&theirs, reply_ns), shows(&ours, back_ns));
            }
            now_ns = back_ns + jitter(&random, path->period_ns);
            estimate = offset_estimate(&offset, shows(&ours, now_ns));
            if (estimate.bound_ns >= 0)
                assert_true(excess_ns(estimate, &ours, &theirs, now_ns) <= 0);
        }
        assert_true(estimate.bound_ns >= 0);
        assert_true(
            estimate.bound_ns <=
            (path->there_ns + path->back_ns + path->there_jitter_ns + path->back_jitter_ns) / 2 +
                offset_drift_ns(20 * (path->period_ns + path->hold_ns)));
    }
}

static void knows_nothing_without_both_directions(void **state)
{
    struct offset offset;

    (void)state;
    offset_init(&offset);
    assert_int_equal(offset_estimate(&offset, 0).bound_ns, -1);
    offset_arrived(&offset, 500, 100);
    assert_int_equal(offset_estimate(&offset, 100).bound_ns, -1);
    offset_departed(&offset, 90, 495);
    assert_in_range(offset_estimate(&offset, 100).offset_ns, 402, 403);
    assert_in_range(offset_estimate(&offset, 100).bound_ns, 3, 4);
}

/* Half the round trip, exactly, when question and answer just came. */
static void is_rfc_5905s_offset_and_half_its_delay(void **state)
{
    const int64_t t1 = 1000, t2 = 8100, t3 = 8150, t4 = 1350;
    struct offset offset;

    (void)state;
    offset_init(&offset);
    offset_departed(&offset, t1, t2);
    offset_arrived(&offset, t3, t4);
    assert_true(llabs(offset_estimate(&offset, t4).offset_ns - ((t2 - t1) + (t3 - t4)) / 2) <= 1);
    assert_true(llabs(offset_estimate(&offset, t4).bound_ns - ((t4 - t1) - (t3 - t2)) / 2) <= 2);
}

static void the_bound_grows_with_age(void **state)
{
    struct offset offset;
    int64_t fresh_ns;

    (void)state;
    offset_init(&offset);
    offset_departed(&offset, S, 5 * S + 10 * US);
    offset_arrived(&offset, 5 * S + 20 * US, S + 30 * US);
    fresh_ns = offset_estimate(&offset, S + 30 * US).bound_ns;
    assert_in_range(fresh_ns, 10 * US, 11 * US);
    assert_in_range(offset_estimate(&offset, 11 * S).bound_ns, 2 * MS, 2 * MS + 2 * fresh_ns);
    /* A worse sample is better than a good one that is too old. */
    offset_departed(&offset, 11 * S, 15 * S + 100 * US);
    offset_arrived(&offset, 15 * S + 100 * US, 11 * S + 200 * US);
    assert_in_range(offset_estimate(&offset, 11 * S + 200 * US).bound_ns, 100 * US, 101 * US);
}

static void learns_anew_after_a_step(void **state)
{
    const int64_t step_ns = 10 * S;
    struct offset_estimate estimate;

    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct offset offset;

        offset_init(&offset);
        offset_departed(&offset, 100 * S, 200 * S + 10 * US);
        offset_arrived(&offset, 200 * S + 10 * US, 100 * S + 20 * US);
        offset_departed(&offset, 101 * S, 201 * S + sign * step_ns + 10 * US);
        offset_arrived(&offset, 201 * S + sign * step_ns + 10 * US, 101 * S + 20 * US);
        offset_departed(&offset, 102 * S, 202 * S + sign * step_ns + 10 * US);
        estimate = offset_estimate(&offset, 102 * S);
        assert_true(estimate.bound_ns >= 0 && estimate.bound_ns < MS);
        assert_true(llabs(estimate.offset_ns - 100 * S - sign * step_ns) <= estimate.bound_ns);
    }
}

static void ignores_what_is_no_time(void **state)
{
    static const int64_t wrong[] = {INT64_MIN, -1, INT64_MAX, INT64_MAX / 2};
    struct offset offset;

    (void)state;
    offset_init(&offset);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        offset_departed(&offset, wrong[i], 1);
        offset_departed(&offset, 1, wrong[i]);
        offset_arrived(&offset, wrong[i], 1);
        offset_arrived(&offset, 1, wrong[i]);
    }
    assert_int_equal(offset_estimate(&offset, 0).bound_ns, -1);
}

/* ---- run time: a tree of clocks ---- */

static int64_t exchange(struct run_clock *child, const struct crystal *ours,
                        const struct run_clock *parent, const struct crystal *theirs,
                        int64_t now_ns, uint64_t *random)
{
    int64_t there_ns = now_ns + 20 * US + jitter(random, 100 * US);
    int64_t back_ns = there_ns + 20 * US + jitter(random, 300 * US);
    const struct run_clock_stamps stamps = {shows(ours, now_ns), shows(theirs, there_ns),
                                            shows(theirs, there_ns), shows(ours, back_ns)};

    run_clock_heard(child, &stamps, run_clock_estimate(parent, shows(theirs, there_ns)));
    return back_ns;
}

static void run_time_sums_along_the_tree(void **state)
{
    struct crystal crystals[NODES];
    struct run_clock clocks[NODES];
    uint64_t random = 5;
    int64_t now_ns = 0;

    (void)state;
    for (uint32_t i = 0; i < NODES; i++) {
        crystals[i] = (struct crystal){(int64_t)(sim_random(&random) % (100 * S)),
                                       (double)(sim_random(&random) % 200) - 100};
        run_clock_init(&clocks[i], i == 0);
    }
    assert_int_equal(run_clock_estimate(&clocks[7], 0).bound_ns, -1);
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t node = 1 + (uint32_t)(sim_random(&random) % (NODES - 1));
        uint32_t parent = session_parent(node);
        struct offset_estimate estimate;

        now_ns = exchange(&clocks[node], &crystals[node], &clocks[parent], &crystals[parent],
                          now_ns, &random) +
                 jitter(&random, 10 * MS);
        for (uint32_t i = 0; i < NODES; i++) {
            estimate = run_clock_estimate(&clocks[i], shows(&crystals[i], now_ns));
            if (estimate.bound_ns >= 0)
                assert_true(excess_ns(estimate, &crystals[i], &crystals[0], now_ns) <= 0);
            else
                assert_true(round < 200);
        }
    }
    assert_true(run_clock_estimate(&clocks[7], shows(&crystals[7], now_ns)).bound_ns < MS);
}

static void one_machine_has_one_clock(void **state)
{
    const struct run_clock_stamps stamps = {10, 500, 500, 1000};
    struct offset_estimate estimate;
    struct run_clock clock;

    (void)state;
    run_clock_init(&clock, false);
    run_clock_boot(&clock, true, false);
    estimate = run_clock_estimate(&clock, 12345);
    assert_int_equal(estimate.offset_ns, 0);
    assert_int_equal(estimate.bound_ns, 0);

    /* The parent's clock is ours, but node 0's is not: what the parent knows is what we know. */
    run_clock_boot(&clock, false, true);
    assert_int_equal(run_clock_estimate(&clock, 1000).bound_ns, -1);
    run_clock_heard(&clock, &stamps, (struct offset_estimate){77, 9});
    estimate = run_clock_estimate(&clock, 1000);
    assert_int_equal(estimate.offset_ns, 77);
    assert_int_equal(estimate.bound_ns, 9);
}

static void believes_the_latest_word_of_the_parent(void **state)
{
    const struct run_clock_stamps late = {10, 500, 900, 1000}, early = {10, 500, 800, 1001};
    struct run_clock clock;

    (void)state;
    run_clock_init(&clock, false);
    run_clock_boot(&clock, false, true);
    run_clock_heard(&clock, &late, (struct offset_estimate){77, 9});
    run_clock_heard(&clock, &early, (struct offset_estimate){11, 1});
    assert_int_equal(run_clock_estimate(&clock, 1001).offset_ns, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_truth_is_within_the_bound),
        cmocka_unit_test(knows_nothing_without_both_directions),
        cmocka_unit_test(is_rfc_5905s_offset_and_half_its_delay),
        cmocka_unit_test(the_bound_grows_with_age),
        cmocka_unit_test(learns_anew_after_a_step),
        cmocka_unit_test(ignores_what_is_no_time),
        cmocka_unit_test(run_time_sums_along_the_tree),
        cmocka_unit_test(one_machine_has_one_clock),
        cmocka_unit_test(believes_the_latest_word_of_the_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
