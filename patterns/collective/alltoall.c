/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All-to-all: from each rank a part for each other rank.
 */
#include "collective.h"

static struct swap begin(const struct pattern_plan *plan, struct steps *steps)
{
    struct swap swap = {.out = partition_each((struct piece){0, plan->bytes}, plan->n)};

    swap.in = swap.out;
    swap.in.at = plan->n * plan->bytes;
    for (uint32_t other = 0; other < steps->n; other++) {
        steps_hold(steps, &(struct content){.time = STEPS_INPUT,
                                            .piece = partition_piece(&swap.out, other),
                                            .source = steps->rank,
                                            .target = other});
        steps_hold(steps, &(struct content){.time = STEPS_RESULT,
                                            .piece = partition_piece(&swap.in, other),
                                            .source = other,
                                            .target = steps->rank});
    }
    return swap;
}

static void emit_linear(const struct pattern_plan *plan, struct steps *steps)
{
    struct swap swap = begin(plan, steps);

    swap_linear(steps, &swap);
}

static void emit_pairwise(const struct pattern_plan *plan, struct steps *steps)
{
    struct swap swap = begin(plan, steps);

    for (uint32_t distance = 1; distance < steps->n; distance++) {
        swap_send(steps, &swap, distance);
        swap_receive(steps, &swap, distance);
        if (distance == 1)
            swap_own(steps, &swap);
        steps_next(steps);
    }
}

const struct pattern_kind kind_alltoall = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"linear", "pairwise"},
    .emit = {emit_linear, emit_pairwise},
};

const struct pattern_kind kind_alltoallv = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"linear", "pairwise"},
    .emit = {emit_linear, emit_pairwise},
};
