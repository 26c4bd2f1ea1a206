/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measurements of times and of misdelivered frames: histograms against the sorted values, runs of
 * delays, flows that arrive at the wrong port.
 */
#include "counters.h"
#include "delay_stats.h"
#include "unit.h"

#include <math.h>

#define VALUES 20000

static struct histogram histogram, sum;

/* --- histogram ---------------------------------------------------------------------------------*/

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* By the formulas of histogram.h, by which readers rebuild values, buckets follow each other
 * without gap or overlap, and each is as narrow as promised. */
TEST(buckets_tile)
{
    uint64_t least = 0;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t width = UINT64_C(1) << (i < 128 ? 0 : i / 64 - 1);

        assert_int_equal(histogram_index(least), i);
        assert_int_equal(histogram_index(least + width - 1), i);
        assert_true((double)width / 2 <= HISTOGRAM_ERROR * (double)least || width == 1);
        least += width;
    }
    assert_int_equal(least, UINT64_C(1) << HISTOGRAM_POWERS);
}

/* Values spread log-uniformly over up to 11 powers of ten, in two parts that are added up. All
 * buckets come back from the text. */
TEST(quantiles_are_within_the_error)
{
    static const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    static uint64_t values[VALUES];
    static struct histogram other, copy;

    for (int spread = 1; spread <= 27; spread++) {
        uint64_t all_ns = 0;
        char *text, *at;

        memset(&histogram, 0, sizeof histogram);
        memset(&other, 0, sizeof other);
        memset(&copy, 0, sizeof copy);
        srandom((unsigned)spread);
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = (uint64_t)exp(spread * (double)random() / RAND_MAX);
            all_ns += values[i];
            histogram_add(i % 3 == 0 ? &other : &histogram, values[i], 1);
        }
        histogram_merge(&histogram, &other);
        qsort(values, VALUES, sizeof *values, compare);
        assert_int_equal(histogram.count, VALUES);
        assert_int_equal(histogram.min_ns, values[0]);
        assert_int_equal(histogram.max_ns, values[VALUES - 1]);
        assert_int_equal(histogram.sum_ns, all_ns);
        for (EACH(share, shares)) {
            double rank = ceil(*share * VALUES);
            double want = (double)values[rank < 1 ? 0 : (size_t)rank - 1];
            double got = (double)histogram_quantile(&histogram, *share);

            assert_true(fabs(got - want) <= want * HISTOGRAM_ERROR + 0.5);
        }
        histogram.buckets[7] = UINT64_MAX;
        text = at = histogram_text(&histogram);
        for (unsigned long index; *at != '\0'; at += *at == ' ') {
            index = strtoul(at, &at, 10);
            assert_true(index < HISTOGRAM_BUCKETS && *at == ':');
            copy.buckets[index] = strtoull(at + 1, &at, 10);
        }
        free(text);
        assert_memory_equal(copy.buckets, histogram.buckets, sizeof copy.buckets);
    }
}

/* A value beyond the scale is counted and can be the maximum, but is in no bucket. An empty
 * histogram adds nothing. */
TEST(ends_of_the_scale)
{
    static struct histogram empty;
    char *text = histogram_text(&empty);

    assert_string_equal(text, "");
    free(text);
    assert_int_equal(histogram_quantile(&empty, 0.5), 0);
    memset(&histogram, 0, sizeof histogram);
    histogram_add(&histogram, 0, 1);
    histogram_add(&histogram, (UINT64_C(1) << HISTOGRAM_POWERS) - 1, 1);
    assert_int_equal(histogram.beyond, 0);
    histogram_add(&histogram, UINT64_C(1) << HISTOGRAM_POWERS, 3);
    histogram_merge(&histogram, &empty);
    assert_int_equal(histogram.beyond, 3);
    assert_int_equal(histogram.buckets[HISTOGRAM_BUCKETS - 1], 4);
    assert_int_equal(histogram.min_ns, 0);
    assert_int_equal(histogram.max_ns, UINT64_C(1) << HISTOGRAM_POWERS);
}

