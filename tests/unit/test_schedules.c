/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules of collectives and kernels: steps, bytes and memory against the formulas of their
 * sources, messages of kernels against sizes worked out by hand (doc/reference/patterns.md), and
 * wrong results that are found.
 */
#include "pattern_cases.h"
#include "schedule_sim.h"
#include "test_patterns_util.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- costs ---------------------------------------------------------------------------------- */

struct cost {
    double steps; /* with a message, of the rank with most */
    double bytes; /* sent by the rank that sends most */
    double all;   /* sent by all together */
};

static double up(double n)
{
    return ceil(log2(n));
}

/* Rounds of a power of two of ranks, and the two that hand over and give back around them. */
static double folded(double n, double rounds)
{
    return rounds * floor(log2(n)) + (up(n) > floor(log2(n)) ? 2 : 0);
}

/* Of n ranks and m bytes; the bytes hold where n is a power of two and divides m. */
#define COST(name, steps, bytes, all)                                                              \
    static struct cost name(double n, double m)                                                    \
    {                                                                                              \
        return (struct cost){(steps), (bytes), (all)};                                             \
    }
COST(one_way, 2 + 0 * n, m, 2 * m)
COST(both_ways, 1 + 0 * n, m, 2 * m)
COST(to_one, 1, m, n *m)
COST(to_two, 1, 2 * m, 2 * n * m)
COST(down_a_tree, up(n), log2(n) * m, (n - 1) * m)
/* The tree halves what it hands on: m log2(n) / 2 in all. */
COST(scattered, up(n) + n - 1, 2 * (n - 1) / n * m, m *log2(n) / 2 + (n - 1) * m)
/* Pieces of 16 KiB; the ranks between the ends send the last one when they have it. */
COST(along_a_chain, ceil(m / 16384) + 1, m, (n - 1) * m)
COST(up_a_tree, up(n), m, (n - 1) * m)
COST(doubled, folded(n, 1), log2(n) * m, n *log2(n) * m)
COST(around_twice, 2 * (n - 1), 2 * (n - 1) / n * m, 2 * (n - 1) * m)
COST(halved_and_doubled, folded(n, 2), 2 * (n - 1) / n * m, 2 * (n - 1) * m)
COST(halved, folded(n, 1), (n - 1) / n * m, (n - 1) * m)
COST(part_by_part, n - 1, (n - 1) / n * m, (n - 1) * m)
COST(gathered_by_ring, n - 1, (n - 1) * m, n *(n - 1) * m)
COST(gathered_by_doubling, folded(n, 1), (n - 1) * m, n *(n - 1) * m)
COST(gathered_by_turns, up(n), (n - 1) * m, n *(n - 1) * m)
COST(all_at_once, 1, (n - 1) * m, n *(n - 1) * m)
/* Half of the parts in each round. */
COST(half_of_all, up(n), n / 2 * log2(n) * m, n *n / 2 * log2(n) * m)
COST(no_data, up(n), 0 * m, 0)

#define BYTES (4 * 3 * 4096)

/* Memory by doc/reference/patterns.md, for 3, 6, 12 and 16 ranks, in messages; 0: not looked at.
 * Where a fold comes first (n is no power of two) half a vector more for halving; a part of
 * reduce_scatter's largest half is up to two thirds of it. */
