/* SPDX-License-Identifier: BSD-3-Clause */
#include "prng.h"

#include <math.h>

#define FRACTION_BITS 53

uint64_t prng_seed(uint64_t seed, uint32_t src, uint32_t dst)
{
    return prng_bits(prng_bits(seed, src), dst);
}

/* Return 2^x for 0 <= x, without the C library's exp(), whose last bit differs between versions:
 * both ends must draw the same size. x = whole + 20 binary digits, 2^(2^-k) for each; a square root
 * is exact to its last bit (IEEE 754, 5.4.1). */
static double power_of_two(double x)
{
    uint32_t whole = (uint32_t)x;
    double rest = x - whole, power = (double)(UINT64_C(1) << whole), root = 2;

    for (unsigned i = 0; i < 20; i++) {
        root = sqrt(root);
        rest *= 2;
        if (rest >= 1) {
            rest -= 1;
            power *= root;
        }
    }
    return power;
}

/* Return the greatest x, in steps of 2^-20, with 2^x <= value, for values from 1 to 2^32. */
static double logarithm(uint64_t value)
{
    double low = 0, high = 33;

    while (high - low > 0x1p-20) {
        double middle = (low + high) / 2;

        if (power_of_two(middle) <= (double)value)
            low = middle;
        else
            high = middle;
    }
    return low;
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
