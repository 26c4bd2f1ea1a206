/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames for others, by flow: told apart as long as there is room, and never lost from the sum.
 */
#include "misdelivered.h"

#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t frames_of(const struct misdelivered_flows *misdelivered, uint16_t src, uint16_t dst)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++)
        if (misdelivered->flows[i].src == src && misdelivered->flows[i].dst == dst)
            frames += misdelivered->flows[i].frames;
    return frames;
}

static void test_flows_are_told_apart(void **state)
{
    struct misdelivered_flows misdelivered = {0};

    for (uint16_t round = 0; round < 3; round++)
        for (uint16_t rank = 0; rank < 100; rank++) {
            misdelivered_add(&misdelivered,
                             &(struct misdelivered_flow){rank, rank, (uint16_t)(rank + 1)});
            misdelivered_add(&misdelivered,
                             &(struct misdelivered_flow){1, (uint16_t)(rank + 1), rank});
        }
    for (uint16_t rank = 1; rank < 100; rank++) {
        assert_int_equal(frames_of(&misdelivered, rank, (uint16_t)(rank + 1)), 3u * rank);
        assert_int_equal(frames_of(&misdelivered, (uint16_t)(rank + 1), rank), 3);
    }
    assert_int_equal(misdelivered.others, 0);
}

static void test_what_has_no_room_is_counted_together(void **state)
{
    static struct misdelivered_flows misdelivered;
    uint64_t sum = 0;

    for (uint32_t rank = 0; rank < 2 * MISDELIVERED_SLOTS; rank++)
        misdelivered_add(&misdelivered, &(struct misdelivered_flow){2, (uint16_t)rank, 9});
    for (uint16_t rank = 0; rank < 2 * MISDELIVERED_SLOTS; rank++)
        sum += frames_of(&misdelivered, rank, 9);
    assert_int_equal(sum, 2 * MISDELIVERED_SLOTS);
    assert_int_equal(misdelivered.others, 2 * MISDELIVERED_SLOTS);
}

static void test_queues_are_added_up(void **state)
{
    struct misdelivered_flows sum = {0}, part = {.others = 4};

    misdelivered_add(&sum, &(struct misdelivered_flow){5, 1, 2});
    misdelivered_add(&part, &(struct misdelivered_flow){7, 1, 2});
    misdelivered_add(&part, &(struct misdelivered_flow){1, 2, 1});
    misdelivered_merge(&sum, &part);
    assert_int_equal(frames_of(&sum, 1, 2), 12);
    assert_int_equal(frames_of(&sum, 2, 1), 1);
    assert_int_equal(sum.others, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flows_are_told_apart),
        cmocka_unit_test(test_what_has_no_room_is_counted_together),
        cmocka_unit_test(test_queues_are_added_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
