/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums at rank 0 and at all ranks. The rank's vector stays in place, the result is behind it.
 */
#include "collective.h"

static struct sum begin(const struct pattern_plan *plan, struct steps *steps)
{
    uint64_t bytes = plan->bytes;

    steps_hold(steps, &(struct content){.time = STEPS_INPUT,
                                        .piece = {0, bytes},
                                        .source = steps->rank,
                                        .floats = true});
    return (struct sum){.input = 0, .result = bytes, .spare = 2 * bytes};
}

/* Declare that a piece of the sum over all ranks is in memory from `at` on, after a repetition. */
static void hold_sum(struct steps *steps, uint64_t at, struct piece piece)
{
    steps_hold(steps, &(struct content){.time = STEPS_RESULT,
                                        .piece = {at, piece.bytes},
                                        .source = SCHEDULE_SUM,
                                        .offset = piece.at,
                                        .floats = true});
}

static void emit_reduce(const struct pattern_plan *plan, struct steps *steps)
{
    struct sum sum = begin(plan, steps);

    tree_up(steps, &sum, plan->bytes);
    if (steps->rank == 0)
        hold_sum(steps, sum.result, (struct piece){0, plan->bytes});
}

const struct pattern_kind kind_reduce = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"binomial"},
    .emit = {emit_reduce},
    .floats = true,
};

static void emit_doubling(const struct pattern_plan *plan, struct steps *steps)
{
    struct sum sum = begin(plan, steps);

    allreduce_double(steps, &sum, plan->bytes);
    hold_sum(steps, sum.result, (struct piece){0, plan->bytes});
}

/* Emit the first half of a ring allreduce: each part travels around the ring, and each rank adds
 * its own values. Afterwards the sums travel around the ring (Patarasuk, Yuan: Bandwidth Optimal
 * All-reduce Algorithms, JPDC 69(2), 2009). */
static void add_ring(struct steps *steps, struct sum sum, const struct partition *parts)
{
    uint32_t n = steps->n, part = steps->rank;
    uint32_t next = (part + 1) % n, last = (part + n - 1) % n;

    for (uint32_t i = 1; i < n; i++) {
        struct sum fresh = sum; /* nothing has been added to this part here */

        sum.begun = i > 1;
        sum_send(steps, &sum, next, partition_piece(parts, part));
        part = part > 0 ? part - 1 : n - 1;
        fresh.begun = false;
        sum_add(steps, &fresh, last, partition_piece(parts, part));
        steps_next(steps);
    }
}

static void emit_ring(const struct pattern_plan *plan, struct steps *steps)
{
    struct sum sum = begin(plan, steps);
    struct partition parts =
        partition_split((struct piece){0, plan->bytes}, plan->n, sizeof(float));

    add_ring(steps, sum, &parts);
    parts.at = sum.result;
    gather_ring(steps, &parts, 1);
    hold_sum(steps, sum.result, (struct piece){0, plan->bytes});
}

/* Emit Rabenseifner's allreduce: recursive halving, then recursive doubling (Thakur 2005,
 * allreduce). */
static void emit_rabenseifner(const struct pattern_plan *plan, struct steps *steps)
{
    struct sum sum = begin(plan, steps);
    struct piece whole = {0, plan->bytes};
    struct halves halves = {.fold = fold_of(plan->n)};

    halves.parts = partition_split(whole, halves.fold.power, sizeof(float));
    sum_fold_in(steps, &sum, &halves.fold, whole);
    if (fold_member(&halves.fold, steps->rank) != FOLD_OUT) {
        sum_halve(steps, &sum, &halves);
        halves.parts.at = sum.result;
        gather_double(steps, &halves);
    }
    sum_fold_out(steps, &sum, &halves.fold, whole);
    hold_sum(steps, sum.result, whole);
}

const struct pattern_kind kind_allreduce = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"recursive-doubling", "ring", "rabenseifner"},
    .emit = {emit_doubling, emit_ring, emit_rabenseifner},
    .floats = true,
};

/* --- one part of the sum per rank ----------------------------------------------------------- */

static void emit_halving(const struct pattern_plan *plan, struct steps *steps)
{
    struct sum sum = begin(plan, steps);
    struct piece whole = {0, plan->bytes};
    struct halves halves = {.fold = fold_of(plan->n), .by_rank = true};
    struct piece own;

    halves.parts = partition_split(whole, plan->n, sizeof(float));
    own = partition_piece(&halves.parts, steps->rank);
    sum_fold_in(steps, &sum, &halves.fold, whole);
    if (fold_member(&halves.fold, steps->rank) != FOLD_OUT)
        sum_halve(steps, &sum, &halves);
    sum_fold_out(steps, &sum, &halves.fold, partition_piece(&halves.parts, steps->rank / 2 * 2));
    hold_sum(steps, sum.result + own.at, own);
}

/* Emit the pairwise reduce-scatter: in each step the rank sends one other rank's part directly to
 * this rank (Thakur 2005, reduce-scatter). The memory holds no part of the sum except the rank's
 * own. */
static void emit_pairwise(const struct pattern_plan *plan, struct steps *steps)
{
    struct sum whole = begin(plan, steps);
    uint32_t n = plan->n, rank = steps->rank;
    struct partition parts = partition_split((struct piece){0, plan->bytes}, n, sizeof(float));
    struct piece own = partition_piece(&parts, rank);
    struct sum sum = {.input = own.at, .result = whole.result, .spare = whole.result + own.bytes};

    for (uint32_t distance = 1; distance < n; distance++) {
        uint32_t to = (rank + distance) % n;

        steps_send(steps, to, partition_piece(&parts, to));
        sum_add(steps, &sum, (rank + n - distance) % n, (struct piece){0, own.bytes});
        steps_next(steps);
    }
    hold_sum(steps, sum.result, own);
}

const struct pattern_kind kind_reduce_scatter = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"recursive-halving", "pairwise"},
    .emit = {emit_halving, emit_pairwise},
    .floats = true,
};
