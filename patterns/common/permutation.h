/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A seeded random permutation of 0..n-1 that is computed, not stored: the element at a position
 * and the position of an element both cost a constant time and no memory. The same seed and
 * stream give the same permutation on every machine.
 */
#ifndef PATTERNS_PERMUTATION_H
#define PATTERNS_PERMUTATION_H

#include <stdint.h>

struct permutation {
    uint64_t key;
    uint32_t n;
};

/* 64 random bits: the `stream`th word that is drawn from a seed. */
uint64_t random_word(uint64_t seed, uint64_t stream);

/* `stream` numbers the permutations that are drawn from one seed. n is at least 1. */
struct permutation permutation_draw(uint32_t n, uint64_t seed, uint64_t stream);

/* The element at `position`, and its inverse; both arguments are below n. */
uint32_t permutation_at(const struct permutation *permutation, uint32_t position);
uint32_t permutation_position(const struct permutation *permutation, uint32_t element);
/* From two positions to their elements, in little more time than one: a round waits for the one
 * before it, so that two chains of rounds fill the processor better. */
void permutation_at_both(const struct permutation *permutation, uint32_t *first, uint32_t *second);

#endif
