/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stamps as times: delays and what neighbours differ by, against sums by hand; probes as bytes:
 * their tags, their rate, when they leave.
 */
#include "delay_stats.h"
#include "frame_prober.h"
#include "signature.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct delay_stats stats;
static struct delay_stats_buckets buckets;
static struct histogram sum;

static int fresh(void **state)
{
    memset(&buckets, 0, sizeof buckets);
    memset(&sum, 0, sizeof sum);
    delay_stats_init(&stats, 0);
    return 0;
}

/* Delays as they come, with how far each is ahead, and what they come to: their number, sum, least
 * and greatest. */
static void test_by_hand(void **state)
{
    static const struct {
        struct {
            uint64_t delay_ns;
            int32_t ahead;
        } adds[4];
        unsigned count;
        uint64_t expected[DELAY_KINDS][4];
    } cases[] = {
        {{{0}}, 0, {{0}, {0}}},
        {{{0}}, 1, {{1}, {0}}},
        {{{100, 0}, {130, 0}, {110, 0}},
         3,
         {{3, 340, 100, 130}, {2, 50, 20, 30}}}, /* 30 up, 20 down */
        /* Behind a gap the comparison begins anew; a late one is compared with nothing. */
        {{{10, 0}, {500, 3}, {900, -2}, {510, 0}}, 4, {{4, 1920, 10, 900}, {1, 10, 10, 10}}},
        /* Frames that came together differ by nothing. */
        {{{50, 0}, {50, 0}, {50, 0}, {70, 0}}, 4, {{4, 220, 50, 70}, {3, 20, 0, 20}}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fresh(state);
        for (unsigned k = 0; k < cases[i].count; k++)
            delay_stats_add(&stats, &buckets, cases[i].adds[k].delay_ns, cases[i].adds[k].ahead);
        for (enum delay_kind kind = 0; kind < DELAY_KINDS; kind++) {
            memset(&sum, 0, sizeof sum);
            delay_stats_sum(&stats, 1, &buckets, kind, &sum);
            assert_int_equal(sum.count, cases[i].expected[kind][0]);
            assert_int_equal(sum.sum_ns, cases[i].expected[kind][1]);
            assert_int_equal(sum.min_ns, cases[i].expected[kind][2]);
            assert_int_equal(sum.max_ns, cases[i].expected[kind][3]);
        }
    }
}

/* Runs of equal delays come to what frames come to one by one. */
static void test_runs_against_single_frames(void **state)
{
    static struct histogram one_way, ipdv;
    uint64_t last = DELAY_NONE;

    memset(&one_way, 0, sizeof one_way);
    memset(&ipdv, 0, sizeof ipdv);
    srandom(5);
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t delay = random() % 3 == 0 ? 1000 : 2000;
        int32_t ahead = random() % 10 == 0 ? (int32_t)(random() % 4) - 2 : 0;

        if (random() % 100 == 0) {
            delay_stats_restart(&stats, &buckets);
            last = DELAY_NONE;
        }
        delay_stats_add(&stats, &buckets, delay, ahead);
        histogram_add(&one_way, delay);
        if (ahead == 0 && last != DELAY_NONE)
            histogram_add(&ipdv, delay > last ? delay - last : last - delay);
        last = ahead < 0 ? last : delay;
    }
    delay_stats_sum(&stats, 1, &buckets, DELAY_ONE_WAY, &sum);
    assert_memory_equal(&sum, &one_way, sizeof sum);
    memset(&sum, 0, sizeof sum);
    delay_stats_sum(&stats, 1, &buckets, DELAY_IPDV, &sum);
    assert_memory_equal(&sum, &ipdv, sizeof sum);
}

/* A clock that is behind makes all delays 0: the run is longer than its counter. */
static void test_a_run_without_an_end(void **state)
{
    delay_stats_add(&stats, &buckets, 0, 0);
    stats.run = DELAY_RUN_MAX;
    delay_stats_add(&stats, &buckets, 0, 0);
    delay_stats_add(&stats, &buckets, 0, 0);
    delay_stats_sum(&stats, 1, &buckets, DELAY_ONE_WAY, &sum);
    assert_int_equal(sum.count, DELAY_RUN_MAX + UINT64_C(2));
    memset(&sum, 0, sizeof sum);
    delay_stats_sum(&stats, 1, &buckets, DELAY_IPDV, &sum);
    assert_int_equal(sum.count, DELAY_RUN_MAX + UINT64_C(1));
}

