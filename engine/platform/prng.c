/* SPDX-License-Identifier: BSD-3-Clause */
#include "prng.h"

#define FRACTION_BITS 53

uint64_t prng_seed(uint64_t seed, uint32_t src, uint32_t dst)
{
    return prng_bits(prng_bits(seed, src), dst);
}

/* 2^x for 0 <= x, without the C library's exp, whose last bit differs between versions: both ends
 * must draw the same size. By squaring: x = whole + 53 binary digits, 2^(2^-k) for each. */
static double power_of_two(double x)
{
    static const double roots[] = {
        1.4142135623730951, 1.189207115002721,  1.0905077326652577, 1.0442737824274138,
        1.0218971486541166, 1.0108892860517005, 1.0054299011128027, 1.0027112750502025,
        1.0013547198921082, 1.0006771306930664, 1.0003385080526823, 1.0001692397053021,
        1.0000846162726942, 1.0000423072413958, 1.0000211533969647, 1.0000105766425498,
        1.0000052883072919, 1.0000026441501502, 1.0000013220742012, 1.000000661036882,
    };
    uint32_t whole = (uint32_t)x;
    double rest = x - whole;
    double power = (double)(UINT64_C(1) << whole);

    for (unsigned i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        rest *= 2;
        if (rest >= 1) {
            rest -= 1;
            power *= roots[i];
        }
    }
    return power;
}

/* The greatest x (in steps of 2^-20) with 2^x <= value, for value from 1 to 2^32. */
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
