/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building blocks of collective functions: parts of a buffer, rank counts that are no power of two,
 * sums, trees, rings, swaps.
 */
#include "collective.h"

/* --- a buffer in parts ---------------------------------------------------------------------- */

struct partition partition_split(struct piece whole, uint32_t n, uint32_t unit)
{
    return (struct partition){.at = whole.at, .bytes = whole.bytes, .n = n, .unit = unit};
}

struct partition partition_each(struct piece first, uint32_t n)
{
    return (struct partition){.at = first.at, .bytes = first.bytes, .n = n};
}

/* Return how many bytes of a buffer are before its part `number`. */
static uint64_t before(const struct partition *parts, uint32_t number)
{
    uint64_t units = parts->unit > 0 ? parts->bytes / parts->unit : 0;
    uint64_t more = units % parts->n; /* number of parts at the beginning with one more unit */

    if (parts->unit == 0)
        return number * parts->bytes;
    return parts->unit * (number * (units / parts->n) + (number < more ? number : more));
}

struct piece partition_range(const struct partition *parts, uint32_t first, uint32_t end)
{
    uint64_t at = before(parts, first);

    return (struct piece){parts->at + at, before(parts, end) - at};
}

struct piece partition_piece(const struct partition *parts, uint32_t number)
{
    return partition_range(parts, number, number + 1);
}

/* --- rank counts that are no power of two --------------------------------------------------- */

struct power_of_two_fold fold_of(uint32_t n)
{
    struct power_of_two_fold fold = {.power = 1};

    while (fold.power <= n / 2)
        fold.power *= 2;
    fold.rest = n - fold.power;
    return fold;
}

uint32_t fold_member(const struct power_of_two_fold *fold, uint32_t rank)
{
    if (rank >= 2 * fold->rest)
        return rank - fold->rest;
    return rank % 2 == 1 ? rank / 2 : FOLD_OUT;
}

uint32_t fold_rank(const struct power_of_two_fold *fold, uint32_t member)
{
    return member < fold->rest ? 2 * member + 1 : member + fold->rest;
}

uint32_t fold_first(const struct power_of_two_fold *fold, uint32_t member)
{
    return member < fold->rest ? 2 * member : member + fold->rest;
}

/* --- sums ----------------------------------------------------------------------------------- */

static struct piece moved(struct piece piece, uint64_t by)
{
    return (struct piece){piece.at + by, piece.bytes};
}

void sum_send(struct steps *steps, const struct sum *sum, uint32_t to, struct piece piece)
{
    steps_send(steps, to, moved(piece, sum->begun ? sum->result : sum->input));
}

void sum_add(struct steps *steps, struct sum *sum, uint32_t from, struct piece piece)
{
    struct piece total = moved(piece, sum->result);

    if (sum->begun) {
        steps_receive(steps, from, (struct piece){sum->spare, piece.bytes});
        steps_reduce(steps, total, sum->spare);
    } else {
        steps_receive(steps, from, total);
        steps_reduce(steps, total, sum->input + piece.at);
    }
    sum->begun = true;
}

void sum_fold_in(struct steps *steps, struct sum *sum, const struct power_of_two_fold *fold,
                 struct piece whole)
{
    uint32_t rank = steps->rank;

    if (rank >= 2 * fold->rest)
        return;
    if (rank % 2 == 0)
        sum_send(steps, sum, rank + 1, whole);
    else
        sum_add(steps, sum, rank - 1, whole);
    steps_next(steps);
}

void sum_fold_out(struct steps *steps, const struct sum *sum, const struct power_of_two_fold *fold,
                  struct piece piece)
{
    uint32_t rank = steps->rank;

    if (rank >= 2 * fold->rest)
        return;
    if (rank % 2 == 0)
        steps_receive(steps, rank + 1, moved(piece, sum->result));
    else
        sum_send(steps, sum, rank - 1, piece);
    steps_next(steps);
}

static struct piece part_of(const struct halves *halves, uint32_t first, uint32_t end)
{
    if (halves->by_rank)
        return partition_range(&halves->parts, fold_first(&halves->fold, first),
                               fold_first(&halves->fold, end));
    return partition_range(&halves->parts, first, end);
}

/* From the second round on, a received piece is stored where the half that was sent in the first
 * round lies, if this half is large enough: with few elements it may be the smaller half. */
void sum_halve(struct steps *steps, struct sum *sum, const struct halves *halves)
{
    uint32_t member = fold_member(&halves->fold, steps->rank);
    uint32_t first = 0, end = halves->fold.power;
    uint64_t beyond = sum->spare;
    struct piece given_up = {0, 0};

    while (end - first > 1) {
        uint32_t half = (end - first) / 2, middle = first + half;
        uint32_t partner = fold_rank(&halves->fold, member ^ half);
        bool low = (member & half) == 0;
        struct piece keep = low ? part_of(halves, first, middle) : part_of(halves, middle, end);
        struct piece give = low ? part_of(halves, middle, end) : part_of(halves, first, middle);

        sum->spare = given_up.bytes >= keep.bytes ? sum->result + given_up.at : beyond;
        sum_send(steps, sum, partner, give);
        sum_add(steps, sum, partner, keep);
        steps_next(steps);
        if (given_up.bytes == 0)
            given_up = give;
        first = low ? first : middle;
        end = low ? middle : end;
    }
}

void gather_double(struct steps *steps, const struct halves *halves)
{
    uint32_t member = fold_member(&halves->fold, steps->rank);

    for (uint32_t mask = 1; mask < halves->fold.power; mask *= 2) {
        uint32_t partner = fold_rank(&halves->fold, member ^ mask);
        uint32_t own = member & ~(mask - 1);
        uint32_t other = own ^ mask;

        steps_swap(steps, partner, part_of(halves, own, own + mask), partner,
                   part_of(halves, other, other + mask));
    }
}

void allreduce_double(struct steps *steps, struct sum *sum, uint64_t bytes)
{
    struct power_of_two_fold fold = fold_of(steps->n);
    uint32_t member = fold_member(&fold, steps->rank);
    struct piece whole = {0, bytes};

    sum_fold_in(steps, sum, &fold, whole);
    for (uint32_t mask = 1; mask < fold.power && member != FOLD_OUT; mask *= 2) {
        uint32_t partner = fold_rank(&fold, member ^ mask);

        sum_send(steps, sum, partner, whole);
        sum_add(steps, sum, partner, whole);
        steps_next(steps);
    }
    sum_fold_out(steps, sum, &fold, whole);
}

/* --- trees, rings, swaps -------------------------------------------------------------------- */

/* Return the lowest set bit of a rank, which distinguishes the rank from its parent in the tree;
 * for the root, a bit above all ranks. */
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

void swap_own(struct steps *steps, const struct swap *swap)
{
    uint32_t rank = steps->rank;

    steps_copy(steps, partition_piece(&swap->in, rank), partition_piece(&swap->out, rank).at);
}

void swap_send(struct steps *steps, const struct swap *swap, uint32_t distance)
{
    uint32_t to = (steps->rank + distance) % steps->n;

    steps_send(steps, to, partition_piece(&swap->out, to));
}

void swap_receive(struct steps *steps, const struct swap *swap, uint32_t distance)
{
    uint32_t from = (steps->rank + steps->n - distance) % steps->n;

    steps_receive(steps, from, partition_piece(&swap->in, from));
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
