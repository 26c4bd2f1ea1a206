/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#define LINEAR (1u << HISTOGRAM_LINEAR_BITS)

static_assert(HISTOGRAM_BUCKETS == 2240, "readers rebuild values from these indices");

void histogram_merge(struct histogram *sum, const struct histogram *part)
{
    if (part->count == 0)
        return;
    if (sum->count == 0 || part->min_ns < sum->min_ns)
        sum->min_ns = part->min_ns;
    sum->max_ns = MAX(sum->max_ns, part->max_ns);
    sum->count += part->count;
    sum->sum_ns += part->sum_ns;
    sum->beyond += part->beyond;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += part->buckets[i];
}

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t passed = histogram->buckets[0], middle;
    uint32_t index = 0, shift;

    if (wanted <= 1)
        return histogram->count > 0 ? histogram->min_ns : 0;
    while ((double)passed < wanted && index + 1 < HISTOGRAM_BUCKETS)
        passed += histogram->buckets[++index];
    shift = index < 2 * LINEAR ? 0 : index / LINEAR - 1; /* shift of the bucket's width */
    middle = ((uint64_t)(index - shift * LINEAR) << shift) + (UINT64_C(1) << shift) / 2;
    if (middle < histogram->min_ns)
        return histogram->min_ns;
    return middle > histogram->max_ns || wanted > (double)(histogram->count - 1) ? histogram->max_ns
                                                                                 : middle;
}

char *histogram_text(const struct histogram *histogram)
{
    enum { ENTRY_BYTES = 28 }; /* largest entry */
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
