/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Seeded random numbers: the nth number of a seed is equal on every machine, so that both
 * ends of a flow compute the same numbers without an exchange.
 *
 * No state is kept between calls.
 */
#ifndef ENGINE_PRNG_H
#define ENGINE_PRNG_H

#include <stdint.h>

#define PRNG_STEP UINT64_C(0x9e3779b97f4a7c15)

/**
 * @brief Return the nth 64 random bits of a seed (SplitMix64: Steele, Lea and Flood 2014).
 *
 * @param seed Random seed.
 * @param n Position in the seed's sequence, from 0.
 * @return 64 random bits.
 */
static inline uint64_t prng_bits(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * PRNG_STEP;

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/**
 * @brief Return the next 64 bits of a pseudo-random sequence, which its initial state determines.
 *
 * @param state State of the sequence; advanced to the next number.
 * @return Bits.
 */
static inline uint64_t prng_next(uint64_t *state)
{
    uint64_t bits = prng_bits(*state, 0);

    *state += PRNG_STEP;
    return bits;
}

/**
 * @brief Return the next random number from 0 to n - 1. The probabilities of any two numbers differ
 * by less than n / 2^32 of their value.
 *
 * @param state State of the sequence; advanced to the next number.
 * @param n Number of possible values.
 * @return Number.
 */
static inline uint32_t prng_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((prng_next(state) >> 32) * n >> 32);
}

#endif
