/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The blob store without a network: repetition with back-off, the bounded memory of what was
 * fetched, answers that nobody asked for.
 */
#include "blob_store.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS NS_PER_MS

struct sent {
    struct datagram last;
    uint64_t count;
};

struct fixture {
    struct sent sent;
    struct blob_store blob_store;
};

static void keep(void *context, struct datagram *datagram)
{
    struct sent *sent = context;

    sent->last = *datagram;
    sent->count++;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    const struct datagram_outlet outlet = {keep, &fixture->sent};

    *state = fixture;
    return blob_store_init(&fixture->blob_store, &outlet);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    blob_store_free(&fixture->blob_store);
    free(fixture);
    return 0;
}

static struct blob number_blob(uint64_t number)
{
    struct blob blob = {.size = sizeof(number)};

    memcpy(blob.bytes, &number, sizeof(number));
    return blob;
}

static bool answer(struct fixture *fixture, uint32_t node, uint64_t id, int64_t asked_ns)
{
    struct datagram datagram = {.type = DATAGRAM_BLOB,
                                .sender = node,
                                .origin_ns = asked_ns,
                                .blob = {.id = id, .blob = number_blob(id)}};

    return blob_store_receive(&fixture->blob_store, &datagram, asked_ns);
}

static void publishes_any_number(void **state)
{
    struct fixture *fixture = *state;
    struct blob blob;

    for (uint64_t id = 0; id < 5000; id++) {
        blob = number_blob(id);
        assert_int_equal(blob_store_publish(&fixture->blob_store, id << 32, &blob), 0);
    }
    for (uint64_t id = 0; id < 5000; id++) {
        blob = number_blob(id);
        assert_memory_equal(blob_store_published(&fixture->blob_store, id << 32), &blob,
                            sizeof(blob));
    }
    assert_null(blob_store_published(&fixture->blob_store, 1));
}

static void withdraws_without_losing_others(void **state)
{
    struct fixture *fixture = *state;
    struct blob_store *blob_store = &fixture->blob_store;
    struct blob blob;

    for (uint64_t id = 0; id < 1000; id++) {
        blob = number_blob(id);
        assert_int_equal(blob_store_publish(blob_store, id, &blob), 0);
        if (id >= 20) /* a window of 20 moves on: all chains of places are broken somewhere */
            blob_store_withdraw(blob_store, id - 20);
        for (uint64_t old = id > 40 ? id - 40 : 0; old <= id; old++) {
            blob = number_blob(old);
            if (old + 20 <= id)
                assert_null(blob_store_published(blob_store, old));
            else
                assert_memory_equal(blob_store_published(blob_store, old), &blob, sizeof blob);
        }
    }
    assert_int_equal(blob_store->stored_places, 64);
    blob_store_withdraw(blob_store, 5000);
    assert_int_equal(blob_store->stored_count, 20);
}

static void asks_again_with_back_off(void **state)
{
    struct fixture *fixture = *state;
    struct blob blob;
    int64_t gap_ns, now_ns = 0, last_gap_ns = 0;

    assert_int_equal(blob_store_fetch(&fixture->blob_store, 3, 4, &blob, 0), -EAGAIN);
    assert_int_equal(fixture->sent.count, 1);
    assert_int_equal(fixture->sent.last.recipient, 3);
    assert_int_equal(fixture->sent.last.blob.id, 4);
    for (uint64_t asked = 1; asked < 12; asked++) {
        gap_ns = blob_store_deadline(&fixture->blob_store) - now_ns;
        assert_in_range(gap_ns, asked == 1 ? 2 * MS : last_gap_ns, 50 * MS);
        blob_store_tick(&fixture->blob_store, now_ns + gap_ns - 1);
        assert_int_equal(fixture->sent.count, asked);
        now_ns += gap_ns;
        last_gap_ns = gap_ns;
        assert_int_equal(blob_store_fetch(&fixture->blob_store, 3, 4, &blob, now_ns), -EAGAIN);
        blob_store_tick(&fixture->blob_store, now_ns);
        assert_int_equal(fixture->sent.count, asked + 1);
    }
    assert_true(answer(fixture, 3, 4, now_ns));
    assert_int_equal(blob_store_fetch(&fixture->blob_store, 3, 4, &blob, now_ns), 0);
    blob_store_tick(&fixture->blob_store, now_ns + 100 * MS);
    assert_int_equal(fixture->sent.count, 12);
    assert_int_equal(blob_store_deadline(&fixture->blob_store), CLOCK_NEVER);
}