static const struct variant {
    const char *name;
    const char *algorithm;
    struct cost (*cost)(double n, double m);
    double memory[4];
} variants[] = {
    {"pingpong", NULL, one_way, {0}},
    {"pingping", NULL, both_ways, {0}},
    {"sendrecv", NULL, to_one, {0}},
    {"exchange", NULL, to_two, {3, 3, 3, 3}},
    {"bcast", "binomial", down_a_tree, {0}},
    {"bcast", "scatter-allgather", scattered, {1, 1, 1, 1}},
    {"bcast", "pipeline", along_a_chain, {1, 1, 1, 1}},
    {"reduce", "binomial", up_a_tree, {3, 3, 3, 3}},
    {"allreduce", "recursive-doubling", doubled, {3, 3, 3, 3}},
    {"allreduce", "ring", around_twice, {2, 2, 2, 2}},
    {"allreduce", "rabenseifner", halved_and_doubled, {2.5, 2.5, 2.5, 2}},
    {"reduce_scatter", "recursive-halving", halved, {8 / 3.0, 8 / 3.0, 8 / 3.0, 2}},
    {"reduce_scatter", "pairwise", part_by_part, {5 / 3.0, 4 / 3.0, 7 / 6.0, 9 / 8.0}},
    {"allgather", "ring", gathered_by_ring, {3, 6, 12, 16}},
    {"allgather", "recursive-doubling", gathered_by_doubling, {0}},
    {"allgather", "bruck", gathered_by_turns, {6, 12, 24, 32}},
    {"allgatherv", "ring", gathered_by_ring, {0}},
    {"alltoall", "linear", all_at_once, {0}},
    {"alltoall", "pairwise", gathered_by_ring, {6, 12, 24, 32}},
    {"alltoall", "bruck", half_of_all, {9, 18, 36, 48}},
    {"alltoallv", "linear", all_at_once, {0}},
    {"alltoallv", "pairwise", gathered_by_ring, {0}},
    {"barrier", "dissemination", no_data, {0}},
};
#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static struct pattern_plan *plan_for(const struct variant *variant, uint32_t n, uint64_t bytes)
{
    return plan_of(&(struct pattern_request){
        .name = variant->name,
        .n = n,
        .algorithm = variant->algorithm,
        .bytes = strcmp(variant->name, "barrier") == 0 ? 0 : bytes,
    });
}

/* Of all ranks; `memory`: of the rank that needs most. */
static struct cost cost_of(const struct variant *variant, uint32_t n, uint64_t bytes,
                           uint64_t *memory)
{
    struct pattern_plan *plan = plan_for(variant, n, bytes);
    struct cost cost = {0};

    *memory = 0;
    for (uint32_t rank = 0; rank < n; rank++) {
        struct schedule schedule;
        double steps = 0, sent = 0;
        uint32_t last = UINT32_MAX;

        assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
        for (size_t i = 0; i < schedule.count; i++) {
            const struct schedule_op *op = &schedule.ops[i];

            if (op->action != SCHEDULE_SEND && op->action != SCHEDULE_RECEIVE)
                continue;
            steps += op->step != last;
            last = op->step;
            sent += op->action == SCHEDULE_SEND ? (double)op->bytes : 0;
        }
        cost.steps = fmax(cost.steps, steps);
        cost.bytes = fmax(cost.bytes, sent);
        cost.all += sent;
        *memory = schedule.memory > *memory ? schedule.memory : *memory;
        schedule_free(&schedule);
    }
    pattern_plan_free(plan);
    return cost;
}

static void check_cost(const struct variant *variant, uint32_t n)
{
    uint64_t memory;
    struct cost got = cost_of(variant, n, 4096, &memory), expected = variant->cost(n, 4096);

    if (got.steps != expected.steps ||
        ((n & (n - 1)) == 0 && (got.bytes != expected.bytes || got.all != expected.all)))
        fail_msg("%s %s of %u ranks: %g steps, %g bytes, %g in all; expected %g, %g, %g",
                 variant->name, variant->algorithm != NULL ? variant->algorithm : "", n, got.steps,
                 got.bytes, got.all, expected.steps, expected.bytes, expected.all);
}

static void costs_are_those_of_the_literature(void **state)
{
    static const uint32_t ranks[] = {3, 6, 12, 16};
    uint64_t memory;

    for (size_t i = 0; i < VARIANTS; i++) {
        for (uint32_t n = 3; n <= 70; n++)
            check_cost(&variants[i], n);
        check_cost(&variants[i], 256);
        for (size_t j = 0; j < 4 && variants[i].memory[0] > 0; j++) {
            cost_of(&variants[i], ranks[j], BYTES, &memory);
            assert_int_equal(memory, (uint64_t)(BYTES * variants[i].memory[j] + 0.5));
        }
    }
}

/* Sizes that differ add up to the same, and the largest is as much above as the least is below. */
static void skewed_sizes_add_up(void **state)
{
    for (uint32_t n = 2; n <= 33; n++) {
        struct pattern_plan *plan = plan_of(
            &(struct pattern_request){.name = "alltoallv", .n = n, .skew = 50, .bytes = 1001});
        struct schedule schedule;
        uint64_t least = UINT64_MAX, most = 0, sum = 0;

        assert_int_equal(pattern_schedule(plan, 0, 1, &schedule), 0);
        for (size_t i = 0; i < schedule.count; i++) {
            const struct schedule_op *op = &schedule.ops[i];

            if (op->action == SCHEDULE_RECEIVE)
                continue;
            sum += op->bytes; /* sent, and the own part that is copied */
            least = op->bytes < least ? op->bytes : least;
            most = op->bytes > most ? op->bytes : most;
        }
        assert_int_equal(sum, 1001 * (uint64_t)n);
        assert_in_range(least, 500, 501);
        assert_in_range(most, 1501, 1502);
        schedule_free(&schedule);
        pattern_plan_free(plan);
    }
}

