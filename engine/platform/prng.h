/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is drawn by a seed: the same on every machine that draws the nth of the same seed, so that
 * both ends of a flow know its sizes without telling each other. Nothing is kept between draws.
 */
#ifndef ENGINE_PRNG_H
#define ENGINE_PRNG_H

#include <stdint.h>

#define PRNG_STEP UINT64_C(0x9e3779b97f4a7c15)

/* 64 random bits: the nth of this seed (SplitMix64: Steele, Lea and Flood 2014). */
static inline uint64_t prng_bits(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * PRNG_STEP;

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The next 64 bits of a sequence: the nth call gives the nth bits of the first state. */
static inline uint64_t prng_next(uint64_t *state)
{
    uint64_t bits = prng_bits(*state, 0);

    *state += PRNG_STEP;
    return bits;
}

/* The next number from 0 to n - 1; the error of the multiplication is below n / 2^32. */
static inline uint32_t prng_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((prng_next(state) >> 32) * n >> 32);
}

/* A seed of its own for the flow between two ranks. */
uint64_t prng_seed(uint64_t seed, uint32_t src, uint32_t dst);

/* Sizes from `least` to `most` bytes, both possible, uniform in their logarithm (as in Salmon,
 * Stein and Sterling 1998, "Scaling of Beowulf-class distributed systems"). */
struct prng_sizes {
    uint64_t seed;
    uint32_t least;
    uint32_t most; /* 0: nothing is drawn */
    double low;    /* of their logarithms to base 2 */
    double span;
};

struct prng_sizes prng_sizes(uint64_t seed, uint32_t least, uint32_t most);
uint32_t prng_size(const struct prng_sizes *sizes, uint64_t n);

#endif
