/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NAS BT and SP: alternating directions on a multi-partition: p x p ranks have p cells each, so
 * that every rank works at each stage of a sweep. An iteration exchanges the cells' faces with six
 * neighbours, then solves along x, y and z, each forward and back in p stages. They differ in what
 * a stage hands on.
 */
#include "kernel.h"

#define FACE_DOUBLES 10u /* two layers of five variables */

struct sweep_size {
    uint32_t forward, back; /* doubles for each point of a cell's face */
    bool padded; /* BT sends its buffer, for the largest cell and one point more a side */
    double cube, square, line, constant; /* operations of an iteration, NPB's own count */
};

static const struct sweep_size bt_size = {30, 5, true, 3478.8, -17655.7, 28023.7, 0};
static const struct sweep_size sp_size = {22, 10, false, 881.174, -4683.91, 11484.5, -19272.4};

struct adi {
    uint32_t p;
    uint32_t next[3], last[3]; /* ranks by direction */
    uint64_t face;             /* bytes of all cells' faces in a direction */
    uint64_t forward, back;    /* bytes of a stage's message */
    double stage;              /* operations of a stage */
};

/* NPB 2.0, make_set: the third direction runs along the diagonal. */
static void find_neighbours(struct adi *adi, uint32_t rank)
{
    const uint32_t ranks[3] = {adi->p, adi->p, 1};
    struct kernel_grid grid = kernel_grid_of(rank, ranks), above, below;

    for (unsigned d = 0; d < 2; d++) {
        adi->next[d] = kernel_at(&grid, d, 1);
        adi->last[d] = kernel_at(&grid, d, -1);
    }
    above = kernel_grid_of(adi->next[1], ranks);
    below = kernel_grid_of(adi->last[1], ranks);
    adi->next[2] = kernel_at(&above, 0, -1);
    adi->last[2] = kernel_at(&below, 0, 1);
}

static struct adi adi_of(const struct pattern_plan *plan, uint32_t rank,
                         const struct sweep_size *size)
{
    uint32_t side = kernel_problem_of(plan)->size[0];
    double n = side;
    struct adi adi = {.p = 1};
    uint64_t cell, sent;

    while (adi.p * adi.p < plan->n)
        adi.p++;
    find_neighbours(&adi, rank);
    cell = (side + adi.p - 1) / adi.p;
    sent = size->padded ? side / adi.p + 1 : cell;
    adi.face = (adi.p - 1) * cell * cell * FACE_DOUBLES * KERNEL_DOUBLE;
    adi.forward = sent * sent * size->forward * KERNEL_DOUBLE;
    adi.back = sent * sent * size->back * KERNEL_DOUBLE;
    adi.stage =
        (((size->cube * n + size->square) * n + size->line) * n + size->constant) / (6.0 * adi.p);
    return adi;
}

static void exchange_faces(struct steps *steps, const struct adi *adi)
{
    for (unsigned d = 0; d < 3; d++) {
        uint64_t out = 2 * d * adi->face, in = (6 + 2 * d) * adi->face;

        steps_send(steps, adi->next[d], (struct piece){out, adi->face});
        steps_send(steps, adi->last[d], (struct piece){out + adi->face, adi->face});
        steps_receive(steps, adi->last[d], (struct piece){in, adi->face});
        steps_receive(steps, adi->next[d], (struct piece){in + adi->face, adi->face});
    }
    steps_next(steps);
}

/* Stages of a sweep: between two a message to the next rank. */
static void sweep(struct steps *steps, const struct adi *adi, uint32_t to, uint32_t from,
                  uint64_t bytes)
{
    for (uint32_t stage = 0; stage < adi->p; stage++) {
        if (stage > 0) {
            steps_send(steps, to, (struct piece){0, bytes});
            steps_receive(steps, from, (struct piece){bytes, bytes});
        }
        kernel_work(steps, adi->stage);
        steps_next(steps);
    }
}

static void tell(const struct pattern_plan *plan, struct steps *steps,
                 const struct sweep_size *size)
{
    struct adi adi = adi_of(plan, steps->rank, size);

    exchange_faces(steps, &adi);
    for (unsigned d = 0; d < 3; d++) {
        sweep(steps, &adi, adi.next[d], adi.last[d], adi.forward);
        sweep(steps, &adi, adi.last[d], adi.next[d], adi.back);
    }
}

static void tell_bt(const struct pattern_plan *plan, uint32_t phase, struct steps *steps)
{
    (void)phase;
    tell(plan, steps, &bt_size);
}

static void tell_sp(const struct pattern_plan *plan, uint32_t phase, struct steps *steps)
{
    (void)phase;
    tell(plan, steps, &sp_size);
}

#define LEAST 3u /* points of a cell's side */

static const struct kernel bt = {
    .name = "nas_bt",
    .problems = {{{12}, 60}, {{24}, 200}, {{64}, 200}, {{102}, 200}, {{162}, 200}, {{408}, 250}},
    .least = LEAST,
    .ranks = RANKS_SQUARE,
    .tell = tell_bt,
};

static const struct kernel sp = {
    .name = "nas_sp",
    .problems = {{{12}, 100}, {{36}, 400}, {{64}, 400}, {{102}, 400}, {{162}, 400}, {{408}, 500}},
    .least = LEAST,
    .ranks = RANKS_SQUARE,
    .tell = tell_sp,
};

const struct pattern_kind pattern_nas_bt = {
    .knows = PATTERN_PARAM_CLASS, .kernel = &bt, .make = kernel_make, .phase_name = kernel_name};

const struct pattern_kind pattern_nas_sp = {
    .knows = PATTERN_PARAM_CLASS, .kernel = &sp, .make = kernel_make, .phase_name = kernel_name};