/* --- messages of kernels -------------------------------------------------------------------- */

/* What a rank sends in one iteration: fields are the rank and another one (or all, most), bytes and
 * how many. */
static void check_sent(const struct pattern_case *row)
{
    struct pattern_plan *plan = plan_of(&row->request);
    struct schedule schedule;
    uint64_t count = 0, bytes = 0, most = 0, same = 0, size, expected;
    unsigned rank, peer = 0;
    char to[8];

    assert_int_equal(sscanf(row->fields[0], "%u %7s", &rank, to), 2);
    assert_int_equal(sscanf(row->fields[1], "%" SCNu64 " %" SCNu64, &size, &expected), 2);
    sscanf(to, "%u", &peer);
    assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
    for (size_t i = 0; i < schedule.count; i++) {
        const struct schedule_op *op = &schedule.ops[i];

        if (op->action != SCHEDULE_SEND)
            continue;
        count++;
        bytes += op->bytes;
        most = op->bytes > most ? op->bytes : most;
        same += op->peer == peer && op->bytes == size;
    }
    schedule_free(&schedule);
    pattern_plan_free(plan);
    if (strcmp(to, "most") == 0)
        assert_int_equal(most, size);
    else if (strcmp(to, "all") != 0)
        assert_int_equal(same, expected);
    else
        assert_true(count == expected && (size == 0 || bytes == size));
}

static void kernels_send_what_their_sources_say(void **state)
{
    pattern_cases("sent", check_sent);
}

static struct pattern_plan *kernel_of(const char *name, uint32_t n, const char *class)
{
    bool hpl = strcmp(name, "hpl") == 0;

    return plan_of(&(struct pattern_request){
        .name = name, .n = n, .class = class, .matrix = hpl ? 1200 : 0, .block = hpl ? 100 : 0});
}

static double operations_of(struct pattern_plan *plan, uint32_t rank)
{
    struct schedule schedule;
    double operations = 0;

    assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
    for (size_t i = 0; i < schedule.count; i++)
        if (schedule.ops[i].action == SCHEDULE_WORK)
            operations += (double)schedule.ops[i].from;
    schedule_free(&schedule);
    pattern_plan_free(plan);
    return operations;
}

/* Operations of a rank in one iteration, each piece of work rounded down. The last: the largest
 * matrix with a block whose operations are just below 2^63 a rank. */
static void kernels_compute_what_their_sources_say(void **state)
{
    double cg = operations_of(kernel_of("nas_cg", 4, "A"), 0), largest;

    assert_true(cg <= 7000.0 * 3563 && cg > 7000.0 * 3563 - 26);
    assert_true(operations_of(kernel_of("nas_ep", 2, "A"), 0) == 13.34e9);
    assert_true(operations_of(kernel_of("nas_mg", 8, "A"), 0) == 58.0 * 16777216 / 8);
    assert_true(operations_of(kernel_of("hpl", 6, NULL), 5) ==
                (2.0 / 3 * 1200 + 1.5) * 1200 * 100 / 6);
    largest = operations_of(plan_of(&(struct pattern_request){
                                .name = "hpl", .n = 2, .matrix = 100000000, .block = 2767}),
                            1);
    assert_true(largest > 0x1p62 && largest < 0x1p63);
}

static void kernels_count_iterations(void **state)
{
    static const struct {
        const char *name, *class;
        uint32_t iterations;
    } some[] = {
        {"nas_ep", "D", 1},   {"nas_is", "A", 10},  {"nas_cg", "A", 15},  {"nas_cg", "B", 75},
        {"nas_mg", "A", 4},   {"nas_mg", "B", 20},  {"nas_ft", "A", 6},   {"nas_ft", "B", 20},
        {"nas_lu", "A", 250}, {"nas_sp", "A", 400}, {"nas_bt", "A", 200}, {"nas_bt", "D", 250},
        {"hpl", NULL, 12},
    };

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        struct pattern_plan *plan = kernel_of(some[i].name, 4, some[i].class);

        assert_int_equal(pattern_iterations(plan), some[i].iterations);
        pattern_plan_free(plan);
    }
}

