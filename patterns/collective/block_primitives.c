/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks that only move data, and the tree.
 */
#include "collective.h"

/* The bit by which a rank knows its parent; above all ranks for the root. */
static uint32_t lowest_bit(const struct steps *steps)
{
    uint32_t bit = 1;

    while (bit < steps->n && (steps->rank & bit) == 0)
        bit *= 2;
    return bit;
}

void tree_down(struct steps *steps, const struct partition *parts, struct piece whole)
{
    uint32_t rank = steps->rank, n = steps->n;
    uint32_t bit = lowest_bit(steps);

    if (rank > 0) {
        uint32_t end = rank + bit < n ? rank + bit : n;

        steps_receive(steps, rank - bit, parts != NULL ? partition_range(parts, rank, end) : whole);
        steps_next(steps);
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        uint32_t child = rank + bit, end = child + bit < n ? child + bit : n;

        if (child >= n)
            continue;
        steps_send(steps, child, parts != NULL ? partition_range(parts, child, end) : whole);
        steps_next(steps);
    }
}

void tree_up(struct steps *steps, struct sum *sum, uint64_t bytes)
{
    uint32_t rank = steps->rank;
    uint32_t parent_bit = lowest_bit(steps);
    struct piece whole = {0, bytes};

    for (uint32_t bit = 1; bit < parent_bit; bit *= 2) {
        if (rank + bit >= steps->n)
            continue;
        sum_add(steps, sum, rank + bit, whole);
        steps_next(steps);
    }
    if (rank > 0)
        sum_send(steps, sum, rank - parent_bit, whole);
    steps_next(steps);
}

void gather_ring(struct steps *steps, const struct partition *parts, uint32_t ahead)
{
    uint32_t n = steps->n;
    uint32_t next = (steps->rank + 1) % n, last = (steps->rank + n - 1) % n;
    uint32_t own = (steps->rank + ahead) % n;

    for (uint32_t i = 1; i < n; i++) {
        uint32_t new = own > 0 ? own - 1 : n - 1;

        steps_swap(steps, next, partition_piece(parts, own), last, partition_piece(parts, new));
        own = new;
    }
}

uint32_t swap_part(const struct steps *steps, const struct swap *swap, uint32_t other)
{
    return swap->out.skew > 0 ? (steps->rank + other) % steps->n : other;
}

static void swap_own(struct steps *steps, const struct swap *swap)
{
    uint32_t part = swap_part(steps, swap, steps->rank);

    steps_copy(steps, partition_piece(&swap->in, part), partition_piece(&swap->out, part).at);
}

static void swap_send(struct steps *steps, const struct swap *swap, uint32_t distance)
{
    uint32_t to = (steps->rank + distance) % steps->n;

    steps_send(steps, to, partition_piece(&swap->out, swap_part(steps, swap, to)));
}

static void swap_receive(struct steps *steps, const struct swap *swap, uint32_t distance)
{
    uint32_t from = (steps->rank + steps->n - distance) % steps->n;

    steps_receive(steps, from, partition_piece(&swap->in, swap_part(steps, swap, from)));
}

void swap_linear(struct steps *steps, const struct swap *swap)
{
    for (uint32_t distance = 1; distance < steps->n; distance++)
        swap_receive(steps, swap, distance);
    for (uint32_t distance = 1; distance < steps->n; distance++)
        swap_send(steps, swap, distance);
    swap_own(steps, swap);
    steps_next(steps);
}

void swap_pairwise(struct steps *steps, const struct swap *swap)
{
    for (uint32_t distance = 1; distance < steps->n; distance++) {
        swap_send(steps, swap, distance);
        swap_receive(steps, swap, distance);
        if (distance == 1)
            swap_own(steps, swap);
        steps_next(steps);
    }
}
