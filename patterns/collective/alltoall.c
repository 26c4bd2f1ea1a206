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

/* Copy the parts whose number has `bit`, in runs of `bit`, between their places in `turned` and
 * adjacent places from `packed` on. Returns their bytes. */
enum packing { PACK, UNPACK };

static uint64_t repack(struct steps *steps, const struct partition *turned, uint32_t bit,
                       struct piece packed, enum packing packing)
{
    uint64_t used = 0;

    for (uint32_t first = bit; first < turned->n; first += 2 * bit) {
        uint32_t end = first + bit < turned->n ? first + bit : turned->n;
        struct piece run = partition_range(turned, first, end);
        struct piece place = {packed.at + used, run.bytes};

        if (packing == PACK)
            steps_copy(steps, place, run.at);
        else
            steps_copy(steps, run, place.at);
        used += run.bytes;
    }
    return used;
}

/* Return how many numbers from 0 to n - 1 have the bit. */
static uint32_t with_bit(uint32_t n, uint32_t bit)
{
    uint32_t over = n % (2 * bit);

    return n / (2 * bit) * bit + (over > bit ? over - bit : 0);
}

/* Bruck 1997: the parts are rotated so that part i is for the rank i ahead; parts with bit k of
 * i go 2^k ahead in round k. Packed parts are stored where the result will be: at most n / 2 per
 * direction. */
static void emit_bruck(const struct pattern_plan *plan, struct steps *steps)
{
    struct swap swap = begin(plan, steps);
    uint32_t n = plan->n, rank = steps->rank;
    struct partition turned = swap.out;
    struct piece packed = {.at = swap.in.at}, arrived = {.at = swap.in.at + n / 2 * plan->bytes};

    turned.at = 2 * n * plan->bytes;
    steps_copy(steps, partition_range(&turned, 0, n - rank), partition_piece(&swap.out, rank).at);
    steps_copy(steps, partition_range(&turned, n - rank, n), swap.out.at);
    for (uint32_t bit = 1; bit < n; bit *= 2) {
        packed.bytes = arrived.bytes = with_bit(n, bit) * plan->bytes;
        repack(steps, &turned, bit, packed, PACK);
        steps_next(steps);
        steps_send(steps, (rank + bit) % n, packed);
        steps_receive(steps, (rank + n - bit) % n, arrived);
        repack(steps, &turned, bit, arrived, UNPACK);
    }
    for (uint32_t i = 0; i < n; i++)
        steps_copy(steps, partition_piece(&swap.in, (rank + n - i) % n),
                   partition_piece(&turned, i).at);
}

const struct pattern_kind kind_alltoall = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"linear", "pairwise", "bruck"},
    .emit = {emit_linear, emit_pairwise, emit_bruck},
};

const struct pattern_kind kind_alltoallv = {
    .knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_ALGORITHM,
    .algorithms = {"linear", "pairwise"},
    .emit = {emit_linear, emit_pairwise},
};
