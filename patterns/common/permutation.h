/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Seeded random permutations of 0..n-1, computed instead of stored: the element at a
 * position and the position of an element take constant time and no memory.
 *
 * The same seed and stream give the same permutation on every machine.
 */
#ifndef PATTERNS_PERMUTATION_H
#define PATTERNS_PERMUTATION_H

#include <stdint.h>

struct permutation {
    uint64_t key;
    uint32_t n;
};

/**
 * @brief Return 64 random bits that a seed and a stream number determine.
 *
 * @param seed Random seed.
 * @param stream Number of the 64-bit word among those of one seed.
 * @return Bits.
 */
uint64_t random_word(uint64_t seed, uint64_t stream);

/**
 * @brief Make a random permutation of 0 to n - 1.
 *
 * @param n Elements, at least 1.
 * @param seed Random seed.
 * @param stream Number of the permutation among those of one seed.
 * @return Permutation.
 */
struct permutation permutation_draw(uint32_t n, uint64_t seed, uint64_t stream);

/**
 * @brief Return the element at a position of a permutation.
 *
 * @param permutation Permutation.
 * @param position Position, below n.
 * @return Element.
 */
uint32_t permutation_at(const struct permutation *permutation, uint32_t position);
/**
 * @brief Return the position of an element in a permutation.
 *
 * @param permutation Permutation.
 * @param element Element, below n.
 * @return Position.
 */
uint32_t permutation_position(const struct permutation *permutation, uint32_t element);
#endif
