/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building blocks of collective functions and application kernels. Each block emits its steps for
 * one rank of a group (steps.h) and ends its last step. Sources are named at the algorithms and in
 * doc/reference/patterns.md. Most are from Thakur, Rabenseifner, Gropp, Optimization of Collective
 * Communication Operations in MPICH, IJHPCA 19(1), 2005 ("Thakur 2005" below).
 */
#ifndef PATTERNS_COLLECTIVE_H
#define PATTERNS_COLLECTIVE_H

#include "kind.h"
#include "steps.h"

/* --- a buffer in parts ---------------------------------------------------------------------- */

struct partition {
    uint64_t at;
    uint64_t bytes; /* split: total; else of a part */
    uint32_t n;
    uint32_t unit; /* split: size of the whole units that are divided evenly; else 0 */
};

struct partition partition_split(struct piece whole, uint32_t n, uint32_t unit);
struct partition partition_each(struct piece first, uint32_t n);
/* Return the adjacent parts `first` to `end` - 1 of a buffer as one piece. */
struct piece partition_range(const struct partition *parts, uint32_t first, uint32_t end);
struct piece partition_piece(const struct partition *parts, uint32_t number);

/* --- rank counts that are no power of two --------------------------------------------------- */

/* Fold of n ranks onto `power` members, the largest power of two up to n, which run an algorithm.
 * Of the first 2 x rest ranks, each even rank passes its data to the next odd rank before and gets
 * the result afterwards (Thakur 2005). */
struct power_of_two_fold {
    uint32_t power;
    uint32_t rest; /* ranks - power */
};
#define FOLD_OUT UINT32_MAX

struct power_of_two_fold fold_of(uint32_t n);
uint32_t fold_member(const struct power_of_two_fold *fold,
                     uint32_t rank); /* FOLD_OUT for a rank that passes its data on */
uint32_t fold_rank(const struct power_of_two_fold *fold, uint32_t member);
/* Return the first rank whose data a member of a fold holds; n for the number `power`, which is
 * behind the last member. */
uint32_t fold_first(const struct power_of_two_fold *fold, uint32_t member);

/* Members of an algorithm for a power of two of ranks, and the parts of their data. */
struct halves {
    struct power_of_two_fold fold;
    struct partition parts;
    bool by_rank; /* one part per rank; else one part per member */
};

/* --- sums ----------------------------------------------------------------------------------- */

/* Vector of floats in a rank's memory that becomes a sum over ranks. The rank's own values stay at
 * `input`; the sum is at `result`. The first vector that arrives is received at `result`, so that
 * nothing is copied; later ones at `spare`. Pieces are relative to the vector. */
struct sum {
    uint64_t input;
    uint64_t result;
    uint64_t spare;
    bool begun;
};

void sum_send(struct steps *steps, const struct sum *sum, uint32_t to, struct piece piece);
void sum_add(struct steps *steps, struct sum *sum, uint32_t from, struct piece piece);
/* Emit the steps before and after the algorithm of a fold: before it, the even ranks' vectors are
 * added to their neighbours'; after it, the even ranks get `piece` of the result. */
void sum_fold_in(struct steps *steps, struct sum *sum, const struct power_of_two_fold *fold,
                 struct piece whole);
void sum_fold_out(struct steps *steps, const struct sum *sum, const struct power_of_two_fold *fold,
                  struct piece piece);
/* Emit recursive halving (a reduce-scatter), after which each member has the sum of its part. To be
 * called for members of the fold only. */
void sum_halve(struct steps *steps, struct sum *sum, const struct halves *halves);

/* --- blocks --------------------------------------------------------------------------------- */

/* Emit a broadcast (`parts` NULL) or a scatter from rank 0 down a binomial tree. In a scatter each
 * rank gets the parts of its subtree. */
void tree_down(struct steps *steps, const struct partition *parts, struct piece whole);
void tree_up(struct steps *steps, struct sum *sum, uint64_t bytes);

/* Emit an allgather in which the parts travel around a ring of all ranks; rank r begins with part r
 * + `ahead`. */
void gather_ring(struct steps *steps, const struct partition *parts, uint32_t ahead);
/* Emit recursive doubling, which gathers all parts at all members. To be called for members of the
 * fold only. */
void gather_double(struct steps *steps, const struct halves *halves);

void allreduce_double(struct steps *steps, struct sum *sum, uint64_t bytes);

/* Buffers of an all-to-all exchange: part d of `out` goes to rank d, and the part from rank s is
 * stored as part s of `in`. The rank's own part is copied. All other parts are exchanged in one
 * step (swap_linear), or with one partner per direction in each step. */
struct swap {
    struct partition out;
    struct partition in;
};
void swap_own(struct steps *steps, const struct swap *swap);
void swap_send(struct steps *steps, const struct swap *swap, uint32_t distance);
void swap_receive(struct steps *steps, const struct swap *swap, uint32_t distance);
void swap_linear(struct steps *steps, const struct swap *swap);

#endif
