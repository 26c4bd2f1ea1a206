/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a schedule's destination keeps account of: sizes by number, messages ahead of their step,
 * what is late, doubled, too early; and numbers that wrap.
 */
#include "reassembly_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define BATCH 3u
#define MEETINGS 2u
#define SIZES 3u
#define CYCLE (MEETINGS + SIZES * BATCH)

static const uint32_t sizes[SIZES] = {0, 100000, 8};

static struct ahead make(size_t most_bytes)
{
    const struct dpdk_options options = {.header = HEADER_L2};
    struct ahead_cycle cycle = {.meetings = MEETINGS, .count = SIZES, .batch = BATCH};
    struct frame_shape shape;
    struct message_cut cut;
    struct ahead ahead;

    frame_shape(&shape, &options, 1);
    assert_true(message_cut(&cut, &shape, 1518));
    cycle.bytes = malloc(sizeof sizes);
    memcpy(cycle.bytes, sizes, sizeof sizes);
    assert_int_equal(ahead_make(&ahead, &cycle, &cut, most_bytes), 0);
    return ahead;
}

static uint32_t bytes_of(uint64_t number)
{
    uint64_t place = number % CYCLE;

    return place < MEETINGS ? 0 : sizes[(place - MEETINGS) % SIZES];
}

/* Takes the whole message, its last segment first. */
static void take_all(struct ahead *ahead, uint64_t number)
{
    uint32_t segments = message_segments(&ahead->cut, bytes_of(number));

    for (uint32_t i = segments; i-- > 0;)
        assert_int_equal(ahead_take(ahead, number, i),
                         i + 1 == segments ? SEQUENCE_FRESH : SEQUENCE_REORDERED);
}

/* Both ends know each message by its number: barrier, batch, barrier, ... */
static void test_sizes(void **state)
{
    struct ahead ahead = make(1 << 20);

    (void)state;
    for (uint64_t n = 0; n < 5 * CYCLE; n++) {
        const struct ahead_message *message = ahead_message(&ahead, n);

        assert_int_equal(message->meeting, n % CYCLE < MEETINGS);
        assert_int_equal(message->bytes, bytes_of(n));
        assert_int_equal(message->missing, message_segments(&ahead.cut, bytes_of(n)));
        ahead.opened++;
        assert_false(ahead_whole(&ahead));
        take_all(&ahead, n);
        assert_true(ahead_whole(&ahead));
        ahead_close(&ahead);
        assert_false(ahead_waits(&ahead));
    }
    ahead_free(&ahead);
}

/* A source that is ahead loses nothing as far as the window goes. */
static void test_ahead(void **state)
{
    struct ahead ahead = make(1 << 20);
    uint64_t number;

    (void)state;
    assert_in_range(ahead.half, CYCLE, 2 * CYCLE);
    for (uint64_t n = ahead.half; n-- > 0;) {
        assert_int_equal(ahead_find(&ahead, (uint32_t)n, &number), AHEAD_KEPT);
        assert_int_equal(number, n);
        take_all(&ahead, n);
    }
    assert_int_equal(ahead_find(&ahead, ahead.half, &number), AHEAD_EARLY);
    assert_false(ahead_waits(&ahead));
    for (uint64_t n = 0; n < ahead.half; n++) {
        ahead.opened++;
        assert_true(ahead_waits(&ahead) && ahead_whole(&ahead));
        ahead_close(&ahead);
    }
    ahead.opened++;
    assert_false(ahead_whole(&ahead));
    ahead_free(&ahead);
}

/* Of a message that is whole another segment is a copy; of one that was given up it is late. */
static void test_old(void **state)
{
    struct ahead ahead = make(1 << 20);
    uint64_t number;

    (void)state;
    ahead.opened = MEETINGS + 2;
    for (uint64_t n = 0; n <= MEETINGS; n++) {
        take_all(&ahead, n);
        ahead_close(&ahead);
    }
    number = MEETINGS + 1; /* of several segments */
    assert_int_equal(ahead_take(&ahead, number, 1), SEQUENCE_FRESH);
    assert_int_equal(ahead_take(&ahead, number, 1), SEQUENCE_DUPLICATE);
    assert_int_equal(ahead_take(&ahead, number, 0), SEQUENCE_REORDERED);
    assert_false(ahead_whole(&ahead));
    ahead_close(&ahead);
    assert_int_equal(ahead_find(&ahead, MEETINGS, &number), AHEAD_KEPT);
    assert_int_equal(ahead_take(&ahead, number, 0), SEQUENCE_DUPLICATE);
    assert_int_equal(ahead_find(&ahead, MEETINGS + 1, &number), AHEAD_KEPT);
    assert_int_equal(ahead_take(&ahead, number, 2), SEQUENCE_LATE);
    assert_int_equal(ahead_take(&ahead, number, 2), SEQUENCE_DUPLICATE);
    assert_int_equal(ahead_find(&ahead, UINT32_MAX, &number), AHEAD_OLD);
    ahead_free(&ahead);
}

/* With little memory four messages are kept all the same; numbers on the wire have 32 bits. */
static void test_wrap(void **state)
{
    struct ahead ahead = make(0);
    uint64_t number;

    (void)state;
    assert_int_equal(ahead.half, 4);
    ahead.base = ahead.opened = (UINT64_C(1) << 32) - 2;
    assert_int_equal(ahead_find(&ahead, 1, &number), AHEAD_KEPT);
    assert_int_equal(number, (UINT64_C(1) << 32) + 1);
    assert_int_equal(ahead_find(&ahead, 2, &number), AHEAD_EARLY);
    assert_int_equal(ahead_find(&ahead, UINT32_MAX - 5, &number), AHEAD_KEPT);
    assert_int_equal(number, UINT32_MAX - 5);
    assert_int_equal(ahead_find(&ahead, UINT32_MAX - 6, &number), AHEAD_OLD);
    ahead_free(&ahead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_old),
        cmocka_unit_test(test_wrap),
    };

    return cmocka_run_group_tests_name("dpdk_ahead", tests, NULL, NULL);
}
