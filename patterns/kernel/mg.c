/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NAS MG: a V-cycle over grids of 2^k points per side, with ranks in three dimensions. Where a grid
 * changes, its faces are exchanged, dimension after dimension. In grids with fewer points than
 * ranks along a dimension, only every 2^j-th rank has points; on the way up, these ranks send
 * planes to the ranks without points. NPB 3.4, MG/mg.f90: setup, mg3P, comm3, comm3_ex.
 */
#include "kernel.h"

#define PER_POINT 58.0 /* operations per point and iteration, as NPB counts them */

static struct kernel_grid grid_of(uint32_t n, uint32_t rank)
{
    unsigned bits = kernel_log2(n);
    unsigned x = bits / 3, y = (bits - x) / 2;
    const uint32_t ranks[3] = {UINT32_C(1) << x, UINT32_C(1) << y, UINT32_C(1) << (bits - x - y)};

    return kernel_grid_of(rank, ranks);
}

/* Part of a grid level that one rank has. */
struct level {
    struct kernel_grid grid;
    uint32_t stride[3]; /* distance between ranks that have points */
    uint32_t points[3]; /* without the neighbours' points; 0: none along this dimension */
};

/* Return a rank's part of a level; where several ranks cover one point, the last of these has
 * it. */
static struct level level_of(const struct kernel_grid *grid, unsigned number)
{
    struct level level = {.grid = *grid};

    for (unsigned d = 0; d < 3; d++) {
        uint32_t points = UINT32_C(1) << number, ranks = grid->ranks[d];
        uint32_t each = points < ranks ? 1 : points / ranks;

        level.stride[d] = points < ranks ? ranks / points : 1;
        level.points[d] = (grid->at[d] + 1) % level.stride[d] == 0 ? each : 0;
    }
    return level;
}

/* Return the size of a face in bytes; it includes the neighbours' points in the dimensions that
 * were exchanged before. */
static uint64_t face_bytes(const struct level *level, unsigned dimension)
{
    uint64_t x = level->points[0], y = level->points[1], z = level->points[2];
    const uint64_t faces[3] = {y * z, (x + 2) * z, (x + 2) * (y + 2)};

    return faces[dimension] * KERNEL_DOUBLE;
}

/* Emit the exchange of both faces in each dimension with more than one rank that has points. */
static void exchange_faces(struct steps *steps, const struct level *level)
{
    for (unsigned d = 0; d < 3; d++) {
        uint64_t bytes = face_bytes(level, d);
        uint32_t up = kernel_at(&level->grid, d, level->stride[d]);
        uint32_t down = kernel_at(&level->grid, d, -(int64_t)level->stride[d]);

        if (up == steps->rank)
            continue;
        steps_send(steps, up, (struct piece){0, bytes});
        steps_send(steps, down, (struct piece){bytes, bytes});
        steps_receive(steps, down, (struct piece){2 * bytes, bytes});
        steps_receive(steps, up, (struct piece){3 * bytes, bytes});
        steps_next(steps);
    }
}

/* Emit `times` exchanges of a level's faces on the way down and up: after the restriction, the
 * residual and the smoothing; the finest level has a last residual, the coarsest none. */
static void exchange_level(struct steps *steps, const struct kernel_grid *grid, unsigned number,
                           unsigned times)
{
    struct level level = level_of(grid, number);

    if (level.points[0] == 0 || level.points[1] == 0 || level.points[2] == 0)
        return;
    for (unsigned i = 0; i < times; i++)
        exchange_faces(steps, &level);
}

/* Return the size in bytes of a plane across a dimension, including the neighbours' points. In a
 * dimension in which the rank has no points, only the neighbours' points count. */
static uint64_t plane_bytes(const struct level *level, unsigned dimension)
{
    uint64_t bytes = KERNEL_DOUBLE;

    for (unsigned d = 0; d < 3; d++)
        bytes *= d == dimension ? 1 : level->points[d] + 2;
    return bytes;
}

/* Emit the transfer of planes along a dimension, from ranks that had points of the level below to
 * ranks that have points of this level only: the last two planes to the next such rank, the first
 * plane to the previous one. */
static void hand_on(struct steps *steps, const struct level *level, unsigned d, bool gives)
{
    uint64_t plane = plane_bytes(level, d);
    uint32_t up = kernel_at(&level->grid, d, level->stride[d]);
    uint32_t down = kernel_at(&level->grid, d, -(int64_t)level->stride[d]);

    if (gives) {
        steps_send(steps, up, (struct piece){0, 2 * plane});
        steps_send(steps, down, (struct piece){0, plane});
    } else {
        steps_receive(steps, down, (struct piece){0, 2 * plane});
        steps_receive(steps, up, (struct piece){2 * plane, plane});
    }
    steps_next(steps);
}

/* Emit the transfers after the interpolation to a level, to ranks that have points of this level
 * but none of the level below. */
static void take_in(struct steps *steps, const struct kernel_grid *grid, unsigned number)
{
    struct level level = level_of(grid, number), below = level_of(grid, number - 1);

    for (unsigned d = 0; d < 3; d++)
        if (level.points[d] > 0 && level.stride[d] != below.stride[d])
            hand_on(steps, &level, d, below.points[d] > 0);
}

static void emit(const struct pattern_plan *plan, struct steps *steps)
{
    uint32_t side = plan->problem->size[0];
    unsigned finest = kernel_log2(side);
    struct kernel_grid grid = grid_of(plan->n, steps->rank);

    kernel_work(steps, PER_POINT * side * side * side);
    steps_next(steps);
    for (unsigned number = finest - 1; number >= 1; number--)
        exchange_level(steps, &grid, number, 1);
    exchange_level(steps, &grid, 1, 1);
    for (unsigned number = 2; number <= finest; number++) {
        take_in(steps, &grid, number);
        exchange_level(steps, &grid, number, number < finest ? 2 : 3);
    }
}

/* Return the maximum number of ranks: each rank has at least one point. */
static uint64_t most(const struct kernel_problem *problem)
{
    uint64_t side = problem->size[0];

    return side * side * side;
}

const struct pattern_kind kind_nas_mg = {
    KERNEL,
    .emit = {emit},
    .kernel.problems = {{{32}, 4}, {{128}, 4}, {{256}, 4}, {{256}, 20}, {{512}, 20}, {{1024}, 50}},
    .kernel.most = most,
};
