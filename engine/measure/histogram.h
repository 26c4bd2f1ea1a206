/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Histogram of times in fixed memory: each value falls into a bucket whose middle is within
 * HISTOGRAM_ERROR of it, from 1 ns to 2^40 ns (18 minutes); min, max, sum and number are exact.
 *
 * Histograms add up over flows, nodes and repeats without further error.
 *
 * Buckets are logarithmic by powers of two and linear within one (64 per power): below 128 ns each
 * value has its own, above the width is 1/64 of the power. The index of a value is (power - 6) * 64
 * + (value >> (power - 6)), power = floor(log2 value); so bucket boundaries are fixed, and each
 * percentile can be rebuilt from indices alone.
 *
 * The layout is that of G. Tene's HdrHistogram; ours has one fixed shape, and no dependency.
 *
 * @see G. Tene: HdrHistogram
 */
#ifndef ENGINE_HISTOGRAM_H
#define ENGINE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_LINEAR_BITS 6
#define HISTOGRAM_POWERS 40 /**< values of 2^40 ns and more are counted in the last bucket */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_POWERS - HISTOGRAM_LINEAR_BITS + 1) << HISTOGRAM_LINEAR_BITS)
#define HISTOGRAM_ERROR (1.0 / 128) /**< max relative error of a bucket's middle */

/**
 * @brief Histogram of times, 18 KB in size; a struct of zeros is an empty histogram.
 */
struct histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t min_ns; /**< undefined while count is 0, as is the next */
    uint64_t max_ns;
    uint64_t beyond; /**< values of 2^40 ns and more: counted in the last bucket */
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/**
 * @brief Return the bucket index of a time.
 *
 * @param value_ns Time, ns.
 * @return Index.
 */
static inline uint32_t histogram_index(uint64_t value_ns)
{
    uint32_t shift;

    if (value_ns < (UINT64_C(2) << HISTOGRAM_LINEAR_BITS))
        return (uint32_t)value_ns;
    if (value_ns >> HISTOGRAM_POWERS)
        return HISTOGRAM_BUCKETS - 1;
    shift = 63 - (uint32_t)__builtin_clzll(value_ns) - HISTOGRAM_LINEAR_BITS;
    return (shift << HISTOGRAM_LINEAR_BITS) + (uint32_t)(value_ns >> shift);
}

/**
 * @brief Add a time to a histogram, once for each of `times` frames that have it.
 *
 * @param histogram Histogram.
 * @param value_ns Time, ns.
 * @param times Number of frames.
 */
static inline void histogram_add(struct histogram *histogram, uint64_t value_ns, uint64_t times)
{
    if (histogram->count == 0 || value_ns < histogram->min_ns)
        histogram->min_ns = value_ns;
    if (value_ns > histogram->max_ns)
        histogram->max_ns = value_ns;
    histogram->count += times;
    histogram->sum_ns += value_ns * times;
    histogram->beyond += (value_ns >> HISTOGRAM_POWERS) ? times : 0;
    histogram->buckets[histogram_index(value_ns)] += times;
}

/**
 * @brief Add the values of one histogram to another.
 *
 * @param sum Histogram to which the values are added.
 * @param part Histogram to add.
 */
void histogram_merge(struct histogram *sum, const struct histogram *part);

/**
 * @brief Return a quantile of a histogram: the middle of the bucket that holds it, within min and
 * max.
 *
 * @param histogram Histogram.
 * @param share Quantile, 0 to 1; 0.5 is the median.
 * @return Time, ns; 0: the histogram is empty.
 */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

/**
 * @brief Return a histogram's non-empty buckets as text: "index:count", separated by single spaces.
 *
 * @param histogram Histogram.
 * @return Text, which the caller frees; NULL: out of memory.
 */
char *histogram_text(const struct histogram *histogram);

#endif
