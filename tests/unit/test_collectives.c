/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions of IMB: each algorithm with real data for many numbers of ranks and sizes, and its
 * steps and bytes against the formulas of its source.
 */
#include "schedule_sim.h"
#include "test_patterns_util.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct cost {
    double steps; /* of the rank with most */
    double bytes; /* sent by the rank that sends most */
    double all;   /* sent by all together */
};

struct variant {
    const char *name;
    const char *algorithm;
    bool floats;
    uint32_t skew;
    /* For n ranks and m bytes, where n is a power of two and divides m; NULL: no formula here. */
    struct cost (*cost)(double n, double m);
};

static struct cost one_way(double n, double m)
{
    return (struct cost){2, m, 2 * m};
}

static struct cost both_ways(double n, double m)
{
    return (struct cost){1, m, 2 * m};
}

static struct cost to_one(double n, double m)
{
    return (struct cost){1, m, n * m};
}

static struct cost to_two(double n, double m)
{
    return (struct cost){1, 2 * m, 2 * n * m};
}

static struct cost down_a_tree(double n, double m)
{
    return (struct cost){log2(n), log2(n) * m, (n - 1) * m};
}

/* The tree halves what it hands on: m log2(n) / 2 in all. */
static struct cost scattered(double n, double m)
{
    return (struct cost){log2(n) + n - 1, 2 * (n - 1) / n * m, m * log2(n) / 2 + (n - 1) * m};
}

/* Pieces of 16 KiB; the ranks between the ends send the last one when they have it. */
static struct cost along_a_chain(double n, double m)
{
    return (struct cost){ceil(m / 16384) + 1, m, (n - 1) * m};
}

static struct cost up_a_tree(double n, double m)
{
    return (struct cost){log2(n), m, (n - 1) * m};
}

static struct cost doubled(double n, double m)
{
    return (struct cost){log2(n), log2(n) * m, n * log2(n) * m};
}

static struct cost around_twice(double n, double m)
{
    return (struct cost){2 * (n - 1), 2 * (n - 1) / n * m, 2 * (n - 1) * m};
}

static struct cost halved_and_doubled(double n, double m)
{
    return (struct cost){2 * log2(n), 2 * (n - 1) / n * m, 2 * (n - 1) * m};
}

static struct cost halved(double n, double m)
{
    return (struct cost){log2(n), (n - 1) / n * m, (n - 1) * m};
}

static struct cost part_by_part(double n, double m)
{
    return (struct cost){n - 1, (n - 1) / n * m, (n - 1) * m};
}

static struct cost gathered_by_ring(double n, double m)
{
    return (struct cost){n - 1, (n - 1) * m, n * (n - 1) * m};
}

static struct cost gathered_by_doubling(double n, double m)
{
    return (struct cost){log2(n), (n - 1) * m, n * (n - 1) * m};
}

static struct cost all_at_once(double n, double m)
{
    return (struct cost){1, (n - 1) * m, n * (n - 1) * m};
}

/* Half of the parts in each round. */
static struct cost half_of_all(double n, double m)
{
    return (struct cost){log2(n), n / 2 * log2(n) * m, n * n / 2 * log2(n) * m};
}

static struct cost no_data(double n, double m)
{
    return (struct cost){log2(n), 0, 0};
}

