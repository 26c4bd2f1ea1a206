/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules of collectives and kernels: steps, bytes and memory against the formulas of their
 * sources, messages of kernels against sizes worked out by hand (doc/reference/patterns.md), and
 * wrong results that are found.
 */
#include "schedule_sim.h"
#include "test_patterns_util.h"

#include <math.h>
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

#define ALL UINT32_MAX        /* messages of any size to any rank: how many, and their bytes */
#define MOST (UINT32_MAX - 1) /* the largest message */

/* What a rank sends in one iteration: so many messages of this size to another. */
struct sent {
    const char *name, *class;
    uint32_t n, rank, peer;
    uint64_t bytes, count;
};

static const struct sent sent[] = {
    /* clang-format off */
    /* CG: na = 14000 over 2 x 2 ranks: 7000 doubles, 26 times to the other of the row and, off the
     * diagonal, 26 times to the transposed one; 52 inner products of 8 bytes and one of 16. */
    {"nas_cg", "A", 4, 0, ALL, 26 * 56000 + 52 * 8 + 16, 26 + 52 + 1},
    {"nas_cg", "A", 4, 0, MOST, 56000, 1},
    {"nas_cg", "A", 4, 0, 1, 56000, 26}, {"nas_cg", "A", 4, 1, 2, 56000, 26},
    {"nas_cg", "A", 4, 1, ALL, 52 * 56000 + 52 * 8 + 16, 26 + 26 + 52 + 1},
    /* 8 ranks are 2 x 4: rows of 7000 doubles, of which each rank of two keeps 3500; the first of
     * two exchanges gives the other half away, and 3500 go to the transposed rank. Rank 3 is pair 1
     * of row 0: its opposite is pair 0 of row 1, on the same side: 2 x 2 + 1. */
    {"nas_cg", "A", 8, 1, MOST, 28000, 1},
    {"nas_cg", "A", 8, 1, 0, 28000, 26}, {"nas_cg", "A", 8, 1, 3, 28000, 26},
    {"nas_cg", "A", 8, 3, 5, 28000, 26}, {"nas_cg", "A", 8, 5, 3, 28000, 26},
    /* FT: 256 x 256 x 128 points of 16 bytes: of 4 ranks each has 33,554,432 bytes and sends a
     * quarter of them to each other one; the checksum of 16 bytes goes up a tree. 256 ranks on 128
     * planes are 128 x 2: the two of a row swap halves of 512 KiB, then the 128 of a column their
     * 128th parts. */
    {"nas_ft", "A", 4, 0, ALL, 3 * 8388608, 3}, {"nas_ft", "A", 4, 1, ALL, 3 * 8388608 + 16, 4},
    {"nas_ft", "A", 4, 1, 0, 16, 1}, {"nas_ft", "A", 4, 3, 1, 8388608, 1},
    {"nas_ft", "A", 256, 0, 1, 262144, 1}, {"nas_ft", "A", 256, 0, 2, 4096, 1},
    {"nas_ft", "A", 256, 0, 128, 4096, 1}, {"nas_ft", "A", 256, 0, ALL, 262144 + 127 * 4096, 128},
    /* IS: 1024 buckets and 5 test keys of 4 bytes; 2^23 keys: of 4 ranks each has 2^21 and sends a
     * quarter to each other one. Class S has 512 buckets. */
    {"nas_is", "A", 4, 0, ALL, 2 * 4116 + 3 * 4 + 3 * 2097152, 2 + 3 + 3},
    {"nas_is", "A", 4, 0, 1, 4116, 1}, {"nas_is", "A", 4, 0, 2, 4116, 1},
    {"nas_is", "A", 4, 0, 3, 4, 1}, {"nas_is", "A", 4, 0, 3, 2097152, 1},
    {"nas_is", "S", 2, 0, 1, 2068, 1},
    {"nas_ep", "A", 2, 0, ALL, 8 + 8 + 80, 3},
    /* MG: 8 ranks are 2 x 2 x 2: of 256^3 points a rank has 128^3; the faces are 128 x 128,
     * 130 x 128 and 130 x 130 doubles, three times for each of two neighbours, which are one rank
     * here. The last level with a side of two points has faces of 1, 3 and 9 doubles, twice. */
    {"nas_mg", "A", 8, 0, 1, 131072, 6}, {"nas_mg", "A", 8, 0, 2, 133120, 6},
    {"nas_mg", "A", 8, 0, 4, 135200, 6}, {"nas_mg", "A", 8, 0, 1, 8, 4},
    {"nas_mg", "A", 8, 0, 4, 72, 4}, {"nas_mg", "A", 8, 0, ALL, 0, 6 * (2 + 7 * 3)},
    /* 64 ranks are 4 x 4 x 4: of two points a side ranks 1 and 3 along each dimension have one.
     * Rank 21 is 1, 1, 1: on the way to four points it hands two planes of 3 x 3 to the next rank
     * and one to the one before, along x, y and z; these planes are as large as a face along z. */
    {"nas_mg", "S", 64, 21, 22, 144, 1}, {"nas_mg", "S", 64, 21, 20, 72, 1},
    {"nas_mg", "S", 64, 21, 25, 144, 1}, {"nas_mg", "S", 64, 21, 17, 72, 1},
    {"nas_mg", "S", 64, 21, 37, 144, 1}, {"nas_mg", "S", 64, 21, 5, 72, 1 + 3},
    /* Of two points its neighbours both ways are rank 3 along a dimension: faces of 1, 3, 9. Rank
     * 20 is 0, 1, 1: it has nothing of two points, but hands on along y and z. */
    {"nas_mg", "S", 64, 21, 23, 8, 2 * 2}, {"nas_mg", "S", 64, 21, 53, 72, 2 * 2},
    {"nas_mg", "S", 64, 20, 21, 144, 0}, {"nas_mg", "S", 64, 20, 22, 8, 0},
    {"nas_mg", "S", 64, 20, 24, 144, 1},
    /* LU: 4 ranks are 2 x 2: edges of 31 inner points of 5 doubles for each of 62 inner planes,
     * there and back; then faces of 32 x 64 points with two layers. Rank 1 is at an end of x and at
     * the begin of y: it sends ahead along y, back along x. */
    {"nas_lu", "A", 4, 0, 1, 1240, 62}, {"nas_lu", "A", 4, 0, 2, 1240, 62},
    {"nas_lu", "A", 4, 3, 1, 1240, 62}, {"nas_lu", "A", 4, 0, 1, 163840, 1},
    {"nas_lu", "A", 4, 0, ALL, 0, 2 * 62 + 2}, {"nas_lu", "A", 4, 1, ALL, 0, 2 * 62 + 2},
    /* 8 ranks are 4 x 2: 33 points along x are 9, 8, 8, 8, along y 17, 16; the border stays. */
    {"nas_lu", "W", 8, 0, 1, 16 * 40, 31}, {"nas_lu", "W", 8, 5, 6, 15 * 40, 31},
    {"nas_lu", "W", 8, 0, 4, 8 * 40, 31}, {"nas_lu", "W", 8, 1, 5, 8 * 40, 31},
    {"nas_lu", "W", 8, 3, 7, 7 * 40, 31},
    {"nas_lu", "W", 8, 0, 1, 17 * 33 * 80, 1}, {"nas_lu", "W", 8, 3, 7, 8 * 33 * 80, 1},
    /* BT and SP: 4 ranks have 2 cells of 32^3 each: a face of 32 x 32 points of ten doubles six
     * times; then in each of three directions one stage's message forward and back: BT 33 x 33
     * points of 30 and 5 doubles, SP the 31 x 31 inner points of a cell of 22 and 10. Nine ranks:
     * two messages a sweep. */
    {"nas_bt", "A", 4, 0, ALL, 6 * 81920 + 3 * (261360 + 43560), 6 + 3 * 2},
    {"nas_bt", "A", 4, 0, MOST, 261360, 1},
    {"nas_sp", "A", 4, 3, ALL, 6 * 81920 + 3 * (169136 + 76880), 6 + 3 * 2},
    {"nas_sp", "A", 4, 3, MOST, 169136, 1}, {"nas_sp", "A", 9, 4, ALL, 0, 6 + 3 * 2 * 2},
    /* 64 points over 3 are 22, 21, 21. Rank 4 of 3 x 3 has the cells (1, 1, 0), (2, 0, 1),
     * (0, 2, 2): it solves along x in the third, the first, the second. Inner faces: 20 x 20,
     * 21 x 21, 21 x 21. Faces ahead of the third and the first cell, back of the first and the
     * second. */
    {"nas_sp", "A", 9, 4, 5, 400 * 176, 1}, {"nas_sp", "A", 9, 4, 5, 441 * 176, 1},
    {"nas_sp", "A", 9, 4, 3, 441 * 80, 2},
    {"nas_sp", "A", 9, 4, 5, (21 * 21 + 21 * 22) * 80, 1},
    {"nas_sp", "A", 9, 4, 3, (21 * 22 + 22 * 21) * 80, 1},
    /* In the third direction neighbours are on the diagonal: rank 4 of 3 x 3 has 0 to 8 but
     * itself. */
    {"nas_bt", "W", 9, 4, 3, 2 * 8 * 8 * 80, 1}, {"nas_bt", "W", 9, 4, 5, 2 * 8 * 8 * 80, 1},
    {"nas_bt", "W", 9, 4, 1, 2 * 8 * 8 * 80, 1}, {"nas_bt", "W", 9, 4, 7, 2 * 8 * 8 * 80, 1},
    {"nas_bt", "W", 9, 4, 6, 2 * 8 * 8 * 80, 1}, {"nas_bt", "W", 9, 4, 2, 2 * 8 * 8 * 80, 1},
    {"nas_bt", "W", 9, 4, 0, 2 * 8 * 8 * 80, 0}, {"nas_bt", "W", 9, 4, 8, 2 * 8 * 8 * 80, 0},
    /* HPL, matrix 1200 and block 100: 2 x 3 ranks; half of 1200 is 600: panels of
     * (300 + 100 + 1) x 100 + 1 doubles go along rows; 100 rows of 200 doubles are halved over a
     * column of two: spread, then rolled. */
    {"hpl", NULL, 6, 0, 1, 320808, 1}, {"hpl", NULL, 6, 1, 2, 320808, 1},
    {"hpl", NULL, 6, 2, 0, 320808, 0}, {"hpl", NULL, 6, 0, 3, 80000, 2},
    {"hpl", NULL, 6, 3, 0, 80000, 1},
    /* Three rows of ranks roll with the neighbours in turns: rank 0 of a column gets from 1 and
     * then from 2, rank 2 from 0 and then from 1; each has 100 of 3 x 100 doubles (matrix 180, block
     * 10). */
    {"hpl", NULL, 9, 0, 3, 800, 2}, {"hpl", NULL, 9, 0, 6, 800, 2}, {"hpl", NULL, 9, 3, 0, 800, 1},
    {"hpl", NULL, 9, 3, 6, 800, 1}, {"hpl", NULL, 9, 6, 0, 800, 1}, {"hpl", NULL, 9, 6, 3, 800, 1},
    {"halo", NULL, 27, 13, ALL, 60, 6}, {"halo", NULL, 27, 0, ALL, 30, 3},
    {"halo", NULL, 27, 13, 4, 10, 1},
    /* clang-format on */
};