/* --- two ranks, and the barrier ------------------------------------------------------------- */

static void pairs_are_drawn_once_each(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "pingpong", .n = 5, .count = 20, .bytes = 9});
    bool seen[5][5] = {{false}};

    assert_int_equal(pattern_phases(plan), 20);
    for (uint32_t phase = 0; phase < 20; phase++)
        for (uint32_t rank = 0; rank < 5; rank++) {
            struct schedule schedule;

            assert_int_equal(pattern_schedule(plan, phase, rank, &schedule), 0);
            if (schedule.count > 0 && schedule.ops[0].action == SCHEDULE_SEND) {
                assert_false(seen[rank][schedule.ops[0].peer]);
                seen[rank][schedule.ops[0].peer] = true;
            }
            schedule_free(&schedule);
        }
    pattern_plan_free(plan);
}

/* After all rounds each rank has heard of each other one. */
static void the_barrier_tells_everybody(void **state)
{
    for (uint32_t n = 2; n <= 64; n++) {
        uint64_t heard[64], before[64];

        for (uint32_t rank = 0; rank < n; rank++)
            heard[rank] = UINT64_C(1) << rank;
        for (unsigned round = 0; round < schedule_barrier_rounds(n); round++) {
            memcpy(before, heard, sizeof(heard));
            for (uint32_t rank = 0; rank < n; rank++) {
                uint32_t from = schedule_barrier_from(rank, round, n);

                assert_int_equal(schedule_barrier_to(from, round, n), rank);
                heard[rank] |= before[from];
            }
        }
        for (uint32_t rank = 0; rank < n; rank++)
            assert_true(heard[rank] == UINT64_MAX >> (64 - n));
    }
    assert_int_equal(schedule_barrier_rounds(PATTERN_RANKS_MAX), 16);
}

/* --- wrong results -------------------------------------------------------------------------- */

/* A number that is wrong in one element: of a sum, and of bytes. */
static void the_wrong_element_is_named(void **state)
{
    struct pattern_plan *plan = plan_of(
        &(struct pattern_request){.name = "allreduce", .n = 6, .algorithm = "ring", .bytes = 400});
    struct schedule_sim *sim = schedule_sim_make(plan, 0, 6, 1);
    const struct schedule *schedule = schedule_sim_schedule(sim, 4);
    float *memory = schedule_sim_memory(sim, 4);
    unsigned char *bytes;
    struct schedule_wrong wrong;

    assert_true(schedule_sim_run(sim, 1));
    assert_true(schedule_verify(plan, 0, 4, schedule, memory, &wrong));
    memory[100 + 57] += 1;
    assert_false(schedule_verify(plan, 0, 4, schedule, memory, &wrong));
    assert_int_equal(wrong.element, 57);
    assert_int_equal(wrong.at, 628);
    assert_true(wrong.source == SCHEDULE_SUM);
    assert_true(wrong.got == wrong.expected + 1);
    assert_true(wrong.expected == 6 * 58 + 15); /* element 57 of rank r is 58 + r */
    schedule_sim_free(sim);
    pattern_plan_free(plan);

    plan = plan_of(&(struct pattern_request){.name = "sendrecv", .n = 4, .bytes = 30});
    sim = schedule_sim_make(plan, 0, 4, 1);
    bytes = schedule_sim_memory(sim, 2);
    schedule = schedule_sim_schedule(sim, 2);
    assert_false(schedule_verify(plan, 0, 2, schedule, bytes, &wrong)); /* nothing received */
    assert_true(schedule_sim_run(sim, 1));
    schedule_sim_verify(sim);
    bytes[30 + 17] ^= 1;
    assert_false(schedule_verify(plan, 0, 2, schedule, bytes, &wrong));
    assert_int_equal(wrong.at, 47);
    assert_int_equal(wrong.element, 17);
    assert_int_equal(wrong.source, 1);
    assert_int_equal((int)wrong.got, (int)wrong.expected ^ 1);
    schedule_sim_free(sim);
    pattern_plan_free(plan);
}

