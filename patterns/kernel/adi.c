/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NAS BT and SP: alternating directions on a multi-partition. p x p ranks have p cells each, so
 * that every rank works at each stage of a sweep. An iteration exchanges the cells' faces with six
 * neighbours, then solves along x, y and z, each forward and back in p stages. BT and SP differ in
 * the data that a stage passes on. NPB 3.4, BT and SP: make_set.f90, define.f90 (SP),
 * copy_faces.f90, x_solve.f90.
 */
#include "kernel.h"

#define FACE_DOUBLES 10u /* two layers of five variables */

struct sweep_size {
    uint32_t forward, back; /* doubles per point of a cell's face */
    bool padded; /* BT sends its buffer of N/p + 1 points per side; SP the inner points of a cell */
    double cube, square, line, constant; /* operations of an iteration, as NPB counts them */
};

static const struct sweep_size bt_size = {30, 5, true, 3478.8, -17655.7, 28023.7, 0};
static const struct sweep_size sp_size = {22, 10, false, 881.174, -4683.91, 11484.5, -19272.4};

struct adi {
    uint32_t side;
    uint32_t p;
    uint32_t x, y;             /* coordinates of the rank's cell with z = 0 */
    uint32_t next[3], last[3]; /* ranks by direction */
    bool padded;
    double stage; /* operations per stage */
};

static uint32_t beside(const struct adi *adi, uint32_t right, uint32_t down)
{
    return (adi->y + down) % adi->p * adi->p + (adi->x + right) % adi->p;
}

static struct adi adi_of(const struct pattern_plan *plan, uint32_t rank,
                         const struct sweep_size *size)
{
    uint32_t side = plan->problem->size[0];
    double n = side;
    struct adi adi = {.side = side, .p = 1, .padded = size->padded};

    while (adi.p * adi.p < plan->n)
        adi.p++;
    /* The third direction runs along the diagonal. */
    const uint32_t right[] = {1, 0, adi.p - 1}, down[] = {0, 1, 1};

    adi.x = rank % adi.p;
    adi.y = rank / adi.p;
    for (unsigned d = 0; d < 3; d++) {
        adi.next[d] = beside(&adi, right[d], down[d]);
        adi.last[d] = beside(&adi, adi.p - right[d], adi.p - down[d]);
    }
    adi.stage =
        (((size->cube * n + size->square) * n + size->line) * n + size->constant) / (6.0 * adi.p);
    return adi;
}

/* Return the number of points of a cell along one direction; inner points exclude the border of the
 * whole grid. */
static uint64_t points(const struct adi *adi, uint32_t coordinate, bool inner)
{
    uint64_t all = kernel_share(adi->side, adi->p, coordinate);

    return inner ? all - (coordinate == 0) - (coordinate + 1 == adi->p) : all;
}

/* Return the number of points of a cell's face across a direction, for the cell that the rank
 * solves at a stage of a sweep in this direction. The rank's cell number z in the z direction is at
 * x + z, y - z. */
static uint64_t face_points(const struct adi *adi, unsigned direction, uint32_t stage, bool inner)
{
    uint32_t p = adi->p;
    const uint32_t z_at[3] = {(stage + p - adi->x) % p, (adi->y + p - stage) % p, stage};
    uint32_t z = z_at[direction];
    const uint32_t at[3] = {(adi->x + z) % p, (adi->y + p - z) % p, z};

    return points(adi, at[(direction + 1) % 3], inner) *
           points(adi, at[(direction + 2) % 3], inner);
}

/* Emit the exchange of faces: forward from all cells except the last, back from all but the
 * first. */
static void exchange_faces(struct steps *steps, const struct adi *adi)
{
    uint64_t end = 0;

    for (unsigned d = 0; d < 3; d++) {
        uint64_t ahead = 0, back = 0;

        for (uint32_t stage = 0; stage < adi->p; stage++) {
            uint64_t bytes = face_points(adi, d, stage, false) * FACE_DOUBLES * KERNEL_DOUBLE;

            ahead += stage + 1 < adi->p ? bytes : 0;
            back += stage > 0 ? bytes : 0;
        }
        steps_send(steps, adi->next[d], (struct piece){end, ahead});
        steps_send(steps, adi->last[d], (struct piece){end + ahead, back});
        end += ahead + back;
        steps_receive(steps, adi->last[d], (struct piece){end, back});
        steps_receive(steps, adi->next[d], (struct piece){end + back, ahead});
        end += ahead + back;
    }
    steps_next(steps);
}

static struct piece stage_piece(const struct adi *adi, unsigned direction, uint32_t stage,
                                uint64_t doubles)
{
    uint64_t padded = adi->side / adi->p + 1;
    uint64_t count = adi->padded ? padded * padded : face_points(adi, direction, stage, true);

    return (struct piece){0, count * doubles * KERNEL_DOUBLE};
}

/* Emit the stages of a sweep, with a message to the next rank between two stages. */
static void sweep(struct steps *steps, const struct adi *adi, unsigned direction, bool forward,
                  uint64_t doubles)
{
    uint32_t next = adi->next[direction], last = adi->last[direction];

    for (uint32_t i = 0; i < adi->p; i++) {
        uint32_t stage = forward ? i : adi->p - 1 - i;

        if (i > 0) {
            uint32_t done = forward ? stage - 1 : stage + 1;
            struct piece out = stage_piece(adi, direction, done, doubles);
            struct piece in = stage_piece(adi, direction, stage, doubles);

            in.at = out.bytes;
            steps_send(steps, forward ? next : last, out);
            steps_receive(steps, forward ? last : next, in);
        }
        kernel_work(steps, adi->stage);
        steps_next(steps);
    }
}

static void emit(const struct pattern_plan *plan, struct steps *steps)
{
    const struct sweep_size *size = plan->kind == &kind_nas_bt ? &bt_size : &sp_size;
    struct adi adi = adi_of(plan, steps->rank, size);

    exchange_faces(steps, &adi);
    for (unsigned d = 0; d < 3; d++) {
        sweep(steps, &adi, d, true, size->forward);
        sweep(steps, &adi, d, false, size->back);
    }
}

#define LEAST 3u /* minimum points of a cell's side */

const struct pattern_kind kind_nas_bt = {
    KERNEL,
    .emit = {emit},
    .kernel.problems =
        {{{12}, 60}, {{24}, 200}, {{64}, 200}, {{102}, 200}, {{162}, 200}, {{408}, 250}},
    .kernel.least = LEAST,
    .kernel.ranks = RANKS_SQUARE,
};

const struct pattern_kind kind_nas_sp = {
    KERNEL,
    .emit = {emit},
    .kernel.problems =
        {{{12}, 100}, {{36}, 400}, {{64}, 400}, {{102}, 400}, {{162}, 400}, {{408}, 500}},
    .kernel.least = LEAST,
    .kernel.ranks = RANKS_SQUARE,
};
