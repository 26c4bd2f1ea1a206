/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective.h"

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

/* From the second round on a received piece waits where the half lies that was given up in the
 * first, if that is large enough: with few elements it may be the smaller one. */
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
