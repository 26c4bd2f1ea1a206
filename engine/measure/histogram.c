/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LINEAR (1u << HISTOGRAM_LINEAR_BITS)

static_assert(HISTOGRAM_BUCKETS == 2240, "readers rebuild values from these indices");

/* 0 below 128 ns, where buckets are 1 ns wide; then one more for each power of two. */
static uint32_t shift_of(uint32_t index)
{
    return index < 2 * LINEAR ? 0 : index / LINEAR - 1;
}

uint64_t histogram_least_of(uint32_t index)
{
    uint32_t shift = shift_of(index);

    return (uint64_t)(index - shift * LINEAR) << shift;
}

uint64_t histogram_width_of(uint32_t index)
{
    return UINT64_C(1) << shift_of(index);
}

void histogram_merge(struct histogram *sum, const struct histogram *part)
{
    if (part->count == 0)
        return;
    if (sum->count == 0 || part->min_ns < sum->min_ns)
        sum->min_ns = part->min_ns;
    if (part->max_ns > sum->max_ns)
        sum->max_ns = part->max_ns;
    sum->count += part->count;
    sum->sum_ns += part->sum_ns;
    sum->beyond += part->beyond;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += part->buckets[i];
}

static uint64_t middle_within(const struct histogram *histogram, uint32_t index)
{
    uint64_t middle = histogram_least_of(index) + histogram_width_of(index) / 2;

    if (middle < histogram->min_ns)
        return histogram->min_ns;
    return middle > histogram->max_ns ? histogram->max_ns : middle;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t passed = 0;

    if (histogram->count == 0)
        return 0;
    if (wanted <= 1)
        return histogram->min_ns;
    if (wanted > (double)(histogram->count - 1))
        return histogram->max_ns;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        passed += histogram->buckets[i];
        if ((double)passed >= wanted)
            return middle_within(histogram, i);
    }
    return histogram->max_ns;
}

char *histogram_text(const struct histogram *histogram)
{
    enum { ENTRY_BYTES = 28 }; /* of one entry at most */
    size_t used = 0, size, length = 0;
    char *text;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        used += histogram->buckets[i] > 0;
    size = used * ENTRY_BYTES + 1;
    text = calloc(1, size);
    for (uint32_t i = 0; text != NULL && i < HISTOGRAM_BUCKETS; i++)
        if (histogram->buckets[i] > 0)
            length += (size_t)snprintf(text + length, size - length, "%s%" PRIu32 ":%" PRIu64,
                                       length > 0 ? " " : "", i, histogram->buckets[i]);
    return text;
}
