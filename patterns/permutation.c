/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The swap-or-not shuffle (Hoang, Morris, Rogaway: An Enciphering Scheme Based on a Card Shuffle,
 * CRYPTO 2012). A round pairs every x with k - x (mod n) and swaps each pair or not by one random
 * bit. It takes any n as it is (a Feistel network needs a power of four and walks cycles for the
 * rest) and reaches odd permutations as well as even ones, which matters for small n. A round is
 * its own inverse, so the inverse permutation runs the same rounds backwards.
 */
#include "permutation.h"

/* The paper proves O(log n) rounds mixing; 96 is six times the 16 bits of the largest n. */
#define ROUNDS 96u

#define GOLDEN_RATIO UINT64_C(0x9e3779b97f4a7c15)

/* SplitMix64's finalizer (Stafford's variant 13): every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

struct permutation permutation_draw(uint32_t n, uint64_t seed, uint64_t stream)
{
    uint64_t key = mix(mix(seed + GOLDEN_RATIO) + GOLDEN_RATIO * (stream + 1));

    return (struct permutation){.key = key, .n = n};
}

static inline uint32_t swap_or_not(const struct permutation *permutation, uint32_t round,
                                   uint32_t x)
{
    uint32_t n = permutation->n;
    uint64_t round_key = mix(permutation->key + GOLDEN_RATIO * (round + 1));
    /* Lemire's range reduction: the high half times n, shifted down, is uniform below n. */
    uint32_t k = (uint32_t)(((round_key >> 32) * n) >> 32);
    uint32_t partner = k >= x ? k - x : k + n - x;
    uint32_t pair = x > partner ? x : partner;

    return mix(round_key + GOLDEN_RATIO * (pair + 1)) >> 63 ? partner : x;
}

uint32_t permutation_at(const struct permutation *permutation, uint32_t position)
{
    uint32_t x = position;

    for (uint32_t round = 0; round < ROUNDS; round++)
        x = swap_or_not(permutation, round, x);
    return x;
}

uint32_t permutation_position(const struct permutation *permutation, uint32_t element)
{
    uint32_t x = element;

    for (uint32_t round = ROUNDS; round-- > 0;)
        x = swap_or_not(permutation, round, x);
    return x;
}
