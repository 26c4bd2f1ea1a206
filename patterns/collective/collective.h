/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What collective functions and application kernels are made of. Each block emits its steps of one
 * rank of a group (steps.h) and ends its last step. Sources are named at the algorithms
 * and in doc/reference/patterns.md; those with most of them: Thakur, Rabenseifner, Gropp,
 * Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005 ("Thakur 2005"
 * below).
 */
#ifndef PATTERNS_COLLECTIVE_H
#define PATTERNS_COLLECTIVE_H

#include "kind.h"
#include "steps.h"

/* --- a buffer in parts ---------------------------------------------------------------------- */

struct partition {
    uint64_t at;
    uint64_t bytes; /* split: of all; else of a part, on average */
    uint32_t n;
    uint32_t unit; /* split: into whole units of so many bytes, as evenly as possible; else 0 */
    uint32_t skew; /* percent: sizes rise evenly from bytes - skew to bytes + skew */
};

struct partition partition_split(struct piece whole, uint32_t n, uint32_t unit);
struct partition partition_each(struct piece first, uint32_t n, uint32_t skew);
/* The parts numbered `first` to end - 1, which lie one after the other. */
struct piece partition_range(const struct partition *parts, uint32_t first, uint32_t end);
struct piece partition_piece(const struct partition *parts, uint32_t number);

/* --- numbers of ranks that are no power of two ---------------------------------------------- */

/* The largest power of two of members goes through an algorithm. Of the first 2 x rest ranks the
 * even ones hand over to the odd ones beside them and get the result afterwards (Thakur 2005).
 */
struct power_of_two_fold {
    uint32_t power;
    uint32_t rest; /* ranks - power */
};
#define FOLD_OUT UINT32_MAX

struct power_of_two_fold fold_of(uint32_t n);
uint32_t fold_member(const struct power_of_two_fold *fold,
                     uint32_t rank); /* FOLD_OUT: it hands over */
uint32_t fold_rank(const struct power_of_two_fold *fold, uint32_t member);
/* The first rank that is gathered in a member; of member `power`: n. */
uint32_t fold_first(const struct power_of_two_fold *fold, uint32_t member);

/* Who goes through an algorithm of powers of two, and the parts of its data. */
struct halves {
    struct power_of_two_fold fold;
    struct partition parts;
    bool by_rank; /* a part a rank; else a part a member */
};

/* --- sums ----------------------------------------------------------------------------------- */

/* A vector of floats on its way to a sum: the rank's own values stay at `input`; what is added
 * appears at `result`. The first that arrives is received right there, so that nothing is copied;
 * later ones at `spare`. Pieces are relative to the vector. */
struct sum {
    uint64_t input;
    uint64_t result;
    uint64_t spare;
    bool begun;
};

void sum_send(struct steps *steps, const struct sum *sum, uint32_t to, struct piece piece);
void sum_add(struct steps *steps, struct sum *sum, uint32_t from, struct piece piece);
/* The two steps around a fold: before it the even ranks' vectors are added, after it they get
 * `piece` of the result. */
void sum_fold_in(struct steps *steps, struct sum *sum, const struct power_of_two_fold *fold,
                 struct piece whole);
void sum_fold_out(struct steps *steps, const struct sum *sum, const struct power_of_two_fold *fold,
                  struct piece piece);
/* Recursive halving: afterwards a member has the sum of its part. For members alone. */
void sum_halve(struct steps *steps, struct sum *sum, const struct halves *halves);

/* --- blocks --------------------------------------------------------------------------------- */

/* Of a tree whose children are bits above the parent's lowest: each gets its subtree's parts, or,
 * where `parts` is NULL, the whole. */
void tree_down(struct steps *steps, const struct partition *parts, struct piece whole);
void tree_up(struct steps *steps, struct sum *sum, uint64_t bytes);

/* All parts to all ranks around a ring; rank r begins with the part r + `ahead`. */
void gather_ring(struct steps *steps, const struct partition *parts, uint32_t ahead);
/* Recursive doubling: all parts to all members. For members alone. */
void gather_double(struct steps *steps, const struct halves *halves);

void allreduce_double(struct steps *steps, struct sum *sum, uint64_t bytes);

/* Part d of `out` goes to rank d, what rank s has for this one comes to part s of `in`; skewed
 * parts are numbered (rank + other) modulo n, so that both ends agree. All at once, or one partner
 * each way in a step. The rank's own part is copied. */
struct swap {
    struct partition out;
    struct partition in;
};
uint32_t swap_part(const struct steps *steps, const struct swap *swap, uint32_t other);
void swap_own(struct steps *steps, const struct swap *swap);
void swap_send(struct steps *steps, const struct swap *swap, uint32_t distance);
void swap_receive(struct steps *steps, const struct swap *swap, uint32_t distance);
void swap_linear(struct steps *steps, const struct swap *swap);

#endif
