/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What messages there and back are made of: drawn sizes, folded plans, who begins the next message,
 * computing beside them.
 */
#include "clock.h"
#include "compute_load.h"
#include "pattern.h"
#include "pingpong.h"
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

/* --- who begins the next message --- */

#define PARTNERS 3u

/* A lane that sends to ranks 1 to 3, as rank 0; its transport brings a message back when the test
 * says so, or gives it up. */
static struct table {
    struct phase phase;
    struct flow_side sides[PARTNERS];
    struct lane_flow flows[PARTNERS];
    struct lane lane;
    struct pingpong game;
    unsigned sent;
    int64_t took_ns; /* of the message in flight; -1: it is lost, 0: awaited */
} table;

static void sit_down(struct pingpong_options options)
{
    table = (struct table){.phase = {.seed = 5,
                                     .traffic = TRAFFIC_PINGPONG,
                                     .sizes = {10, 20},
                                     .size_count = 2,
                                     .pingpong = options,
                                     .start_ns = clock_now(),
                                     .close_ns = CLOCK_NEVER}};
    for (uint32_t i = 0; i < PARTNERS; i++)
        table.flows[i] = (struct lane_flow){.dst = i + 1, .side = &table.sides[i]};
    table.lane.request.phase = &table.phase;
    table.lane.request.sends = table.flows;
    table.lane.request.send_count = options.random ? PARTNERS : 1;
    table.lane.stop_ns = CLOCK_NEVER;
    assert_int_equal(pingpong_make(&table.game, &table.lane), 0);
}

static void send_one(struct lane *lane, const struct pingpong_turn *turn, int64_t now_ns)
{
    table.sent++;
}

static bool await(struct lane *lane, const struct pingpong_turn *turn, int64_t now_ns,
                  int64_t *at_ns)
{
    *at_ns = table.took_ns < 0 ? 0 : turn->begun_ns + table.took_ns;
    return table.took_ns != 0;
}

/* The message in flight takes so long; whether the next one begins. */
static bool play(int64_t took_ns)
{
    static const struct pingpong_hooks hooks = {.send = send_one, .await = await};

    table.took_ns = took_ns;
    return pingpong_run(&table.game, &hooks, clock_now());
}

static void check_times(uint64_t sent, uint64_t back, uint64_t min_ns, uint64_t max_ns)
{
    struct latency sum = {0};

    assert_true(pingpong_latency(&table.game, &table.flows[0], &sum));
    assert_int_equal(sum.sent, sent);
    assert_int_equal(sum.histogram.count, back);
    assert_int_equal(sum.histogram.min_ns, min_ns);
    assert_int_equal(sum.histogram.max_ns, max_ns);
}

/* Sizes in turn, one message in flight, until the stop; what is given up is sent and not back, and
 * what began outside of the window is not measured. */
static void a_flow_has_a_message_in_flight(void **state)
{
    sit_down((struct pingpong_options){0});
    for (int n = 0; n < 4; n++) {
        assert_true(play(n == 3 ? -1 : 999 + n)); /* ends the one before, begins the next */
        assert_false(play(0));
        assert_int_equal(pingpong_bytes(&table.game, table.game.turns), n % 2 == 0 ? 10 : 20);
        assert_false(pingpong_ended(&table.game, 0));
    }
    table.lane.stop_ns = 0;
    assert_false(play(1003));
    assert_true(pingpong_ended(&table.game, 0));
    assert_int_equal(table.sent, 4);
    check_times(4, 3, 1000, 1003);
    pingpong_free(&table.game);

    sit_down((struct pingpong_options){0});
    table.phase.open_ns = CLOCK_NEVER - 1;
    assert_true(play(0));
    table.phase.open_ns = 0;
    assert_true(play(5));
    table.lane.stop_ns = 0;
    assert_false(play(7));
    check_times(1, 1, 7, 7);
    pingpong_free(&table.game);
}

#define DRAWN 300u

/* One message in flight for all, by partners that are drawn: each gets about a third, and each
 * single time is kept with whose it was. */
static void partners_are_drawn(void **state)
{
    uint32_t by_rank[PARTNERS + 1] = {0}, began = 0;

    sit_down((struct pingpong_options){
        .count = DRAWN, .min_size = 4, .max_size = 64, .random = true, .samples = true});
    assert_int_equal(table.game.turn_count, 1);
    for (; play(began % 10 == 0 ? -1 : (int64_t)began); began++)
        assert_in_range(pingpong_bytes(&table.game, table.game.turns), 4, 64);
    assert_int_equal(began, DRAWN);
    for (uint32_t i = 0; i < PARTNERS; i++)
        assert_true(pingpong_ended(&table.game, i));
    assert_int_equal(table.game.sample_count, DRAWN - DRAWN / 10);
    for (size_t i = 0; i < table.game.sample_count; i++) {
        assert_int_equal(table.game.samples[i].time_ns, 1 + i + i / 9);
        by_rank[table.game.samples[i].dst]++;
    }
    for (uint32_t i = 1; i <= PARTNERS; i++)
        assert_in_range(by_rank[i], 70, 110);
    pingpong_free(&table.game);
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
        cmocka_unit_test(a_flow_has_a_message_in_flight),
        cmocka_unit_test(partners_are_drawn),
        cmocka_unit_test(computing_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