static const struct variant variants[] = {
    {"pingpong", NULL, false, 0, one_way},
    {"pingping", NULL, false, 0, both_ways},
    {"sendrecv", NULL, false, 0, to_one},
    {"exchange", NULL, false, 0, to_two},
    {"bcast", "binomial", false, 0, down_a_tree},
    {"bcast", "scatter-allgather", false, 0, scattered},
    {"bcast", "pipeline", false, 0, along_a_chain},
    {"reduce", "binomial", true, 0, up_a_tree},
    {"allreduce", "recursive-doubling", true, 0, doubled},
    {"allreduce", "ring", true, 0, around_twice},
    {"allreduce", "rabenseifner", true, 0, halved_and_doubled},
    {"reduce_scatter", "recursive-halving", true, 0, halved},
    {"reduce_scatter", "pairwise", true, 0, part_by_part},
    {"allgather", "ring", false, 0, gathered_by_ring},
    {"allgather", "recursive-doubling", false, 0, gathered_by_doubling},
    {"allgather", "bruck", false, 0, gathered_by_doubling},
    {"allgatherv", "ring", false, 0, gathered_by_ring},
    {"allgatherv", "ring", false, 80, NULL},
    {"alltoall", "linear", false, 0, all_at_once},
    {"alltoall", "pairwise", false, 0, gathered_by_ring},
    {"alltoall", "bruck", false, 0, half_of_all},
    {"alltoallv", "linear", false, 0, all_at_once},
    {"alltoallv", "pairwise", false, 0, gathered_by_ring},
    {"alltoallv", "linear", false, 100, NULL},
    {"alltoallv", "pairwise", false, 33, NULL},
    {"barrier", "dissemination", false, 0, no_data},
};
#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static struct pattern_plan *plan_for(const struct variant *variant, uint32_t n, uint64_t bytes)
{
    struct pattern_request request = {.name = variant->name,
                                      .n = n,
                                      .algorithm = variant->algorithm,
                                      .skew = variant->skew,
                                      .bytes = bytes};

    if (strcmp(variant->name, "barrier") == 0)
        request.bytes = 0;
    return plan_of(&request);
}

/* --- results -------------------------------------------------------------------------------- */

static void run(const struct variant *variant, uint32_t n, uint64_t bytes)
{
    struct pattern_plan *plan = plan_for(variant, n, bytes);
    struct schedule_sim *sim = schedule_sim_make(plan, 0, n, n + bytes);

    assert_true(pattern_verifies(plan));
    if (!schedule_sim_run(sim, 2))
        fail_msg("%s %s: %u ranks, %" PRIu64 " bytes: stuck", variant->name,
                 variant->algorithm != NULL ? variant->algorithm : "", n, bytes);
    schedule_sim_verify(sim);
    schedule_sim_free(sim);
    pattern_plan_free(plan);
}

/* Numbers of elements: none, one, fewer than ranks, odd, and many of no common divisor. */
static void results_are_right(void **state)
{
    static const uint64_t elements[] = {0, 1, 3, 7, 37, 1003};
    static const uint64_t sizes[] = {0, 1, 4, 13, 250, 4099};

    for (size_t i = 0; i < VARIANTS; i++)
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            uint64_t bytes = variants[i].floats ? 4 * elements[j] : sizes[j];

            for (uint32_t n = 2; n <= 33; n++)
                run(&variants[i], n, bytes);
            if (j == 0 || j == 2 || j == 3) {
                run(&variants[i], 48, bytes);
                run(&variants[i], 64, bytes);
            }
            for (uint32_t n = 65; n <= 130 && j == 3 && long_run(); n++)
                run(&variants[i], n, bytes);
        }
}

static void large_messages_are_right(void **state)
{
    for (size_t i = 0; i < VARIANTS; i++) {
        run(&variants[i], 3, 1000004);
        run(&variants[i], 4, 1000004);
    }
}

static void pairs_are_drawn_once_each(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "pingpong", .n = 5, .count = 20, .bytes = 9});
    bool seen[5][5] = {{false}};

    assert_int_equal(pattern_phases(plan), 20);
    for (uint32_t phase = 0; phase < 20; phase++) {
        struct schedule_sim *sim = schedule_sim_make(plan, phase, 5, 3);
        uint32_t first = NOBODY, second = NOBODY;

        for (uint32_t rank = 0; rank < 5; rank++) {
            const struct schedule *schedule = schedule_sim_schedule(sim, rank);

            if (schedule->count == 0)
                continue;
            assert_int_equal(schedule->count, 2);
            if (schedule->ops[0].action == SCHEDULE_SEND) {
                first = rank;
                second = schedule->ops[0].peer;
            }
        }
        assert_false(seen[first][second]);
        seen[first][second] = true;
        assert_true(schedule_sim_run(sim, 2));
        schedule_sim_verify(sim);
        schedule_sim_free(sim);
    }
    pattern_plan_free(plan);
}

/* --- wrong results -------------------------------------------------------------------------- */

