/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is drawn by a seed: the same on every machine that draws the nth of the same seed, so that
 * both ends of a flow know its sizes without telling each other. Nothing is kept between draws.
 */
#ifndef ENGINE_PRNG_H
#define ENGINE_PRNG_H

#include <stdint.h>

/* 64 random bits: the nth of this seed (SplitMix64: Steele, Lea and Flood 2014). */
uint64_t draw_bits(uint64_t seed, uint64_t n);

/* A seed of its own for the flow between two ranks. */
uint64_t draw_seed(uint64_t seed, uint32_t src, uint32_t dst);

/* Sizes from `least` to `most` bytes, both possible, uniform in their logarithm (as in Salmon,
 * Stein and Sterling 1998, "Scaling of Beowulf-class distributed systems"). */
struct draw_sizes {
    uint64_t seed;
    uint32_t least;
    uint32_t most; /* 0: nothing is drawn */
    double low;    /* of their logarithms to base 2 */
    double span;
};

struct draw_sizes draw_sizes(uint64_t seed, uint32_t least, uint32_t most);
uint32_t draw_size(const struct draw_sizes *sizes, uint64_t n);

#endif
