/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HPL, and the halo exchange of a space cut into boxes: ranks form a grid derived from their
 * number.
 */
#include "kernel.h"

#include <stdio.h>

/* Return the largest divisor of a number up to its square root: 3 for 12, 1 for a prime number. */
static uint32_t divisor(uint32_t n)
{
    uint32_t found = 1;

    for (uint32_t i = 2; i * i <= n; i++)
        if (n % i == 0)
            found = i;
    return found;
}

/* --- HPL ------------------------------------------------------------------------------------ */

#define MATRIX_DEFAULT 8192u
#define BLOCK_DEFAULT 128u
#define MATRIX_MAX 100000000u

struct hpl {
    uint32_t rows, columns; /* P and Q of the grid of ranks */
    uint64_t panel;         /* bytes of a rank's part of the panel */
    uint64_t swapped;       /* bytes of the rows that a column of ranks swaps */
    double operations;
};

/* Compute the message sizes and operations of one HPL iteration. It is the middle iteration, with
 * half of the matrix left, whose bytes are the mean of all iterations. A panel message has the
 * rank's rows of the panel, the diagonal block, its pivots and a flag. Operations are counted as
 * for HPL's own rate. HPL_pdpanel_init.c, HPL_pdtest.c. */
static struct hpl hpl_of(const struct pattern_plan *plan)
{
    double all = plan->asked.matrix;
    uint64_t left = (plan->asked.matrix + 1) / 2, width = plan->asked.block;
    struct hpl hpl = {.rows = divisor(plan->n)};

    hpl.columns = plan->n / hpl.rows;
    hpl.panel = (((left + hpl.rows - 1) / hpl.rows + width + 1) * width + 1) * KERNEL_DOUBLE;
    hpl.swapped = (left + hpl.columns - 1) / hpl.columns * width * KERNEL_DOUBLE;
    hpl.operations = (2.0 / 3 * all + 1.5) * all * plan->asked.block;
    return hpl;
}

/* Emit the broadcast along a row of ranks, from each to the next ("1ring"). */
static void broadcast_panel(struct steps *steps, uint64_t bytes)
{
    if (steps->rank > 0) {
        steps_receive(steps, steps->rank - 1, (struct piece){0, bytes});
        steps_next(steps);
    }
    if (steps->rank + 1 < steps->n)
        steps_send(steps, steps->rank + 1, (struct piece){0, bytes});
    steps_next(steps);
}

/* Emit exchanges with alternating neighbours, so that in each of P - 1 steps a rank gets a
 * missing part, from one side and then from the other (HPL_rollT.c). */
static void roll(struct steps *steps, const struct partition *parts)
{
    uint32_t n = steps->n, rank = steps->rank;

    for (uint32_t k = 0; k + 1 < n; k++) {
        bool before = (rank + k) % 2 == 1;
        uint32_t far = k / 2;
        uint32_t out = (before ? rank + far : rank + n - far) % n;
        uint32_t in = (before ? rank + n - far - 1 : rank + far + 1) % n;
        uint32_t partner = (before ? rank + n - 1 : rank + 1) % n;

        steps_swap(steps, partner, partition_piece(parts, out), partner,
                   partition_piece(parts, in));
    }
}

/* Emit the row swap along a column of ranks ("spread-roll"): a tree spreads the rows, which then
 * roll around the column (HPL_pdlaswp01T.c). */
static void swap_rows(struct steps *steps, struct piece rows)
{
    struct partition parts = partition_split(rows, steps->n, KERNEL_DOUBLE);

    tree_down(steps, &parts, rows);
    roll(steps, &parts);
}

static void emit_hpl(const struct pattern_plan *plan, struct steps *steps)
{
    struct hpl hpl = hpl_of(plan);
    uint32_t row = steps->rank / hpl.columns, column = steps->rank % hpl.columns;

    steps_enter(steps, row * hpl.columns, 1, hpl.columns);
    broadcast_panel(steps, hpl.panel);
    steps_enter(steps, column, hpl.columns, hpl.rows);
    swap_rows(steps, (struct piece){hpl.panel, hpl.swapped});
    steps_enter(steps, 0, 1, plan->n);
    kernel_work(steps, hpl.operations);
}

static int make_hpl(struct pattern_plan *plan, const struct pattern_request *request,
                    struct pattern_why *why)
{
    uint32_t matrix = request->matrix > 0 ? request->matrix : MATRIX_DEFAULT;
    uint32_t block = request->block > 0 ? request->block : BLOCK_DEFAULT;
    struct hpl hpl;

    if (matrix > MATRIX_MAX)
        return pattern_refuse(why, "hpl: matrix %u is more than the maximum, %u", matrix,
                              MATRIX_MAX);
    if (block > matrix)
        return pattern_refuse(why, "hpl: block %u is more than the matrix has columns, %u", block,
                              matrix);
    plan->asked.matrix = matrix;
    plan->asked.block = block;
    hpl = hpl_of(plan);
    if (hpl.operations / plan->n >= KERNEL_WORK_MAX)
        return pattern_refuse(
            why,
            "hpl: with matrix %u and block %u each of %u ranks would compute more "
            "than 2^63 operations in an iteration: set a smaller block",
            matrix, block, plan->n);
    snprintf(plan->label, sizeof(plan->label), "hpl %u x %u", hpl.rows, hpl.columns);
    plan->iterations = (matrix + block - 1) / block;
    return 0;
}

const struct pattern_kind kind_hpl = {
    .knows = PATTERN_PARAM_MATRIX | PATTERN_PARAM_BLOCK, .emit = {emit_hpl}, .make = make_hpl};

/* --- a space cut into boxes ----------------------------------------------------------------- */

/* Return a grid of ranks with sides as equal as the divisors of the number of ranks allow: the
 * third side is at most the cube root, and the second at most the square root of the rest. */
static struct kernel_grid cut_space(const struct pattern_plan *plan, uint32_t rank)
{
    uint32_t n = plan->n, third = 1, second;

    for (uint32_t i = 2; plan->asked.dimensions == 3 && i * i * i <= n; i++)
        if (n % i == 0)
            third = i;
    second = divisor(n / third);
    return kernel_grid_of(rank, (const uint32_t[3]){n / third / second, second, third});
}

/* Emit the exchange of faces with each neighbouring box; boxes at the edge of the space have fewer
 * neighbours. */
static void emit_halo(const struct pattern_plan *plan, struct steps *steps)
{
    struct kernel_grid grid = cut_space(plan, steps->rank);
    uint32_t slot = 0;

    for (unsigned face = 0; face < 6; face++) {
        unsigned d = face / 2;
        bool up = face % 2 == 1;
        uint32_t beside;

        if (up ? grid.at[d] + 1 == grid.ranks[d] : grid.at[d] == 0)
            continue;
        beside = kernel_at(&grid, d, up ? 1 : -1);
        steps_trade(steps, plan->bytes, ++slot, beside, beside);
    }
}

static int make_halo(struct pattern_plan *plan, const struct pattern_request *request,
                     struct pattern_why *why)
{
    struct kernel_grid grid = cut_space(plan, 0);

    if (request->dimensions != 0 && request->dimensions != 2 && request->dimensions != 3)
        return pattern_refuse(why, "halo: dimensions %u: it must be 2 or 3", request->dimensions);
    snprintf(plan->label, sizeof(plan->label), "halo %u x %u x %u", grid.ranks[0], grid.ranks[1],
             grid.ranks[2]);
    return 0;
}

const struct pattern_kind kind_halo = {.knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_DIMENSIONS,
                                       .emit = {emit_halo},
                                       .make = make_halo};