static void a_planted_wrong_sum_is_found(void **state)
{
    struct pattern_plan *plan = plan_of(
        &(struct pattern_request){.name = "allreduce", .n = 6, .algorithm = "ring", .bytes = 400});
    struct schedule_sim *sim = schedule_sim_make(plan, 0, 6, 1);
    const struct schedule *schedule = schedule_sim_schedule(sim, 4);
    float *memory = schedule_sim_memory(sim, 4);
    struct schedule_wrong wrong;

    assert_true(schedule_sim_run(sim, 1));
    assert_true(schedule_verify(plan, 0, 4, schedule, memory, &wrong));
    memory[100 + 57] += 1;
    assert_false(schedule_verify(plan, 0, 4, schedule, memory, &wrong));
    assert_int_equal(wrong.element, 57);
    assert_int_equal(wrong.at, 628);
    assert_true(wrong.source == SCHEDULE_SUM);
    assert_true(wrong.got == wrong.expected + 1);
    /* Element 57 of rank r is 58 + r. */
    assert_true(wrong.expected == 6 * 58 + 15);
    schedule_sim_free(sim);
    pattern_plan_free(plan);
}

#define ADDED 3u /* elements: a rank's number has at most so many digits */

/* What a rank adds in a reduce of ADDED floats. */
static void added_by(const struct pattern_plan *plan, uint32_t rank, float *values)
{
    struct schedule schedule;
    float memory[3 * ADDED];

    assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
    assert_true(schedule.memory <= sizeof(memory));
    schedule_fill(plan, 0, rank, &schedule, memory);
    memcpy(values, memory, ADDED * sizeof(*values));
    schedule_free(&schedule);
}

/* Whether rank 0 takes a result for right that has `with`'s values where `without`'s belong. */
static bool passes(const struct pattern_plan *plan, const float *sum, uint32_t without,
                   uint32_t with)
{
    struct schedule schedule;
    struct schedule_wrong wrong;
    float memory[3 * ADDED] = {0}, out[ADDED], in[ADDED];
    bool right;

    added_by(plan, without, out);
    added_by(plan, with, in);
    for (uint32_t i = 0; i < ADDED; i++)
        memory[ADDED + i] = sum[i] - out[i] + in[i];
    assert_int_equal(pattern_schedule(plan, 0, 0, &schedule), 0);
    right = schedule_verify(plan, 0, 0, &schedule, memory, &wrong);
    schedule_free(&schedule);
    return right;
}

/* Also where all remainders of the ranks' numbers are equally frequent. */
static void another_ranks_values_are_found(void **state)
{
    static const uint32_t numbers[] = {2, 211, 251, 422, 502, 1004, 3990, 4096, 21084, 65536};
    static const uint32_t distances[] = {1, 41, 64, 205, 211, 251, 256, 1681, 2008, 4096, 32768};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        uint32_t n = numbers[i];
        struct pattern_plan *plan = plan_of(
            &(struct pattern_request){.name = "reduce", .n = n, .bytes = ADDED * sizeof(float)});
        float sum[ADDED] = {0};

        for (uint32_t rank = 0; rank < n; rank++) {
            float values[ADDED];

            added_by(plan, rank, values);
            for (uint32_t element = 0; element < ADDED; element++)
                sum[element] += values[element];
        }
        assert_true(sum[0] != sum[1] && sum[1] != sum[2]);
        assert_true(passes(plan, sum, 1, 1));
        for (size_t j = 0; j < sizeof(distances) / sizeof(distances[0]); j++)
            for (uint32_t rank = 1; rank + distances[j] < n; rank += 1 + n / 8)
                if (passes(plan, sum, rank, rank + distances[j]))
                    fail_msg("of %u ranks, %u's values instead of %u's are not found", n,
                             rank + distances[j], rank);
        pattern_plan_free(plan);
    }
}

