/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Broadcast from rank 0 to all ranks, and the barrier.
 */
#include "collective.h"

#define PIPELINE_BYTES UINT64_C(16384) /* piece size: eleven full frames of Ethernet */

static struct piece pipeline_piece(uint64_t number, uint64_t bytes)
{
    uint64_t at = number * PIPELINE_BYTES;

    return (struct piece){at, bytes - at < PIPELINE_BYTES ? bytes - at : PIPELINE_BYTES};
}

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

/* Van de Geijn's: scatter down the tree, then gather around a ring (Thakur 2005, broadcast). */
static void emit_scatter_allgather(const struct pattern_plan *plan, struct steps *steps)
{
    struct partition parts = partition_split((struct piece){0, plan->bytes}, plan->n, 1);

    hold_message(plan, steps);
    tree_down(steps, &parts, (struct piece){0, plan->bytes});
    gather_ring(steps, &parts, 0);
}

/* Pipeline along a chain of ranks: one piece arrives while the piece before goes on. */
static void emit_pipeline(const struct pattern_plan *plan, struct steps *steps)
{
    uint32_t rank = steps->rank;
    uint64_t bytes = plan->bytes;
    uint64_t pieces = bytes > PIPELINE_BYTES ? (bytes - 1) / PIPELINE_BYTES + 1 : 1;
    bool last = rank + 1 == plan->n;
    uint64_t late = rank > 0; /* steps between a piece's arrival and its sending */

    hold_message(plan, steps);
    for (uint64_t i = 0; i < pieces + late; i++) {
        if (rank > 0 && i < pieces)
            steps_receive(steps, rank - 1, pipeline_piece(i, bytes));
        if (!last && i >= late)
            steps_send(steps, rank + 1, pipeline_piece(i - late, bytes));
        steps_next(steps);
    }
}

const struct pattern_kind kind_bcast = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"binomial", "scatter-allgather", "pipeline"},
    .emit = {emit_binomial, emit_scatter_allgather, emit_pipeline},
};

/* Hensgen, Finkel, Manber 1988. */
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
