/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NAS LU: symmetric successive over-relaxation. Planes of the grid move as a wave front over rows
 * and columns of ranks, from one corner to the other and back: many small messages in a pipeline.
 * Then the right-hand side needs two layers of each neighbour. NPB 3.4, LU/exchange_1.f90,
 * exchange_3.f90, subdomain.f90, ssor.f90.
 */
#include "kernel.h"

#define VARIABLES 5u
#define LAYERS 2u

struct lu {
    struct kernel_grid grid;
    uint32_t side;
    uint64_t edge[2]; /* bytes of a plane's edge along dimensions 0 and 1 */
    uint64_t face[2]; /* bytes of two layers */
    double plane;     /* operations of one plane in one sweep */
};

static struct lu lu_of(const struct pattern_plan *plan, uint32_t rank)
{
    unsigned bits = kernel_log2(plan->n);
    const uint32_t ranks[3] = {UINT32_C(1) << (bits + 1) / 2, UINT32_C(1) << bits / 2, 1};
    uint32_t side = plan->problem->size[0];
    struct lu lu = {.grid = kernel_grid_of(rank, ranks), .side = side};
    uint64_t point = VARIABLES * KERNEL_DOUBLE;
    double n = side;

    for (unsigned d = 0; d < 2; d++) {
        uint32_t at = lu.grid.at[1 - d], across = lu.grid.ranks[1 - d];
        uint64_t points = kernel_share(side, across, at);

        /* Sweeps exclude the border of the whole grid. */
        lu.edge[d] = (points - (at == 0) - (at + 1 == across)) * point;
        lu.face[d] = LAYERS * points * side * point;
    }
    /* NPB counts an iteration over the inner planes of two sweeps. */
    lu.plane = (((1984.77 * n - 10923.3) * n + 27770.9) * n - 144010.0) / (2 * (n - 2));
    return lu;
}

static bool has_neighbour(const struct lu *lu, unsigned dimension, int direction)
{
    uint32_t at = lu->grid.at[dimension];

    return direction > 0 ? at + 1 < lu->grid.ranks[dimension] : at > 0;
}

/* Return the place in memory of a message to or from a neighbour along a dimension; sent messages
 * come first. */
static struct piece place(const struct lu *lu, unsigned number, unsigned dimension)
{
    uint64_t most = lu->edge[0] > lu->edge[1] ? lu->edge[0] : lu->edge[1];

    return (struct piece){number * most, lu->edge[dimension]};
}

/* Emit a sweep of planes as a pipeline: each step receives a plane from the rank behind, and sends
 * the previous plane to the rank ahead. */
static void sweep(struct steps *steps, const struct lu *lu, int direction)
{
    uint32_t planes = lu->side - 2;

    for (uint32_t plane = 0; plane <= planes; plane++) {
        for (unsigned d = 0; d < 2; d++) {
            if (plane > 0 && has_neighbour(lu, d, direction))
                steps_send(steps, kernel_at(&lu->grid, d, direction), place(lu, d, d));
            if (plane < planes && has_neighbour(lu, d, -direction))
                steps_receive(steps, kernel_at(&lu->grid, d, -direction), place(lu, 2 + d, d));
        }
        if (plane < planes)
            kernel_work(steps, lu->plane);
        steps_next(steps);
    }
}

/* Emit the exchange of layers along each dimension, first ahead, then back. */
static void exchange_layers(struct steps *steps, const struct lu *lu)
{
    for (unsigned d = 0; d < 2; d++) {
        for (int direction = 1; direction >= -1; direction -= 2) {
            if (has_neighbour(lu, d, direction))
                steps_send(steps, kernel_at(&lu->grid, d, direction),
                           (struct piece){0, lu->face[d]});
            if (has_neighbour(lu, d, -direction))
                steps_receive(steps, kernel_at(&lu->grid, d, -direction),
                              (struct piece){lu->face[d], lu->face[d]});
            steps_next(steps);
        }
    }
}

static void emit(const struct pattern_plan *plan, struct steps *steps)
{
    struct lu lu = lu_of(plan, steps->rank);

    sweep(steps, &lu, 1);
    sweep(steps, &lu, -1);
    exchange_layers(steps, &lu);
}

const struct pattern_kind kind_nas_lu = {
    KERNEL,
    .emit = {emit},
    .kernel.problems =
        {{{12}, 50}, {{33}, 300}, {{64}, 250}, {{102}, 250}, {{162}, 250}, {{408}, 300}},
    .kernel.least = 3,
};
