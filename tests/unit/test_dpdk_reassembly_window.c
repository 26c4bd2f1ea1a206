/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a schedule's destination keeps account of: sizes by number, messages ahead of their step,
 * what is late, doubled, too early; and numbers that wrap.
 */
#include "reassembly_window.h"

#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define BATCH 3u
#define BARRIER_ROUNDS 2u
#define SIZES 3u
#define CYCLE (BARRIER_ROUNDS + SIZES * BATCH)

static const uint32_t sizes[SIZES] = {0, 100000, 8};

static struct reassembly_window make(size_t most_bytes)
{
    const struct dpdk_options options = {.header = HEADER_L2};
    struct reassembly_cycle cycle = {
        .barrier_rounds = BARRIER_ROUNDS, .count = SIZES, .batch = BATCH};
    struct frame_shape shape;
    struct segmentation segmentation;
    struct reassembly_window window;

    frame_shape(&shape, &options, 1);
    assert_true(segmentation_make(&segmentation, &shape, 1518));
    cycle.bytes = malloc(sizeof sizes);
    memcpy(cycle.bytes, sizes, sizeof sizes);
    assert_int_equal(reassembly_window_make(&window, &cycle, &segmentation, most_bytes), 0);
    return window;
}

static uint32_t bytes_of(uint64_t number)
{
    uint64_t place = number % CYCLE;

    return place < BARRIER_ROUNDS ? 0 : sizes[(place - BARRIER_ROUNDS) % SIZES];
}

/* Takes the whole message, its last segment first. */
static void take_all(struct reassembly_window *window, uint64_t number)
{
    uint32_t segments = message_segments(&window->segmentation, bytes_of(number));

    for (uint32_t i = segments; i-- > 0;)
        assert_int_equal(reassembly_window_take(window, number, i),
                         i + 1 == segments ? SEQUENCE_FRESH : SEQUENCE_REORDERED);
}

/* Both ends know each message by its number: barrier, batch, barrier, ... */
static void test_sizes(void **state)
{
    struct reassembly_window window = make(1 << 20);

    for (uint64_t n = 0; n < 5 * CYCLE; n++) {
        const struct reassembly_message *message = reassembly_window_message(&window, n);

        assert_int_equal(message->in_barrier, n % CYCLE < BARRIER_ROUNDS);
        assert_int_equal(message->bytes, bytes_of(n));
        assert_int_equal(message->set.missing, message_segments(&window.segmentation, bytes_of(n)));
        window.opened++;
        assert_false(reassembly_window_whole(&window));
        take_all(&window, n);
        assert_true(reassembly_window_whole(&window));
        reassembly_window_close(&window);
        assert_false(reassembly_window_waits(&window));
    }
    reassembly_window_free(&window);
}

/* A source that is ahead loses nothing as far as the window goes. */
static void test_ahead(void **state)
{
    struct reassembly_window window = make(1 << 20);
    uint64_t number;

    assert_in_range(window.half, CYCLE, 2 * CYCLE);
    for (uint64_t n = window.half; n-- > 0;) {
        assert_int_equal(reassembly_window_find(&window, (uint32_t)n, &number), WINDOW_KEPT);
        assert_int_equal(number, n);
        take_all(&window, n);
    }
    assert_int_equal(reassembly_window_find(&window, window.half, &number), WINDOW_EARLY);
    assert_false(reassembly_window_waits(&window));
    for (uint64_t n = 0; n < window.half; n++) {
        window.opened++;
        assert_true(reassembly_window_waits(&window) && reassembly_window_whole(&window));
        reassembly_window_close(&window);
    }
    window.opened++;
    assert_false(reassembly_window_whole(&window));
    reassembly_window_free(&window);
}

/* Of a message that is whole another segment is a copy; of one that was given up it is late. */
static void test_old(void **state)
{
    struct reassembly_window window = make(1 << 20);
    uint64_t number;

    window.opened = BARRIER_ROUNDS + 2;
    for (uint64_t n = 0; n <= BARRIER_ROUNDS; n++) {
        take_all(&window, n);
        reassembly_window_close(&window);
    }
    number = BARRIER_ROUNDS + 1; /* of several segments */
    assert_int_equal(reassembly_window_take(&window, number, 1), SEQUENCE_FRESH);
    assert_int_equal(reassembly_window_take(&window, number, 1), SEQUENCE_DUPLICATE);
    assert_int_equal(reassembly_window_take(&window, number, 0), SEQUENCE_REORDERED);
    assert_false(reassembly_window_whole(&window));
    reassembly_window_close(&window);
    assert_int_equal(reassembly_window_find(&window, BARRIER_ROUNDS, &number), WINDOW_KEPT);
    assert_int_equal(reassembly_window_take(&window, number, 0), SEQUENCE_DUPLICATE);
    assert_int_equal(reassembly_window_find(&window, BARRIER_ROUNDS + 1, &number), WINDOW_KEPT);
    assert_int_equal(reassembly_window_take(&window, number, 2), SEQUENCE_LATE);
    assert_int_equal(reassembly_window_take(&window, number, 2), SEQUENCE_DUPLICATE);
    assert_int_equal(reassembly_window_find(&window, UINT32_MAX, &number), WINDOW_OLD);
    reassembly_window_free(&window);
}

/* With little memory four messages are kept all the same; numbers on the wire have 32 bits. */
static void test_wrap(void **state)
{
    struct reassembly_window window = make(0);
    uint64_t number;

    assert_int_equal(window.half, 4);
    window.base = window.opened = (UINT64_C(1) << 32) - 2;
    assert_int_equal(reassembly_window_find(&window, 1, &number), WINDOW_KEPT);
    assert_int_equal(number, (UINT64_C(1) << 32) + 1);
    assert_int_equal(reassembly_window_find(&window, 2, &number), WINDOW_EARLY);
    assert_int_equal(reassembly_window_find(&window, UINT32_MAX - 5, &number), WINDOW_KEPT);
    assert_int_equal(number, UINT32_MAX - 5);
    assert_int_equal(reassembly_window_find(&window, UINT32_MAX - 6, &number), WINDOW_OLD);
    reassembly_window_free(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_old),
        cmocka_unit_test(test_wrap),
    };

    return cmocka_run_group_tests_name("dpdk_reassembly_window", tests, NULL, NULL);
}
