/* SPDX-License-Identifier: BSD-3-Clause */
#include "prng.h"

#define FRACTION_BITS 53

uint64_t prng_seed(uint64_t seed, uint32_t src, uint32_t dst)
{
    return prng_bits(prng_bits(seed, src), dst);
}

/* Return 2^x for 0 <= x, linear between whole x: exact in a double, since both ends must draw the
 * same size, and the C library's exp() differs between versions. */
static double power_of_two(double x)
{
    uint32_t whole = (uint32_t)x;

    return (double)(UINT64_C(1) << whole) * (1 + x - whole);
}

/* Return the x of power_of_two() for a value of at least 1. */
static double logarithm(uint64_t value)
{
    unsigned whole = 63 - (unsigned)__builtin_clzll(value);

    return whole + (double)value / (double)(UINT64_C(1) << whole) - 1;
}

struct prng_sizes prng_sizes(uint64_t seed, uint32_t least, uint32_t most)
{
    struct prng_sizes sizes = {.seed = seed, .least = least, .most = most};

    if (most > 0) {
        sizes.low = logarithm(least);
        sizes.span = logarithm((uint64_t)most + 1) - sizes.low;
    }
    return sizes;
}

uint32_t prng_size(const struct prng_sizes *sizes, uint64_t n)
{
    uint64_t bits = prng_bits(sizes->seed, n) >> (64 - FRACTION_BITS);
    double share = (double)bits / (double)(UINT64_C(1) << FRACTION_BITS);
    double size = power_of_two(sizes->low + share * sizes->span);

    if (size < sizes->least)
        return sizes->least;
    return size > sizes->most ? sizes->most : (uint32_t)size;
}
