/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NAS Parallel Benchmarks whose communication consists of collective functions: EP, IS, FT. Bailey
 * et al., The NAS Parallel Benchmarks, RNR-94-007, 1994; The NAS Parallel Benchmarks 2.0,
 * NAS-95-020, 1995; the source text of NPB 3.4. Sizes and omissions: doc/reference/patterns.md.
 */
#include "kernel.h"

#include <math.h>

/* --- EP: random pairs, counted locally; three sums at the end -------------------------------- */

/* Bailey 1994, the table of class A: 26.68e9 operations for 2^28 pairs. NPB's rate counts random
 * numbers, two per pair. */
#define EP_PER_PAIR (26.68e9 / (1 << 28))
#define EP_COUNTS 10u
#define EP_BATCH 16u /* log2 of the pairs that one rank generates at a time */

/* Return the maximum number of ranks: each rank has at least one batch. */
static uint64_t ep_most(const struct kernel_problem *problem)
{
    return UINT64_C(1) << (problem->size[0] - EP_BATCH);
}

static void emit_ep(const struct pattern_plan *plan, struct steps *steps)
{
    static const uint64_t sums[] = {KERNEL_DOUBLE, KERNEL_DOUBLE, EP_COUNTS * KERNEL_DOUBLE};
    uint32_t batches = (uint32_t)ep_most(plan->problem);
    double pairs = ldexp(kernel_share(batches, plan->n, steps->rank), EP_BATCH);

    steps_work(steps, (uint64_t)(EP_PER_PAIR * pairs));
    steps_next(steps);
    for (unsigned i = 0; i < 3; i++) {
        struct sum sum = {.input = 0, .result = sums[i], .spare = 2 * sums[i]};

        allreduce_double(steps, &sum, sums[i]);
    }
}

const struct pattern_kind kind_nas_ep = {
    KERNEL,
    .emit = {emit_ep},
    .kernel.ranks = RANKS_ANY,
    .kernel.problems = {{{24}, 1}, {{25}, 1}, {{28}, 1}, {{30}, 1}, {{32}, 1}, {{36}, 1}},
    .kernel.most = ep_most,
};

/* --- IS: keys into buckets ------------------------------------------------------------------ */

/* Bailey 1994, the table of class A: 0.7812e9 operations for 10 rankings of 2^23 keys. NPB's
 * rate counts keys. */
#define IS_PER_KEY (0.7812e9 / (10.0 * (1 << 23)))
#define IS_INT 4u
#define IS_TEST_KEYS 5u /* sent with the bucket sizes */

/* Return the maximum number of ranks, which NPB's source sets. */
static uint64_t is_most(const struct kernel_problem *problem)
{
    return problem->size[0] <= 16 ? 128 : 1024;
}

/* Emit the exchanges of IS: the sizes of all buckets, then the number of keys for each rank, then
 * the keys. Buckets are distributed so that all ranks get equal numbers of keys. */
static void emit_is(const struct pattern_plan *plan, struct steps *steps)
{
    const struct kernel_problem *problem = plan->problem;
    uint64_t keys = UINT64_C(1) << problem->size[0];
    uint64_t buckets = problem->size[0] <= 16 ? 1u << 9 : 1u << 10; /* class S has half */
    uint64_t sizes = (buckets + IS_TEST_KEYS) * IS_INT;
    struct sum sum = {.input = 0, .result = sizes, .spare = 2 * sizes};
    uint64_t own = keys / plan->n * IS_INT;
    struct swap counts = {
        .out = partition_each((struct piece){0, IS_INT}, plan->n),
        .in = partition_each((struct piece){plan->n * IS_INT, IS_INT}, plan->n),
    };
    struct swap data = {
        .out = partition_split((struct piece){0, own}, plan->n, IS_INT),
        .in = partition_each((struct piece){own, 0}, plan->n),
    };

    /* All ranks' keys are cut alike: received parts have the size of the rank's own part. */
    data.in.bytes = partition_piece(&data.out, steps->rank).bytes;
    kernel_work(steps, IS_PER_KEY * (double)keys);
    steps_next(steps);
    allreduce_double(steps, &sum, sizes);
    swap_linear(steps, &counts);
    swap_linear(steps, &data);
}

const struct pattern_kind kind_nas_is = {
    KERNEL,
    .emit = {emit_is},
    .kernel.problems = {{{16}, 10}, {{20}, 10}, {{23}, 10}, {{25}, 10}, {{27}, 10}, {{31}, 10}},
    .kernel.most = is_most,
};

/* --- FT: a Fourier transform in three dimensions -------------------------------------------- */

#define FT_COMPLEX 16u

/* Return the maximum number of ranks: nz along one dimension of the grid of ranks, and the smaller
 * of ny and nz along the other. */
static uint64_t ft_most(const struct kernel_problem *problem)
{
    uint64_t y = problem->size[1], z = problem->size[2];

    return z * (y < z ? y : z);
}

/* Emit one transposition of the rank's points among the ranks of the present group. */
static void transpose(struct steps *steps, uint64_t own_bytes)
{
    struct swap swap = {
        .out = partition_split((struct piece){0, own_bytes}, steps->n, FT_COMPLEX),
        .in = partition_split((struct piece){own_bytes, own_bytes}, steps->n, FT_COMPLEX),
    };

    swap_linear(steps, &swap);
}

/* Emit an iteration of FT. With at most as many ranks as planes, ranks have whole planes, and one
 * transposition suffices. With more ranks, nz rows of ranks share the planes: x and z are
 * transposed in a row of ranks, then x and y in a column (NPB 3.4, FT/ft.f90: setup, fft). The
 * checksum goes to rank 0. */
static void emit_ft(const struct pattern_plan *plan, struct steps *steps)
{
    const struct kernel_problem *problem = plan->problem;
    double points = (double)problem->size[0] * problem->size[1] * problem->size[2];
    uint32_t rows = plan->n <= problem->size[2] ? 1 : problem->size[2];
    uint32_t columns = plan->n / rows, rank = steps->rank;
    uint64_t own = (uint64_t)points / plan->n * FT_COMPLEX;
    struct sum checksum = {.input = 0, .result = FT_COMPLEX, .spare = 2 * FT_COMPLEX};

    /* NPB's count for its rate of an iteration. */
    kernel_work(steps, points * (5.23518 + 7.21113 * log(points)));
    steps_next(steps);
    steps_enter(steps, rank / columns * columns, 1, columns);
    transpose(steps, own);
    steps_enter(steps, rank % columns, columns, rows);
    if (rows > 1)
        transpose(steps, own);
    steps_enter(steps, 0, 1, plan->n);
    tree_up(steps, &checksum, FT_COMPLEX);
}

const struct pattern_kind kind_nas_ft = {
    KERNEL,
    .emit = {emit_ft},
    .kernel.problems = {{{64, 64, 64}, 6},
                        {{128, 128, 32}, 6},
                        {{256, 256, 128}, 6},
                        {{512, 256, 256}, 20},
                        {{512, 512, 512}, 20},
                        {{2048, 1024, 1024}, 25}},
    .kernel.most = ft_most,
};
