/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective.h"

struct partition partition_split(struct piece whole, uint32_t n, uint32_t unit)
{
    return (struct partition){.at = whole.at, .bytes = whole.bytes, .n = n, .unit = unit};
}

struct partition partition_each(struct piece first, uint32_t n, uint32_t skew)
{
    return (struct partition){.at = first.at, .bytes = first.bytes, .n = n, .skew = skew};
}

static uint64_t split_before(const struct partition *parts, uint32_t number)
{
    uint64_t units = parts->bytes / parts->unit;
    uint64_t more = units % parts->n; /* the first so many parts have one unit more */

    return parts->unit * (number * (units / parts->n) + (number < more ? number : more));
}

/* bytes x the sum over i < number of 1 + skew x (2i / (n - 1) - 1), in whole numbers; the quotient
 * and the remainder of bytes apart, so that nothing is above 2^64. */
static uint64_t skewed_before(const struct partition *parts, uint32_t number)
{
    uint64_t gaps = parts->n - 1;
    uint64_t scale = 100 * gaps;
    uint64_t share = 0;

    if (number > 0)
        share = number * ((100 - parts->skew) * gaps + (uint64_t)parts->skew * (number - 1));
    return parts->bytes / scale * share + parts->bytes % scale * share / scale;
}

static uint64_t before(const struct partition *parts, uint32_t number)
{
    if (parts->unit > 0)
        return split_before(parts, number);
    return parts->skew > 0 ? skewed_before(parts, number) : number * parts->bytes;
}

struct piece partition_range(const struct partition *parts, uint32_t first, uint32_t end)
{
    uint64_t at = before(parts, first);

    return (struct piece){parts->at + at, before(parts, end) - at};
}

struct piece partition_piece(const struct partition *parts, uint32_t number)
{
    return partition_range(parts, number, number + 1);
}