static void test_streams_of_a_flow(void **state)
{
    struct delay_stats streams[2];

    delay_stats_init(&streams[0], 0);
    delay_stats_init(&streams[1], 0);
    delay_stats_add(&streams[0], &buckets, 40, 0);
    delay_stats_add(&streams[1], &buckets, 1000, 0);
    delay_stats_add(&streams[0], &buckets, 41, 0);
    delay_stats_sum(streams, 2, &buckets, DELAY_ONE_WAY, &sum);
    assert_int_equal(sum.count, 3);
    assert_int_equal(sum.min_ns, 40);
    assert_int_equal(sum.max_ns, 1000);
    memset(&sum, 0, sizeof sum);
    delay_stats_sum(streams, 2, &buckets, DELAY_IPDV, &sum);
    assert_int_equal(sum.count, 1); /* none between streams */
}

static void test_delay_is_never_negative(void **state)
{
    assert_int_equal(delay_stats_delay(1000, 400), 600);
    assert_int_equal(delay_stats_delay(400, 1000), 0);
    assert_int_equal(delay_stats_delay(INT64_C(1) << 47, (UINT64_C(1) << 47) - 5), 5);
}

/* What a stamp says survives the wire, to 48 bits. */
static void test_stamp_comes_back(void **state)
{
    static const int64_t some[] = {
        0, 1, 65535, 65536, INT64_C(0x123456789abc), (INT64_C(1) << 48) - 1};
    struct signature signature = {.tag = htobe16(7), .src = htobe16(1), .dst = htobe16(2)};

    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct signature_time time = signature_time(some[i]);

        signature_stamp(&signature, (uint32_t)i, &time, signature_base(&signature) + time.sum);
        assert_true(signature_sound(&signature));
        assert_int_equal(signature_ns(&signature), some[i]);
    }
}

static void test_tags_differ(void **state)
{
    for (uint32_t tag = 0; tag <= UINT16_MAX; tag++) {
        assert_int_not_equal(probe_tag((uint16_t)tag), tag);
        assert_int_not_equal(probe_answer_tag((uint16_t)tag), tag);
        assert_int_not_equal(probe_tag((uint16_t)tag), probe_answer_tag((uint16_t)tag));
    }
}

static void test_rate_disturbs_nobody(void **state)
{
    struct probe_budget budget = {.line_rate_bps = 100000000, .frame_bytes = 1518, .flows = 2};

    /* 0.1 % of 100 Mbit/s over two flows, each probe 1,538 bytes at layer 1. */
    assert_float_equal(probe_rate(&budget), 1e5 / (8 * 1538) / 2, 1e-9);
    budget.line_rate_bps = UINT64_C(100000000000);
    budget.frame_bytes = 64;
    assert_float_equal(probe_rate(&budget), PROBE_FLOW_FPS, 0);
    budget.line_rate_bps = 0;
    budget.load = (struct load){.rate_fps = 50000};
    assert_float_equal(probe_rate(&budget), 25, 1e-9);
    budget.load = (struct load){.unlimited = true};
    assert_float_equal(probe_rate(&budget), PROBE_FLOW_FPS, 0);
}

static void test_load_yields_what_the_line_lacks(void **state)
{
    /* Two flows, one sent and one received, at 500 probes/s of 256 bytes: 2.208 Mbit/s. */
    struct probe_budget budget = {
        .line_rate_bps = 100000000, .load = {.rate_bps = 2e6}, .frame_bytes = 256, .flows = 2};

    assert_float_equal(probe_displaces(&budget, 500), 0, 0);
    budget.load.rate_bps = 98.896e6; /* half of them has room */
    assert_float_equal(probe_displaces(&budget, 500), 0.5, 1e-9);
    budget.load.rate_bps = 100e6;
    assert_float_equal(probe_displaces(&budget, 500), 1, 0);
    budget.load = (struct load){.rate_fps = 98.896e6 / 2208};
    assert_float_equal(probe_displaces(&budget, 500), 0.5, 1e-9);
    budget.load = (struct load){.unlimited = true};
    assert_float_equal(probe_displaces(&budget, 500), 1, 0);
    budget.line_rate_bps = 0; /* not known */
    assert_float_equal(probe_displaces(&budget, 500), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test_setup(test_runs_against_single_frames, fresh),
        cmocka_unit_test_setup(test_a_run_without_an_end, fresh),
        cmocka_unit_test_setup(test_streams_of_a_flow, fresh),
        cmocka_unit_test(test_delay_is_never_negative),
        cmocka_unit_test(test_stamp_comes_back),
        cmocka_unit_test(test_tags_differ),
        cmocka_unit_test(test_rate_disturbs_nobody),
        cmocka_unit_test(test_load_yields_what_the_line_lacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