/* A part of the sum in another's place: of 1004 ranks each has an element. */
static void another_place_is_found(void **state)
{
    enum { RANKS = 1004 };
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "reduce", .n = RANKS, .bytes = RANKS * 4});
    struct schedule schedule;
    struct schedule_wrong wrong;
    float *memory = calloc(3 * RANKS, sizeof(float)), *other = calloc(3 * RANKS, sizeof(float));

    assert_non_null(memory);
    assert_non_null(other);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
        schedule_fill(plan, 0, rank, &schedule, other);
        for (uint32_t i = 0; i < RANKS; i++)
            memory[RANKS + i] += other[i];
        schedule_free(&schedule);
    }
    assert_int_equal(pattern_schedule(plan, 0, 0, &schedule), 0);
    assert_true(schedule_verify(plan, 0, 0, &schedule, memory, &wrong));
    for (uint32_t i = 0; i + 251 < RANKS; i++) {
        float right = memory[RANKS + i];

        memory[RANKS + i] = memory[RANKS + i + 251];
        assert_false(schedule_verify(plan, 0, 0, &schedule, memory, &wrong));
        memory[RANKS + i] = right;
    }
    schedule_free(&schedule);
    pattern_plan_free(plan);
    free(memory);
    free(other);
}

/* One bit of one message on its way shows in the result of every function that moves or reduces. */
static void a_wrong_message_is_found(void **state)
{
    for (size_t i = 0; i < VARIANTS; i++) {
        struct pattern_plan *plan = plan_for(&variants[i], 6, 240);
        struct schedule_sim *sim = schedule_sim_make(plan, 0, 6, 1);
        bool found = strcmp(variants[i].name, "barrier") == 0;

        schedule_sim_spoil(sim);
        assert_true(schedule_sim_run(sim, 1));
        for (uint32_t rank = 0; rank < 6; rank++) {
            struct schedule_wrong wrong;

            found |= !schedule_verify(plan, 0, rank, schedule_sim_schedule(sim, rank),
                                      schedule_sim_memory(sim, rank), &wrong);
        }
        if (!found)
            fail_msg("%s %s does not see it", variants[i].name, variants[i].algorithm);
        schedule_sim_free(sim);
        pattern_plan_free(plan);
    }
}

/* --- costs ---------------------------------------------------------------------------------- */

/* Steps with a message and bytes sent. */
static struct cost cost_of(const struct schedule *schedule)
{
    struct cost cost = {0, 0, 0};
    uint32_t last = UINT32_MAX;

    for (size_t i = 0; i < schedule->count; i++) {
        const struct schedule_op *op = &schedule->ops[i];

        if (op->action != SCHEDULE_SEND && op->action != SCHEDULE_RECEIVE)
            continue;
        cost.steps += op->step != last;
        last = op->step;
        cost.bytes += op->action == SCHEDULE_SEND ? (double)op->bytes : 0;
    }
    return cost;
}

static struct cost cost_of_all(const struct variant *variant, uint32_t n, uint64_t bytes)
{
    struct pattern_plan *plan = plan_for(variant, n, bytes);
    struct cost cost = {0, 0, 0};

    for (uint32_t rank = 0; rank < n; rank++) {
        struct schedule schedule;
        struct cost own;

        assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
        own = cost_of(&schedule);
        cost.steps = fmax(cost.steps, own.steps);
        cost.bytes = fmax(cost.bytes, own.bytes);
        cost.all += own.bytes;
        schedule_free(&schedule);
    }
    pattern_plan_free(plan);
    return cost;
}

static void costs_are_those_of_the_literature(void **state)
{
    for (size_t i = 0; i < VARIANTS; i++)
        for (uint32_t n = 4; n <= 256 && variants[i].cost != NULL; n *= 2) {
            uint64_t bytes = 4096;
            struct cost got = cost_of_all(&variants[i], n, bytes);
            struct cost expected = variants[i].cost(n, (double)bytes);

            if (got.steps != expected.steps || got.bytes != expected.bytes ||
                got.all != expected.all)
                fail_msg("%s %s of %u ranks: %g steps, %g bytes, %g in all; expected %g, %g, %g",
                         variants[i].name, variants[i].algorithm, n, got.steps, got.bytes, got.all,
                         expected.steps, expected.bytes, expected.all);
        }
}

/* Of any number of ranks. */
static void sums_are_those_of_the_ops(void **state)
{
    static const uint64_t sizes[] = {0, 4, 100, 40000};

    for (size_t i = 0; i < VARIANTS; i++)
        for (uint32_t n = 2; n <= 70; n += 1 + n / 12)
            for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
                struct pattern_plan *plan = plan_for(&variants[i], n, sizes[j]);

                for (uint32_t rank = 0; rank < n; rank += 1 + n / 8)
                    assert_sums(plan, 0, rank);
                pattern_plan_free(plan);
            }
}