static void gives_up_what_nobody_calls_for(void **state)
{
    struct fixture *fixture = *state;
    struct blob blob;
    int64_t now_ns = 0;

    blob_store_fetch(&fixture->blob_store, 3, 4, &blob, 0);
    while (blob_store_deadline(&fixture->blob_store) != CLOCK_NEVER) {
        now_ns = blob_store_deadline(&fixture->blob_store);
        blob_store_tick(&fixture->blob_store, now_ns);
    }
    assert_in_range(now_ns, NS_PER_S, NS_PER_S + 50 * MS);
    assert_int_equal(blob_store_fetch(&fixture->blob_store, 3, 4, &blob, now_ns), -EAGAIN);
    assert_true(answer(fixture, 3, 4, now_ns));
}

static void takes_only_answers_to_its_own_questions(void **state)
{
    struct fixture *fixture = *state;
    struct blob blob;

    assert_false(answer(fixture, 3, 4, 100));
    blob_store_fetch(&fixture->blob_store, 3, 4, &blob, 1000);
    assert_false(answer(fixture, 2, 4, 1000));
    assert_false(answer(fixture, 3, 5, 1000));
    assert_false(answer(fixture, 3, 4, 999)); /* said before we asked */
    assert_int_equal(blob_store_fetch(&fixture->blob_store, 3, 4, &blob, 1001), -EAGAIN);
    assert_true(answer(fixture, 3, 4, 1000));
    assert_true(answer(fixture, 3, 4, 1000)); /* doubled on the way */
    assert_int_equal(blob_store_fetch(&fixture->blob_store, 3, 4, &blob, 1002), 0);
}

/* Far more than the table holds, each answered: all arrive, none is mixed up, and what was
 * forgotten is asked for again. */
static void remembers_a_bounded_number(void **state)
{
    const uint64_t many = 10 * BLOB_STORE_SETS * BLOB_STORE_WAYS;
    struct fixture *fixture = *state;
    struct blob blob, right;

    for (uint64_t id = 0; id < many; id++) {
        int64_t now_ns = (int64_t)id;
        uint32_t node = (uint32_t)(id % 7);

        assert_int_equal(blob_store_fetch(&fixture->blob_store, node, id, &blob, now_ns), -EAGAIN);
        assert_true(answer(fixture, node, id, now_ns));
        assert_int_equal(blob_store_fetch(&fixture->blob_store, node, id, &blob, now_ns), 0);
        right = number_blob(id);
        assert_memory_equal(&blob, &right, sizeof(blob));
    }
    assert_int_equal(fixture->sent.count, many);
    assert_int_equal(blob_store_fetch(&fixture->blob_store, 0, 0, &blob, (int64_t)many), -EAGAIN);
    assert_int_equal(fixture->sent.count, many + 1);
}

/* More questions at once than there is room for: those beyond wait, and all are answered. */
static void serves_more_questions_than_it_holds(void **state)
{
    const uint64_t many = 3 * BLOB_STORE_SETS * BLOB_STORE_WAYS;
    struct fixture *fixture = *state;
    uint8_t *done = calloc(many, 1);
    uint64_t left = many;
    struct blob blob;
    int64_t now_ns = 0;

    assert_non_null(done);
    for (; left && now_ns < 10 * NS_PER_S; now_ns += MS) {
        for (uint64_t id = 0; id < many; id++) {
            uint64_t before = fixture->sent.count;

            if (done[id])
                continue;
            done[id] = blob_store_fetch(&fixture->blob_store, 1, id, &blob, now_ns) == 0;
            left -= done[id];
            if (fixture->sent.count > before)
                assert_true(answer(fixture, 1, id, now_ns));
        }
    }
    free(done);
    assert_int_equal(left, 0);
}

/* Abandoned questions give way; what is left open is exactly what is still wanted. */
static void abandoned_questions_give_way(void **state)
{
    const uint64_t wanted = 500, many = 4 * BLOB_STORE_SETS * BLOB_STORE_WAYS;
    struct fixture *fixture = *state;
    uint64_t before;
    struct blob blob;

    for (uint64_t id = 0; id < many; id++)
        blob_store_fetch(&fixture->blob_store, 1, id, &blob, 0);
    assert_int_equal(fixture->blob_store.open_count, BLOB_STORE_SETS * BLOB_STORE_WAYS);
    before = fixture->sent.count;
    for (uint64_t id = 0; id < wanted; id++)
        blob_store_fetch(&fixture->blob_store, 2, id, &blob, 2 * NS_PER_S);
    assert_int_equal(fixture->sent.count, before + wanted);
    assert_int_equal(fixture->blob_store.open_count, BLOB_STORE_SETS * BLOB_STORE_WAYS);
    blob_store_tick(&fixture->blob_store, 2 * NS_PER_S + 2 * MS);
    assert_int_equal(fixture->sent.count, before + 2 * wanted);
    assert_int_equal(fixture->blob_store.open_count, wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(publishes_any_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(withdraws_without_losing_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asks_again_with_back_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gives_up_what_nobody_calls_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_only_answers_to_its_own_questions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(remembers_a_bounded_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(abandoned_questions_give_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(serves_more_questions_than_it_holds, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
