/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NAS CG: the sparse matrix is distributed over rows x columns of ranks, with as many columns as
 * rows or twice as many. Each of the 25 inner iterations sums the product over a row of ranks,
 * exchanges it with the transposed rank, and sums two inner products; a last product gives the
 * residual.
 */
#include "kernel.h"

#define INNER 25u

struct cg {
    uint32_t rows, columns;
    uint32_t row, column;
    uint64_t length;   /* bytes of the product's part at a row of ranks */
    uint64_t own;      /* bytes of this part that go to the transposed rank */
    uint32_t opposite; /* the transposed rank */
    double product;    /* operations of one product */
};

/* Return how many bytes of its row's part of a vector a rank has: all, or one of two halves where
 * there are twice as many columns as rows. */
static uint64_t own_length(const struct cg *cg, uint64_t length, uint32_t rank)
{
    uint64_t elements = length / KERNEL_DOUBLE;

    if (cg->rows == cg->columns)
        return length;
    return (rank % 2 == 0 ? (elements + 1) / 2 : elements / 2) * KERNEL_DOUBLE;
}

static uint64_t row_length(const struct pattern_plan *plan, const struct cg *cg, uint32_t row)
{
    return (uint64_t)kernel_share(plan->problem->size[0], cg->rows, row) * KERNEL_DOUBLE;
}

static struct cg cg_of(const struct pattern_plan *plan, uint32_t rank)
{
    const struct kernel_problem *problem = plan->problem;
    uint32_t half = UINT32_C(1) << kernel_log2(plan->n) / 2;
    struct cg cg = {.rows = half, .columns = plan->n / half};
    uint32_t pair = cg.columns / cg.rows; /* 1 or 2 adjacent ranks */
    double nonzer = problem->size[1];

    cg.row = rank / cg.columns;
    cg.column = rank % cg.columns;
    cg.length = row_length(plan, &cg, cg.row);
    cg.own = own_length(&cg, cg.length, rank);
    cg.opposite = pair * (rank / pair % cg.rows * cg.rows + rank / pair / cg.rows) + rank % pair;
    /* NPB counts 26 products per iteration. */
    cg.product = 2.0 * problem->size[0] *
                 (3 + nonzer * (nonzer + 1) + INNER * (5 + nonzer * (nonzer + 1)) + 3) /
                 (INNER + 1);
    return cg;
}

static void exchange(struct steps *steps, uint32_t partner, uint64_t out, uint64_t in)
{
    uint64_t spare = out > in ? out : in;

    steps_send(steps, partner, (struct piece){0, out});
    steps_receive(steps, partner, (struct piece){spare, in});
    steps_reduce(steps, (struct piece){0, in}, spare);
    steps_next(steps);
}

/* Emit the sum of a product over a row of ranks, by exchanges with the nearest rank first. If a
 * rank has half of its part, the first exchange sends the other half. */
static void sum_product(struct steps *steps, const struct cg *cg)
{
    for (uint32_t bit = 1; bit < cg->columns; bit *= 2) {
        uint64_t out = bit == 1 && cg->rows != cg->columns ? cg->length - cg->own : cg->own;

        exchange(steps, steps->rank ^ bit, out, cg->own);
    }
}

static void sum_scalars(struct steps *steps, const struct cg *cg, uint32_t count)
{
    for (uint32_t bit = cg->columns / 2; bit > 0; bit /= 2)
        exchange(steps, steps->rank ^ bit, count * KERNEL_DOUBLE, count * KERNEL_DOUBLE);
}

static void multiply(const struct pattern_plan *plan, struct steps *steps, const struct cg *cg)
{
    kernel_work(steps, cg->product);
    steps_next(steps);
    sum_product(steps, cg);
    if (cg->opposite == steps->rank) {
        steps_copy(steps, (struct piece){cg->length, cg->own}, 0);
    } else {
        uint64_t length = row_length(plan, cg, cg->opposite / cg->columns);

        steps_send(steps, cg->opposite, (struct piece){0, cg->own});
        steps_receive(steps, cg->opposite,
                      (struct piece){cg->length, own_length(cg, length, cg->opposite)});
    }
    steps_next(steps);
}

static void emit(const struct pattern_plan *plan, struct steps *steps)
{
    struct cg cg = cg_of(plan, steps->rank);

    sum_scalars(steps, &cg, 1); /* rho = r . r */
    for (unsigned i = 0; i < INNER; i++) {
        multiply(plan, steps, &cg);
        sum_scalars(steps, &cg, 1); /* p . q */
        sum_scalars(steps, &cg, 1); /* rho */
    }
    multiply(plan, steps, &cg); /* the residual */
    sum_scalars(steps, &cg, 1);
    sum_scalars(steps, &cg, 2); /* x . z and z . z */
}

const struct pattern_kind kind_nas_cg = {
    KERNEL,
    .emit = {emit},
    .kernel.problems = {{{1400, 7}, 15},
                        {{7000, 8}, 15},
                        {{14000, 11}, 15},
                        {{75000, 13}, 75},
                        {{150000, 15}, 75},
                        {{1500000, 21}, 100}},
    .kernel.least = 1,
};