/* What a rank adds in a reduce of so many floats: values[0] to values[count - 1]. */
static void added_by(const struct pattern_plan *plan, uint32_t rank, float *values, size_t count)
{
    struct schedule schedule;
    float *memory = calloc(3 * count, sizeof(float));

    assert_non_null(memory);
    assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
    schedule_fill(plan, 0, rank, &schedule, memory);
    memcpy(values, memory, count * sizeof(*values));
    schedule_free(&schedule);
    free(memory);
}

/* Whether rank 0 takes these floats for the right sum. */
static bool passes(const struct pattern_plan *plan, const float *sum, size_t count)
{
    struct schedule schedule;
    struct schedule_wrong wrong;
    float *memory = calloc(3 * count, sizeof(float));
    bool right;

    assert_non_null(memory);
    memcpy(memory + count, sum, count * sizeof(*sum));
    assert_int_equal(pattern_schedule(plan, 0, 0, &schedule), 0);
    right = schedule_verify(plan, 0, 0, &schedule, memory, &wrong);
    schedule_free(&schedule);
    free(memory);
    return right;
}

static struct pattern_plan *sum_up(uint32_t n, float *sum, size_t count)
{
    struct pattern_plan *plan = plan_of(
        &(struct pattern_request){.name = "reduce", .n = n, .bytes = count * sizeof(float)});
    float *values = calloc(count, sizeof(float));

    assert_non_null(values);
    for (uint32_t rank = 0; rank < n; rank++) {
        added_by(plan, rank, values, count);
        for (size_t i = 0; i < count; i++)
            sum[i] += values[i];
    }
    free(values);
    assert_true(passes(plan, sum, count));
    return plan;
}

#define ADDED 3u /* elements: a rank's number has at most so many digits */

/* Also where all remainders of the ranks' numbers are equally frequent. */
static void another_ranks_values_are_found(void **state)
{
    static const uint32_t numbers[] = {2, 211, 251, 422, 502, 1004, 3990, 4096, 21084, 65536};
    static const uint32_t distances[] = {1, 41, 64, 205, 211, 251, 256, 1681, 2008, 4096, 32768};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        uint32_t n = numbers[i];
        float sum[ADDED] = {0}, spoilt[ADDED], out[ADDED], in[ADDED];
        struct pattern_plan *plan = sum_up(n, sum, ADDED);

        for (size_t j = 0; j < sizeof(distances) / sizeof(distances[0]); j++)
            for (uint32_t rank = 1; rank + distances[j] < n; rank += 1 + n / 8) {
                added_by(plan, rank, out, ADDED);
                added_by(plan, rank + distances[j], in, ADDED);
                for (uint32_t k = 0; k < ADDED; k++)
                    spoilt[k] = sum[k] - out[k] + in[k];
                if (passes(plan, spoilt, ADDED))
                    fail_msg("of %u ranks, %u's values instead of %u's are not found", n,
                             rank + distances[j], rank);
            }
        pattern_plan_free(plan);
    }
}

/* A part of the sum in another's place: of 1004 ranks each has an element. */
static void another_place_is_found(void **state)
{
    enum { RANKS = 1004 };
    float sum[RANKS] = {0};
    struct pattern_plan *plan = sum_up(RANKS, sum, RANKS);

    for (uint32_t i = 0; i + 251 < RANKS; i++) {
        float right = sum[i];

        sum[i] = sum[i + 251];
        assert_false(passes(plan, sum, RANKS));
        sum[i] = right;
    }
    pattern_plan_free(plan);
}

/* One bit of one message in flight shows in the result of every function that moves or reduces. */
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_those_of_the_literature),
        cmocka_unit_test(skewed_sizes_add_up),
        cmocka_unit_test(kernels_send_what_their_sources_say),
        cmocka_unit_test(kernels_compute_what_their_sources_say),
        cmocka_unit_test(kernels_count_iterations),
        cmocka_unit_test(pairs_are_drawn_once_each),
        cmocka_unit_test(the_barrier_tells_everybody),
        cmocka_unit_test(the_wrong_element_is_named),
        cmocka_unit_test(another_ranks_values_are_found),
        cmocka_unit_test(another_place_is_found),
        cmocka_unit_test(a_wrong_message_is_found),
    };

    pattern_cases_path = argc > 1 ? argv[1] : "patterns.txt";
    return cmocka_run_group_tests_name("schedules", tests, NULL, NULL);
}