/* --- delays ------------------------------------------------------------------------------------*/

static struct delay_stats streams[2];
static struct delay_stats_buckets buckets;

static int fresh(void **state)
{
    memset(&buckets, 0, sizeof buckets);
    for (unsigned i = 0; i < 2; i++)
        delay_stats_init(&streams[i], 0);
    return 0;
}

static const struct histogram *summed(void)
{
    memset(&sum, 0, sizeof sum);
    delay_stats_sum(streams, 2, &buckets, &sum);
    return &sum;
}

TEST(no_delay_is_negative)
{
    assert_int_equal(delay_stats_delay(1000, 400), 600);
    assert_int_equal(delay_stats_delay(400, 1000), 0);
}

/* A run of equal delays gives the same result as its frames one by one; a run may be longer than
 * its counter (a clock that is behind makes all delays 0). */
TEST_BETWEEN(runs_are_single_frames, fresh, NULL)
{
    static struct histogram one_way;

    srandom(5);
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t delay = random() % 3 == 0 ? 1000 : 2000;

        delay_stats_add(&streams[random() % 2], &buckets, delay, 1);
        histogram_add(&one_way, delay, 1);
    }
    assert_memory_equal(summed(), &one_way, sizeof sum);
    fresh(state);
    delay_stats_add(&streams[0], &buckets, 0, 1);
    streams[0].run = DELAY_RUN_MAX;
    delay_stats_add(&streams[0], &buckets, 0, 2);
    assert_int_equal(summed()->count, DELAY_RUN_MAX + UINT64_C(2));
}

/* --- frames for others -------------------------------------------------------------------------*/

/* Flows have their own counts while there is room, in the tables of two queues; the others share
 * one count, and the sum loses none. */
TEST(strays_are_told_apart)
{
    static struct port_count counts[2];
    struct misdelivered_flows *all = &counts[0].misdelivered_flows;
    struct misdelivered_flows *part = &counts[1].misdelivered_flows;
    uint64_t known = 0;

    for (uint32_t rank = 0; rank < 2 * MISDELIVERED_SLOTS; rank++)
        misdelivered_add(rank % 2 == 0 ? all : part,
                         &(struct misdelivered_flow){rank + 1, (uint16_t)rank, 9});
    misdelivered_add(all, &(struct misdelivered_flow){5, 0, 9});
    assert_int_equal(all->others + part->others, 0);
    port_count_add(&counts[0], &counts[1]);
    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++) {
        const struct misdelivered_flow *flow = &all->flows[i];

        assert_int_equal(flow->frames, flow->src + 1u + (flow->src == 0 ? 5 : 0));
        known += flow->frames;
    }
    assert_int_equal(known + all->others, MISDELIVERED_SLOTS * (2 * MISDELIVERED_SLOTS + 1) + 5);
}

TEST(counts_of_queues_add_up)
{
    struct flow_side all = {.live.frames = 3, .first_ns = 50, .last_ns = 60, .late = 1};
    const struct flow_side none = {.live.frames = 0};
    const struct flow_side more = {.live = {2, 128, 92, 0},
                                   .window = {.open.frames = 1, .close.frames = 2},
                                   .duplicated = 4,
                                   .first_ns = 40,
                                   .last_ns = 55};

    flow_side_add(&all, &none); /* a queue that received nothing has no times */
    assert_int_equal(all.first_ns, 50);
    flow_side_add(&all, &more);
    assert_int_equal(all.live.frames, 5);
    assert_int_equal(all.live.payload_bytes, 92);
    assert_int_equal(all.window.close.frames - all.window.open.frames, 1);
    assert_int_equal(all.duplicated + all.late, 5);
    assert_int_equal(all.first_ns, 40);
    assert_int_equal(all.last_ns, 60);
    assert_int_equal(count_rest(7, 5), 2);
    assert_int_equal(count_rest(5, 7), -1); /* never negative, or unknown */
    assert_int_equal(count_rest(5, -1), -1);
    assert_int_equal(count_rest(-1, 0), -1);
}
