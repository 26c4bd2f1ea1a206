/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The swap-or-not shuffle (Hoang, Morris, Rogaway: An Enciphering Scheme Based on a Card Shuffle,
 * CRYPTO 2012). A round pairs every x with k - x (mod n) and swaps each pair or not by one random
 * bit. It takes any n as it is (a Feistel network needs a power of four and walks cycles for the
 * rest) and reaches odd permutations as well as even ones, which matters for small n. A round is
 * its own inverse, so the inverse permutation runs the same rounds backwards.
 */
#include "permutation.h"

/* The paper's theorem 2 bounds how well q queries distinguish r rounds from a uniform shuffle of n:
 * 2 n^1.5 / (r + 2) * ((n + q) / 2n)^(r / 2 + 1). A flow needs two queries: the position of a rank,
 * and the rank beside it. 64 rounds at the largest n, 2^16, leave 6e-5. The tests' statistics need
 * a quarter of these rounds. */
#define ROUNDS 64u

#define GOLDEN_RATIO UINT64_C(0x9e3779b97f4a7c15)

/* SplitMix64's finalizer (Stafford's variant 13): every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t random_word(uint64_t seed, uint64_t stream)
{
    return mix(mix(seed + GOLDEN_RATIO) + GOLDEN_RATIO * (stream + 1));
}

struct permutation permutation_draw(uint32_t n, uint64_t seed, uint64_t stream)
{
    return (struct permutation){.key = random_word(seed, stream), .n = n};
}

/* Random numbers of one round of the shuffle: the sum that makes the pairs, and the factors of a
 * hash that gives one bit per pair (multiply-shift, Dietzfelbinger 1996). The bits are pairwise
 * independent, as two queries need. */
struct round {
    uint32_t sum; /* of the two of a pair, modulo n */
    uint64_t multiplier;
    uint64_t addend;
};

static inline struct round draw_round(const struct permutation *permutation, uint32_t round)
{
    uint64_t first = mix(permutation->key + GOLDEN_RATIO * (2 * round + 1));

    return (struct round){
        /* Lemire's range reduction: the high half times n, shifted down, is uniform below n. */
        .sum = (uint32_t)(((first >> 32) * permutation->n) >> 32),
        .multiplier = mix(permutation->key + GOLDEN_RATIO * (2 * round + 2)),
        .addend = first << 32,
    };
}

/* Return the element that a round moves to the place of `x`. A chain of rounds spends its time
 * here, because each round needs the result of the round before; the random numbers of `round` do
 * not, and cost little. */
static inline uint32_t swap_or_not(const struct round *round, uint32_t n, uint32_t x)
{
    uint32_t partner = round->sum >= x ? round->sum - x : round->sum + n - x;
    uint32_t pair = x > partner ? x : partner;

    return (round->multiplier * pair + round->addend) >> 63 ? partner : x;
}

uint32_t permutation_at(const struct permutation *permutation, uint32_t position)
{
    uint32_t x = position;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct round round = draw_round(permutation, i);

        x = swap_or_not(&round, permutation->n, x);
    }
    return x;
}

uint32_t permutation_position(const struct permutation *permutation, uint32_t element)
{
    uint32_t x = element;

    for (uint32_t i = ROUNDS; i-- > 0;) {
        struct round round = draw_round(permutation, i);

        x = swap_or_not(&round, permutation->n, x);
    }
    return x;
}
