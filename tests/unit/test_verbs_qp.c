/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What decides on queue pairs, without a device: infos and what both ends make of them, GIDs, and
 * which one serves for another.
 */
#include "gid.h"
#include "qp_config.h"
#include "qp_info.h"

#include <string.h>

#include <cmocka.h>

static void an_info_survives_its_blob(void **state)
{
    struct qp_info info = {
        .number = 0x123456,
        .connected_to = 77,
        .turn = 0xfffffff0,
        .packet = 0xabcdef,
        .queue_key = 0x7fffffff,
        .lid = 0xc001,
        .mtu = 4096,
        .gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9},
        .ring = {.address = 0x7f0000001000, .key = 0x1234},
        .slots = 256,
        .stride = 65536,
        .first = 255,
        .control = {.address = 0x7f0000000000, .key = 0x5678},
    };
    struct qp_info back;
    struct blob blob;

    qp_info_write(&info, &blob);
    assert_true(blob.size <= BLOB_BYTES_MAX);
    assert_true(qp_info_read(&back, &blob));
    info.version = back.version;
    assert_memory_equal(&back, &info, sizeof info);
    blob.bytes[3]++; /* another version */
    assert_false(qp_info_read(&back, &blob));
    blob.size--;
    assert_false(qp_info_read(&back, &blob));
}

/* Only the two ends of one connected queue pair, which are at the same message, are reused. */
static void both_ends_come_to_the_same(void **state)
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

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (size_t j = 0; j < sizeof others / sizeof others[0]; j++) {
            bool connected = qp_info_connected(&ends[i], &others[j]);

            assert_int_equal(connected, i == 1 && j == 1);
            assert_int_equal(connected, qp_info_connected(&others[j], &ends[i]));
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

    assert_true(verbs_gid_is_ipv4(mapped));
    assert_false(verbs_gid_is_link_local(mapped));
    assert_string_equal(verbs_gid_text(mapped, text), "::ffff:10.9.0.1");
}

static struct qp_config config(uint16_t stream)
{
    return (struct qp_config){.options = {.depth = 64, .queue_pairs = 1, .timeout = 14},
                              .partner = {.lid = 7, .gid = {[15] = 3}},
                              .role = QP_SENDER,
                              .stream = stream,
                              .mtu = 1024,
                              .slots = 128,
                              .stride = 4096};
}

/* What decides on the queue pair must be equal; what only a phase does with it need not. */
static void a_queue_pair_serves_only_what_it_was_made_for(void **state)
{
    const struct verbs_gid table[2] = {{.index = 0}, {.index = 1}};
    const struct qp_config one = config(1);
    struct qp_config other;

#define DIFFERS(assignment)                                                                        \
    do {                                                                                           \
        other = one;                                                                               \
        other.assignment;                                                                          \
        assert_false(qp_config_equal(&one, &other));                                               \
    } while (0)
    DIFFERS(options.service = VERBS_UC);
    DIFFERS(options.operation = VERBS_WRITE);
    DIFFERS(options.depth++);
    DIFFERS(options.inline_bytes = VERBS_AUTOMATIC);
    DIFFERS(options.service_level++);
    DIFFERS(options.traffic_class++);
    DIFFERS(options.pkey_index++);
    DIFFERS(options.retry++);
    DIFFERS(options.rnr_retry++);
    DIFFERS(options.timeout++);
    DIFFERS(partner.lid++);
    DIFFERS(partner.gid[0]++);
    DIFFERS(gid = &table[1]);
    DIFFERS(role = QP_RECEIVER);
    DIFFERS(stream++);
    DIFFERS(mtu++);
    DIFFERS(slots++);
    DIFFERS(stride++);
    DIFFERS(forwards = true);
#undef DIFFERS
    other = one;
    other.options.queue_pairs = 3;
    other.options.signal_every = 5;
    other.options.reuse = 64;
    other.options.completion = VERBS_COMPLETION_EVENT;
    assert_true(qp_config_equal(&one, &other));
    assert_int_equal(qp_config_hash(&one), qp_config_hash(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_info_survives_its_blob),
        cmocka_unit_test(both_ends_come_to_the_same),
        cmocka_unit_test(the_best_gid_is_chosen),
        cmocka_unit_test(gids_are_written_as_addresses),
        cmocka_unit_test(a_queue_pair_serves_only_what_it_was_made_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