static void steps_of_other_numbers(void **state)
{
    for (uint32_t n = 2; n <= 70; n++) {
        double up = ceil(log2(n)), down = floor(log2(n)), folded = up > down ? 2 : 0;

        for (size_t i = 0; i < VARIANTS; i++) {
            struct cost cost = cost_of_all(&variants[i], n, 4 * n);
            const char *algorithm = variants[i].algorithm != NULL ? variants[i].algorithm : "";

            if (strcmp(algorithm, "binomial") == 0 || strcmp(algorithm, "bruck") == 0 ||
                strcmp(algorithm, "dissemination") == 0)
                assert_true(cost.steps == up);
            if (strcmp(algorithm, "recursive-doubling") == 0 ||
                strcmp(algorithm, "recursive-halving") == 0)
                assert_true(cost.steps == down + folded);
            if (strcmp(algorithm, "rabenseifner") == 0)
                assert_true(cost.steps == 2 * down + folded);
            if (strcmp(algorithm, "pairwise") == 0)
                assert_true(cost.steps == n - 1);
        }
    }
}

static uint64_t memory_of(const struct variant *variant, uint32_t n, uint64_t bytes)
{
    struct pattern_plan *plan = plan_for(variant, n, bytes);
    uint64_t most = 0;

    for (uint32_t rank = 0; rank < n; rank++) {
        struct schedule schedule;

        assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
        most = schedule.memory > most ? schedule.memory : most;
        schedule_free(&schedule);
    }
    pattern_plan_free(plan);
    return most;
}

/* The formulas of doc/reference/patterns.md. Where a fold comes first (n not a power of two),
 * half a vector more for halving; a part of reduce_scatter's largest half is up to two thirds of
 * it. */
static void memory_is_what_the_algorithm_needs(void **state)
{
    enum { BYTES = 4 * 3 * 4096 };
    static const struct {
        const char *name, *algorithm;
        double messages[4]; /* for 3, 6, 12 and 16 ranks */
    } some[] = {
        {"bcast", "scatter-allgather", {1, 1, 1, 1}},
        {"bcast", "pipeline", {1, 1, 1, 1}},
        {"reduce", "binomial", {3, 3, 3, 3}},
        {"allreduce", "recursive-doubling", {3, 3, 3, 3}},
        {"allreduce", "ring", {2, 2, 2, 2}},
        {"allreduce", "rabenseifner", {2.5, 2.5, 2.5, 2}},
        {"reduce_scatter", "recursive-halving", {8 / 3.0, 8 / 3.0, 8 / 3.0, 2}},
        {"reduce_scatter", "pairwise", {1 + 2 / 3.0, 1 + 2 / 6.0, 1 + 2 / 12.0, 1 + 2 / 16.0}},
        {"allgather", "ring", {3, 6, 12, 16}},
        {"allgather", "bruck", {6, 12, 24, 32}},
        {"alltoall", "pairwise", {6, 12, 24, 32}},
        {"alltoall", "bruck", {9, 18, 36, 48}},
        {"exchange", NULL, {3, 3, 3, 3}},
    };
    static const uint32_t ranks[] = {3, 6, 12, 16};

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        for (size_t j = 0; j < sizeof(ranks) / sizeof(ranks[0]); j++)
            assert_int_equal(
                memory_of(&(struct variant){.name = some[i].name, .algorithm = some[i].algorithm},
                          ranks[j], BYTES),
                (uint64_t)(BYTES * some[i].messages[j] + 0.5));
}

