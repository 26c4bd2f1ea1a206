/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The histogram against the sorted values themselves.
 */
#include "histogram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VALUES 20000

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Buckets follow each other without gap or overlap, and each is as narrow as promised. */
static void test_buckets_tile(void **state)
{
    assert_int_equal(histogram_least_of(0), 0);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t least = histogram_least_of(i);
        uint64_t width = histogram_width_of(i);

        if (i + 1 < HISTOGRAM_BUCKETS)
            assert_int_equal(histogram_least_of(i + 1), least + width);
        else
            assert_int_equal(least + width, UINT64_C(1) << HISTOGRAM_POWERS);
        assert_int_equal(histogram_index(least), i);
        assert_int_equal(histogram_index(least + width - 1), i);
        assert_true((double)width / 2 <= HISTOGRAM_ERROR * (double)least || width == 1);
    }
}

static uint64_t fill(struct histogram *histogram, uint64_t *values, double spread, uint64_t seed)
{
    uint64_t sum = 0;

    memset(histogram, 0, sizeof *histogram);
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = (uint64_t)exp(spread * (double)draw(&seed) / (double)(UINT64_C(1) << 53));
        sum += values[i];
        histogram_add(histogram, values[i]);
    }
    qsort(values, VALUES, sizeof *values, compare);
    return sum;
}

/* Quantiles of values spread log-uniformly over up to 11 powers of ten. */
static void test_quantiles(void **state)
{
    static const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    static uint64_t values[VALUES];
    static struct histogram histogram;

    for (int spread = 1; spread <= 27; spread++) {
        uint64_t sum = fill(&histogram, values, spread, (uint64_t)spread);

        assert_int_equal(histogram.count, VALUES);
        assert_int_equal(histogram.min_ns, values[0]);
        assert_int_equal(histogram.max_ns, values[VALUES - 1]);
        assert_int_equal(histogram.sum_ns, sum);
        assert_int_equal(histogram.beyond, 0);
        for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
            double rank = ceil(shares[i] * VALUES);
            double want = (double)values[rank < 1 ? 0 : (size_t)rank - 1];
            double got = (double)histogram_quantile(&histogram, shares[i]);

            assert_true(fabs(got - want) <= want * HISTOGRAM_ERROR + 0.5);
        }
    }
}

static void test_empty_and_single(void **state)
{
    static struct histogram histogram;
    char *text;

    memset(&histogram, 0, sizeof histogram);
    assert_int_equal(histogram_quantile(&histogram, 0.5), 0);
    text = histogram_text(&histogram);
    assert_string_equal(text, "");
    free(text);
    histogram_add(&histogram, 0);
    assert_int_equal(histogram.min_ns, 0);
    histogram_add(&histogram, 1000003);
    assert_int_equal(histogram.min_ns, 0);
    assert_int_equal(histogram_quantile(&histogram, 1), 1000003);
    assert_int_equal(histogram.sum_ns, 1000003);
}

/* Beyond the scale: counted, its greatest kept, its size in no bucket. */
static void test_beyond(void **state)
{
    static struct histogram histogram;

    memset(&histogram, 0, sizeof histogram);
    histogram_add(&histogram, (UINT64_C(1) << HISTOGRAM_POWERS) - 1);
    assert_int_equal(histogram.beyond, 0);
    histogram_add_times(&histogram, UINT64_C(1) << HISTOGRAM_POWERS, 3);
    assert_int_equal(histogram.beyond, 3);
    assert_int_equal(histogram.buckets[HISTOGRAM_BUCKETS - 1], 4);
    assert_int_equal(histogram.max_ns, UINT64_C(1) << HISTOGRAM_POWERS);
}

static void test_merge(void **state)
{
    static struct histogram whole, first, second, empty;
    uint64_t seed = 7;

    memset(&whole, 0, sizeof whole);
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    for (int i = 0; i < VALUES; i++) {
        uint64_t value = draw(&seed) >> (i % 40);

        histogram_add(&whole, value);
        histogram_add(i % 3 != 0 ? &first : &second, value);
    }
    histogram_merge(&empty, &first);
    histogram_merge(&empty, &second);
    assert_memory_equal(&empty, &whole, sizeof whole);
    memset(&empty, 0, sizeof empty);
    histogram_merge(&whole, &empty);
    assert_int_equal(whole.min_ns, first.min_ns < second.min_ns ? first.min_ns : second.min_ns);
}

static void read_back(struct histogram *histogram, const char *text)
{
    for (char *end; *text != '\0'; text = *end == ' ' ? end + 1 : end) {
        unsigned long index = strtoul(text, &end, 10);

        assert_true(index < HISTOGRAM_BUCKETS && *end == ':');
        histogram->buckets[index] += strtoull(end + 1, &end, 10);
    }
}

/* All buckets come back from the text. */
static void test_text(void **state)
{
    static uint64_t values[VALUES];
    static struct histogram histogram, copy;
    char *text;

    fill(&histogram, values, 20, 3);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        histogram.buckets[i] += i % 2 == 0 ? UINT64_MAX - histogram.buckets[i] : 0;
    text = histogram_text(&histogram);
    read_back(&copy, text);
    free(text);
    assert_memory_equal(copy.buckets, histogram.buckets, sizeof copy.buckets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_tile),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_empty_and_single),
        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
