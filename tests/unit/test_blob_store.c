/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The blob store without a network: repetition with back-off, answers that nobody asked for, and
 * what is forgotten.
 */
#include "blob_store.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS NS_PER_MS

static struct datagram last;
static uint64_t sent;
static struct blob_store store;

static void keep(void *context, struct datagram *datagram)
{
    last = *datagram;
    sent++;
}

static int set_up(void **state)
{
    sent = 0;
    blob_store_init(&store, &(struct datagram_outlet){keep, NULL});
    return 0;
}

static int tear_down(void **state)
{
    blob_store_clear(&store);
    return 0;
}

static struct blob number_blob(uint64_t number)
{
    struct blob blob = {.size = sizeof(number)};

    memcpy(blob.bytes, &number, sizeof(number));
    return blob;
}

static bool answer(uint32_t node, uint64_t id, int64_t asked_ns)
{
    const struct datagram datagram = {.type = DATAGRAM_BLOB,
                                      .sender = node,
                                      .origin_ns = asked_ns,
                                      .blob = {.id = id, .blob = number_blob(id)}};

    return blob_store_receive(&store, &datagram);
}

static int fetch(uint32_t node, uint64_t id, int64_t now_ns)
{
    struct blob blob = {0}, right = number_blob(id);
    int code = blob_store_fetch(&store, node, id, &blob, now_ns);

    if (code == 0)
        assert_memory_equal(&blob, &right, sizeof(blob));
    return code;
}

/* Any number, of any publisher; then all are forgotten, and asked for again. */
static void keeps_until_it_forgets(void **state)
{
    for (uint64_t id = 0; id < 5000; id++) {
        const struct blob blob = number_blob(id), other = number_blob(id + 1);

        assert_int_equal(blob_store_publish(&store, id, &other), 0);
        assert_int_equal(blob_store_publish(&store, id, &blob), 0); /* replaced */
        assert_int_equal(fetch(id % 7, id, 1), -EAGAIN);
        assert_true(answer(id % 7, id, 1));
    }
    for (uint64_t id = 0; id < 5000; id++) {
        const struct datagram question = {.type = DATAGRAM_FETCH, .sender = 3, .blob = {.id = id}};
        struct blob right = number_blob(id);

        assert_int_equal(fetch(id % 7, id, 2), 0);
        assert_int_equal(fetch(BLOB_STORE_OWN, id, 2), 0);
        assert_true(blob_store_receive(&store, &question));
        assert_int_equal(last.type, DATAGRAM_BLOB);
        assert_memory_equal(&last.blob.blob, &right, sizeof(right));
    }
    assert_int_equal(sent, 10000);
    blob_store_clear(&store);
    assert_int_equal(fetch(BLOB_STORE_OWN, 1, 2), -EAGAIN);
    assert_true(blob_store_receive(&store, &(struct datagram){.type = DATAGRAM_FETCH}));
    assert_int_equal(sent, 10000); /* silent: who asks asks again */
    assert_int_equal(fetch(1, 1, 2), -EAGAIN);
    assert_int_equal(sent, 10001);
}

static void asks_again_with_back_off(void **state)
{
    int64_t gap_ns, now_ns = 0, last_gap_ns = 2 * MS;

    assert_int_equal(fetch(3, 4, 0), -EAGAIN);
    assert_int_equal(last.recipient, 3);
    assert_int_equal(last.blob.id, 4);
    for (uint64_t asked = 1; asked < 12; asked++, last_gap_ns = gap_ns) {
        gap_ns = blob_store_deadline(&store) - now_ns;
        assert_in_range(gap_ns, last_gap_ns, 50 * MS);
        blob_store_tick(&store, now_ns + gap_ns - 1);
        assert_int_equal(sent, asked);
        now_ns += gap_ns;
        assert_int_equal(fetch(3, 4, now_ns), -EAGAIN);
        blob_store_tick(&store, now_ns);
        assert_int_equal(sent, asked + 1);
    }
    assert_true(answer(3, 4, now_ns));
    assert_int_equal(fetch(3, 4, now_ns), 0);
    blob_store_tick(&store, now_ns + 100 * MS);
    assert_int_equal(sent, 12);
    assert_int_equal(blob_store_deadline(&store), CLOCK_NEVER);
}

static void gives_up_what_nobody_calls_for(void **state)
{
    int64_t now_ns = 0;

    fetch(3, 4, 0);
    while (blob_store_deadline(&store) != CLOCK_NEVER) {
        now_ns = blob_store_deadline(&store);
        blob_store_tick(&store, now_ns);
    }
    assert_in_range(now_ns, NS_PER_S, NS_PER_S + 50 * MS);
    assert_false(answer(3, 4, now_ns));
    assert_int_equal(fetch(3, 4, now_ns), -EAGAIN);
    assert_true(answer(3, 4, now_ns));
}

static void takes_only_answers_to_its_own_questions(void **state)
{
    const struct blob large = {.size = BLOB_BYTES_MAX + 1};

    assert_int_equal(blob_store_publish(&store, 1, &large), -EINVAL);
    assert_false(answer(3, 4, 100));
    fetch(3, 4, 1000);
    assert_false(answer(2, 4, 1000));
    assert_false(answer(3, 5, 1000));
    assert_false(answer(3, 4, 999)); /* said before we asked */
    assert_int_equal(fetch(3, 4, 1001), -EAGAIN);
    assert_true(answer(3, 4, 1000));
    assert_true(answer(3, 4, 1000)); /* doubled on the way */
    assert_int_equal(fetch(3, 4, 1002), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_until_it_forgets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asks_again_with_back_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gives_up_what_nobody_calls_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_only_answers_to_its_own_questions, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
