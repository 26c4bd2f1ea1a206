/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Allgather: each rank's part to all ranks. The rank's own part is in the result from the start.
 */
#include "collective.h"

static void hold_parts(struct steps *steps, const struct partition *parts)
{
    for (uint32_t source = 0; source < steps->n; source++)
        steps_hold_of(steps, source == steps->rank ? STEPS_INPUT : STEPS_RESULT, source,
                      partition_piece(parts, source));
}

static void emit_ring(const struct pattern_plan *plan, struct steps *steps)
{
    struct partition parts = partition_each((struct piece){0, plan->bytes}, plan->n);

    hold_parts(steps, &parts);
    gather_ring(steps, &parts, 0);
}

/* Emit recursive doubling over a fold: before it, an even rank's part goes to the next odd rank;
 * after it, the even rank gets all parts back. */
static void emit_doubling(const struct pattern_plan *plan, struct steps *steps)
{
    struct halves halves = {.fold = fold_of(plan->n), .by_rank = true};
    uint32_t rank = steps->rank;
    bool folded = rank < 2 * halves.fold.rest, hands_over = folded && rank % 2 == 0;
    struct piece all;

    halves.parts = partition_each((struct piece){0, plan->bytes}, plan->n);
    all = partition_range(&halves.parts, 0, plan->n);
    hold_parts(steps, &halves.parts);
    if (hands_over) {
        steps_send(steps, rank + 1, partition_piece(&halves.parts, rank));
        steps_next(steps);
        steps_receive(steps, rank + 1, all);
        return;
    }
    if (folded) {
        steps_receive(steps, rank - 1, partition_piece(&halves.parts, rank - 1));
        steps_next(steps);
    }
    gather_double(steps, &halves);
    if (folded)
        steps_send(steps, rank - 1, all);
}

const struct pattern_kind kind_allgather = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"ring", "recursive-doubling"},
    .emit = {emit_ring, emit_doubling},
};

const struct pattern_kind kind_allgatherv = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"ring"},
    .emit = {emit_ring},
};
