/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What decides about queue pairs, without a device: offers and what both ends make of them, GIDs,
 * the cache of those that are cached.
 */
#include "gid.h"
#include "qp_cache.h"
#include "qp_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void an_offer_survives_its_blob(void **state)
{
    struct qp_info info = {
        .number = 0x123456,
        .connected_to = 77,
        .turn = 0xfffffff0,
        .packet = 0xabcdef,
        .queue_key = 0x7fffffff,
        .lid = 0xc001,
        .mtu = 4096,
        .reads = 16,
        .gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9},
        .ring = {0x7f0000001000, 0x1234},
        .slots = 256,
        .stride = 65536,
        .first = 255,
        .control = {0x7f0000000000, 0x5678},
        .token = 0x1122334455667788,
    };
    struct qp_info back;
    struct blob blob;

    (void)state;
    qp_info_write(&info, &blob);
    assert_true(blob.size <= BLOB_BYTES_MAX);
    assert_true(qp_info_read(&back, &blob));
    assert_int_equal(back.number, info.number);
    assert_int_equal(back.connected_to, info.connected_to);
    assert_int_equal(back.turn, info.turn);
    assert_int_equal(back.packet, info.packet);
    assert_int_equal(back.queue_key, info.queue_key);
    assert_int_equal(back.lid, info.lid);
    assert_int_equal(back.mtu, info.mtu);
    assert_int_equal(back.reads, info.reads);
    assert_memory_equal(back.gid, info.gid, sizeof info.gid);
    assert_true(back.ring.address == info.ring.address && back.ring.key == info.ring.key);
    assert_true(back.control.address == info.control.address &&
                back.control.key == info.control.key);
    assert_true(back.slots == info.slots && back.stride == info.stride &&
                back.first == info.first && back.token == info.token);
    blob.bytes[3]++; /* another version */
    assert_false(qp_info_read(&back, &blob));
    blob.size--;
    assert_false(qp_info_read(&back, &blob));
}

/* Whatever the two have kept: they agree on a kept qp, or each new end meets a new end, and
 * whoever waits for a second offer is sent one. */
static void both_ends_come_to_matching_verdicts(void **state)
{
    const struct qp_info ends[] = {
        {.number = 1},
        {.number = 1, .connected_to = 2, .turn = 5},
        {.number = 1, .connected_to = 2, .turn = 6},
        {.number = 1, .connected_to = 3, .turn = 5},
    };
    const struct qp_info others[] = {
        {.number = 2},
        {.number = 2, .connected_to = 1, .turn = 5},
        {.number = 4, .connected_to = 1, .turn = 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (size_t j = 0; j < sizeof others / sizeof others[0]; j++) {
            enum qp_agreement a = qp_negotiate(&ends[i], &others[j]);
            enum qp_agreement b = qp_negotiate(&others[j], &ends[i]);
            bool a_renews = a == QP_REPLACE || a == QP_REPLACE_AND_AWAIT;
            bool b_awaits = b == QP_AWAIT || b == QP_REPLACE_AND_AWAIT;

            assert_int_equal(a == QP_REUSE, b == QP_REUSE);
            assert_int_equal(a == QP_CONNECT, b == QP_CONNECT);
            assert_int_equal(a_renews, b_awaits);
            assert_int_equal(a == QP_REUSE, i == 1 && j == 1);
        }
    }
}

static struct verbs_gid gid(uint32_t index, enum verbs_gid_type type, uint8_t first, bool ipv4)
{
    struct verbs_gid made = {.index = index, .type = type};

    made.bytes[0] = first;
    made.bytes[1] = first == 0xfe ? 0x80 : 0;
    if (ipv4)
        made.bytes[10] = made.bytes[11] = 0xff;
    made.bytes[15] = (uint8_t)(index + 1);
    return made;
}

static void the_best_gid_is_chosen(void **state)
{
    const struct verbs_gid table[] = {
        gid(0, VERBS_GID_ROCE_V1, 0xfe, false), gid(1, VERBS_GID_ROCE_V2, 0xfe, false),
        gid(2, VERBS_GID_ROCE_V1, 0, true),     gid(3, VERBS_GID_ROCE_V2, 0, true),
        gid(4, VERBS_GID_ROCE_V1, 0x20, false), gid(5, VERBS_GID_ROCE_V2, 0x20, false),
        gid(6, VERBS_GID_ROCE_V2, 0, true),
    };

    (void)state;
    assert_int_equal(verbs_gid_choose(table, 7, 0)->index, 3);
    assert_int_equal(verbs_gid_choose(table, 7, 4)->index, 3);
    assert_int_equal(verbs_gid_choose(table, 7, 6)->index, 5);
    assert_int_equal(verbs_gid_choose(table, 3, 4)->index, 1); /* v2 before an address in v1 */
    assert_int_equal(verbs_gid_choose(table, 2, 0)->index, 1);
    assert_int_equal(verbs_gid_choose(table, 1, 0)->index, 0);
    assert_null(verbs_gid_choose(table, 0, 0));
}

static void gids_are_written_as_addresses(void **state)
{
    const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [14] = 0, [15] = 1};
    char text[VERBS_GID_TEXT];

    (void)state;
    assert_true(verbs_gid_is_ipv4(mapped));
    assert_false(verbs_gid_is_link_local(mapped));
    assert_string_equal(verbs_gid_text(mapped, text), "::ffff:10.9.0.1");
}

static struct qp_key key(uint8_t number)
{
    return (struct qp_key){.bytes = {number}};
}

static void the_longest_unused_gives_way(void **state)
{
    static struct qp_cache cache;
    struct cached_qp cached[6];
    struct qp_key wanted;

    (void)state;
    qp_cache_init(&cache);
    for (uint8_t i = 0; i < 6; i++) {
        cached[i].key = key(i % 5); /* the first and the last are alike */
        qp_cache_put(&cache, &cached[i]);
    }
    assert_int_equal(cache.count, 6);
    wanted = key(0);
    assert_ptr_equal(qp_cache_take(&cache, &wanted), &cached[5]);
    assert_ptr_equal(qp_cache_take(&cache, &wanted), &cached[0]);
    assert_null(qp_cache_take(&cache, &wanted));
    assert_ptr_equal(qp_cache_evict(&cache, 2), &cached[1]);
    assert_ptr_equal(qp_cache_evict(&cache, 2), &cached[2]);
    assert_null(qp_cache_evict(&cache, 2));
    assert_ptr_equal(qp_cache_evict(&cache, 0), &cached[3]);
    assert_ptr_equal(qp_cache_evict(&cache, 0), &cached[4]);
    assert_null(qp_cache_evict(&cache, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_survives_its_blob),
        cmocka_unit_test(both_ends_come_to_matching_verdicts),
        cmocka_unit_test(the_best_gid_is_chosen),
        cmocka_unit_test(gids_are_written_as_addresses),
        cmocka_unit_test(the_longest_unused_gives_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