/* Sizes that differ add up to the same, and the largest is as much above as the least is below. */
static void skewed_sizes_add_up(void **state)
{
    for (uint32_t n = 2; n <= 33; n++) {
        struct pattern_plan *plan = plan_of(
            &(struct pattern_request){.name = "alltoallv", .n = n, .skew = 50, .bytes = 1001});
        struct schedule schedule;
        uint64_t least = UINT64_MAX, most = 0, sent = 0, own = 0;

        assert_int_equal(pattern_schedule(plan, 0, 1, &schedule), 0);
        for (size_t i = 0; i < schedule.count; i++) {
            const struct schedule_op *op = &schedule.ops[i];

            if (op->action == SCHEDULE_COPY)
                own = op->bytes;
            if (op->action != SCHEDULE_SEND && op->action != SCHEDULE_COPY)
                continue;
            sent += op->bytes;
            least = op->bytes < least ? op->bytes : least;
            most = op->bytes > most ? op->bytes : most;
        }
        assert_true(own > 0);
        assert_int_equal(sent, 1001 * (uint64_t)n);
        assert_in_range(least, 500, 501);
        assert_in_range(most, 1501, 1502);
        schedule_free(&schedule);
        pattern_plan_free(plan);
    }
}

/* --- many ranks ----------------------------------------------------------------------------- */

static void plans_of_65536_ranks_are_made(void **state)
{
    struct pattern_flow flow;

    for (size_t i = 0; i < VARIANTS; i++) {
        struct pattern_plan *plan = plan_for(&variants[i], 65535, 1 << 20);
        struct schedule schedule;

        assert_int_equal(pattern_schedule(plan, 0, 65534, &schedule), 0);
        for (size_t j = 0; j < schedule.count; j++)
            assert_true(schedule.ops[j].at + schedule.ops[j].bytes <= schedule.memory);
        assert_true(schedule.memory <= UINT64_C(3) * 65536 << 20);
        assert_true(pattern_flows(plan, 0, 65534, PATTERN_SENDS, &flow, 1) >= 16);
        schedule_free(&schedule);
        pattern_plan_free(plan);
    }
}

static void wrong_requests_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {{.name = "allreduce", .n = 4, .bytes = 6},
         "allreduce: bytes 6 is no whole number of floats of 4 bytes"},
        {{.name = "bcast", .n = 4, .algorithm = "ring"},
         "algorithm \"ring\" is not known: it is one of binomial, scatter-allgather, "
         "pipeline"},
        {{.name = "barrier", .n = 4, .bytes = 6}, "barrier takes no bytes"},
        {{.name = "sendrecv", .n = 4, .algorithm = "ring"}, "sendrecv takes no algorithm"},
        {{.name = "alltoall", .n = 4, .skew = 6}, "alltoall takes no skew"},
        {{.name = "alltoallv", .n = 4, .skew = 101},
         "alltoallv: skew 101 is more than 100 percent"},
        {{.name = "pingpong", .n = 3, .count = 7},
         "pingpong: count 7 is more than 6: the ordered pairs of 3 ranks, at most 65536"},
    };

    assert_refused(refusals, sizeof(refusals) / sizeof(refusals[0]));
}

static void phases_are_named_by_function_and_algorithm(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "reduce_scatter", .n = 3, .local = true});

    assert_phase_name(plan, 0, "reduce_scatter recursive-halving");
    pattern_plan_free(plan);
    plan = plan_of(&(struct pattern_request){.name = "exchange", .n = 3});
    assert_phase_name(plan, 0, "exchange");
    pattern_plan_free(plan);
    plan = plan_of(&(struct pattern_request){.name = "pingping", .n = 3});
    assert_phase_name(plan, 0, "pingping 0 1");
    pattern_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(large_messages_are_right),
        cmocka_unit_test(pairs_are_drawn_once_each),
        cmocka_unit_test(a_planted_wrong_sum_is_found),
        cmocka_unit_test(another_ranks_values_are_found),
        cmocka_unit_test(another_place_is_found),
        cmocka_unit_test(a_wrong_message_is_found),
        cmocka_unit_test(costs_are_those_of_the_literature),
        cmocka_unit_test(sums_are_those_of_the_ops),
        cmocka_unit_test(steps_of_other_numbers),
        cmocka_unit_test(memory_is_what_the_algorithm_needs),
        cmocka_unit_test(skewed_sizes_add_up),
        cmocka_unit_test(plans_of_65536_ranks_are_made),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(phases_are_named_by_function_and_algorithm),
    };

    return cmocka_run_group_tests_name("collectives", tests, NULL, NULL);
}
