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

/* `stream` numbers the permutations that are drawn from one seed. n is at least 1. */
struct permutation permutation_draw(uint32_t n, uint64_t seed, uint64_t stream);

/* The element at `position`, and its inverse; both arguments are below n. */
uint32_t permutation_at(const struct permutation *permutation, uint32_t position);
uint32_t permutation_position(const struct permutation *permutation, uint32_t element);

#endif
