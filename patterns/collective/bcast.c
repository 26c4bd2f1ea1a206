/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Broadcast from rank 0 to all ranks, and the barrier.
 */
#include "collective.h"

static void hold_message(const struct pattern_plan *plan, struct steps *steps)
{
    steps_hold_of(steps, steps->rank == 0 ? STEPS_INPUT : STEPS_RESULT, 0,
                  (struct piece){0, plan->bytes});
}

static void emit_binomial(const struct pattern_plan *plan, struct steps *steps)
{
    hold_message(plan, steps);
    tree_down(steps, NULL, (struct piece){0, plan->bytes});
}

/* Emit van de Geijn's broadcast: a scatter down the tree, then an allgather around a ring (Thakur
 * 2005, broadcast). */
static void emit_scatter_allgather(const struct pattern_plan *plan, struct steps *steps)
{
    struct partition parts = partition_split((struct piece){0, plan->bytes}, plan->n, 1);

    hold_message(plan, steps);
    tree_down(steps, &parts, (struct piece){0, plan->bytes});
    gather_ring(steps, &parts, 0);
}

const struct pattern_kind kind_bcast = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"binomial", "scatter-allgather"},
    .emit = {emit_binomial, emit_scatter_allgather},
};

/* Emit a dissemination barrier (Hensgen, Finkel, Manber 1988). */
static void emit_dissemination(const struct pattern_plan *plan, struct steps *steps)
{
    struct piece nothing = {0, 0};

    for (unsigned round = 0; round < schedule_barrier_rounds(plan->n); round++) {
        steps_swap(steps, schedule_barrier_to(steps->rank, round, plan->n), nothing,
                   schedule_barrier_from(steps->rank, round, plan->n), nothing);
    }
}

const struct pattern_kind kind_barrier = {
    .knows = PATTERN_PARAM_ALGORITHM,
    .algorithms = {"dissemination"},
    .emit = {emit_dissemination},
};
