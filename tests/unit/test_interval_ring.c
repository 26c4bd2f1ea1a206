/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Interval results: marks on a grid of time, between a worker and a reader that may both be late.
 */
#include "interval_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STEP (100 * NS_PER_MS)
#define OPEN (5 * NS_PER_S)
#define FLOWS 3

struct bed {
    struct flow_side sides[FLOWS];
    struct lane_flow flows[FLOWS];
    struct interval_ring *interval_ring;
};

static void lay(struct bed *bed, int64_t close_ns)
{
    const struct interval_grid grid = {.open_ns = OPEN, .step_ns = STEP, .close_ns = close_ns};

    *bed = (struct bed){.interval_ring = interval_ring_make(FLOWS)};
    assert_non_null(bed->interval_ring);
    for (unsigned i = 0; i < FLOWS; i++)
        bed->flows[i].side = &bed->sides[i];
    interval_ring_begin(bed->interval_ring, &grid);
}

static int64_t mark(struct bed *bed, int64_t at_ns, uint64_t bytes)
{
    for (unsigned i = 0; i < FLOWS; i++)
        bed->sides[i].live.payload_bytes = bytes + i;
    return interval_ring_mark(bed->interval_ring, bed->flows, at_ns, UINT32_MAX);
}

static void expect(struct bed *bed, uint32_t number, int64_t at_ns, uint64_t bytes)
{
    struct interval_mark first;

    assert_true(interval_ring_waiting(bed->interval_ring) > 0);
    first = interval_ring_first(bed->interval_ring);
    assert_int_equal(first.number, number);
    assert_int_equal(first.at_ns, at_ns);
    for (unsigned i = 0; i < FLOWS; i++)
        assert_int_equal(first.bytes[i], bytes + i);
    interval_ring_drop(bed->interval_ring);
}

static void test_marks_in_time(void **state)
{
    struct bed bed;

    lay(&bed, OPEN + 2 * STEP + STEP / 2);
    assert_int_equal(mark(&bed, OPEN - 1, 7), OPEN); /* warm-up: nothing yet */
    assert_int_equal(interval_ring_waiting(bed.interval_ring), 0);
    assert_int_equal(mark(&bed, OPEN + 3, 10), OPEN + STEP);
    assert_int_equal(mark(&bed, OPEN + STEP + 1, 20), OPEN + 2 * STEP);
    assert_int_equal(mark(&bed, OPEN + 2 * STEP, 30), CLOCK_NEVER); /* the half step is none */
    expect(&bed, 0, OPEN + 3, 10);
    expect(&bed, 1, OPEN + STEP + 1, 20);
    expect(&bed, 2, OPEN + 2 * STEP, 30);
    assert_int_equal(interval_ring_waiting(bed.interval_ring), 0);
    interval_ring_free(bed.interval_ring);
}

/* A worker that slept over marks makes one of them, and comes back to the grid. */
static void test_late_worker(void **state)
{
    struct bed bed;

    lay(&bed, OPEN + 10 * STEP);
    assert_int_equal(mark(&bed, OPEN, 1), OPEN + STEP);
    assert_int_equal(mark(&bed, OPEN + 4 * STEP + 5, 2), OPEN + 5 * STEP);
    assert_int_equal(mark(&bed, OPEN + 99 * STEP, 3), CLOCK_NEVER);
    expect(&bed, 0, OPEN, 1);
    expect(&bed, 4, OPEN + 4 * STEP + 5, 2);
    expect(&bed, 10, OPEN + 99 * STEP, 3);
    interval_ring_free(bed.interval_ring);
}

/* Marks for which there is no room are left out; those that wait are not touched. */
static void test_late_reader(void **state)
{
    struct bed bed;

    lay(&bed, CLOCK_NEVER);
    for (uint32_t i = 0; i < INTERVAL_ROOM + 5; i++)
        assert_int_equal(mark(&bed, OPEN + i * STEP, 1000 * i), OPEN + (i + 1) * STEP);
    assert_int_equal(interval_ring_waiting(bed.interval_ring), INTERVAL_ROOM);
    expect(&bed, 0, OPEN, 0);
    mark(&bed, OPEN + 50 * STEP, 50000);
    for (uint32_t i = 1; i < INTERVAL_ROOM; i++)
        expect(&bed, i, OPEN + i * STEP, 1000 * i);
    expect(&bed, 50, OPEN + 50 * STEP, 50000);
    interval_ring_free(bed.interval_ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_in_time),
        cmocka_unit_test(test_late_worker),
        cmocka_unit_test(test_late_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