static struct pattern_plan *kernel_of(const char *name, uint32_t n, const char *class)
{
    bool hpl = strcmp(name, "hpl") == 0, halo = strcmp(name, "halo") == 0;

    return plan_of(&(struct pattern_request){.name = name,
                                             .n = n,
                                             .class = class,
                                             .matrix = hpl ? n == 9 ? 180 : 1200 : 0,
                                             .block = hpl ? n == 9 ? 10 : 100 : 0,
                                             .dimensions = halo ? 3 : 0,
                                             .bytes = halo ? 10 : 0});
}

static void check_sent(const struct sent *row)
{
    struct pattern_plan *plan = kernel_of(row->name, row->n, row->class);
    struct schedule schedule;
    uint64_t count = 0, bytes = 0, most = 0, same = 0;

    assert_int_equal(pattern_schedule(plan, 0, row->rank, &schedule), 0);
    for (size_t i = 0; i < schedule.count; i++) {
        const struct schedule_op *op = &schedule.ops[i];

        if (op->action != SCHEDULE_SEND)
            continue;
        count++;
        bytes += op->bytes;
        most = op->bytes > most ? op->bytes : most;
        same += op->peer == row->peer && op->bytes == row->bytes;
    }
    schedule_free(&schedule);
    pattern_plan_free(plan);
    if (row->peer == MOST)
        assert_int_equal(most, row->bytes);
    else if (row->peer != ALL)
        assert_int_equal(same, row->count);
    else
        assert_int_equal(count, row->count);
    if (row->peer == ALL && row->bytes > 0)
        assert_int_equal(bytes, row->bytes);
}

static void kernels_send_what_their_sources_say(void **state)
{
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
        check_sent(&sent[i]);
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

int main(void)
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

    return cmocka_run_group_tests_name("schedules", tests, NULL, NULL);
}
