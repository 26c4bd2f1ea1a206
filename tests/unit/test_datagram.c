/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes of datagrams: the seal covers every bit, and every invalid field is refused. Whether
 * accepted ones are written back as they came is for the fuzzer (tests/fuzz/datagram.c).
 */
#include "datagram.h"
#include "unit.h"

static const uint8_t key[DATAGRAM_KEY_BYTES] = {1};

/* A valid datagram of a type. */
static struct datagram a_datagram(uint8_t type)
{
    struct datagram datagram = {.type = type, .from = 1};

    if (type == DATAGRAM_ARRIVAL) {
        barrier_values_clear(&datagram.values);
        datagram.values.maximum[0] = 0;
    }
    if (type == DATAGRAM_ABORT)
        memset(datagram.fault.text, 'x', sizeof(datagram.fault.text) - 1);
    return datagram;
}

/* A datagram is refused under another key, run id or number of nodes, with any bit changed, and at
 * any other length. */
TEST(refuses_what_is_not_as_it_was_sealed)
{
    uint8_t run_key[DATAGRAM_KEY_BYTES] = {1}, keys[4][DATAGRAM_KEY_BYTES];

    datagram_key(keys[0], run_key, "run", 3);
    datagram_key(keys[1], run_key, "run", 4);
    datagram_key(keys[2], run_key, "ran", 3);
    run_key[31] = 1;
    datagram_key(keys[3], run_key, "run", 3);
    for (uint8_t type = 1; type < DATAGRAM_TYPES; type++) {
        struct datagram datagram = a_datagram(type), back;
        uint8_t bytes[DATAGRAM_MAX + 1] = {0};
        size_t right = datagram_write(&datagram, keys[0], bytes);

        for (size_t i = 0; i < 4; i++)
            assert_int_equal(datagram_read(&back, bytes, right, keys[i]), i == 0);
        for (size_t bit = 0; bit < right * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(datagram_read(&back, bytes, right, keys[0]));
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t size = 0; size <= sizeof(bytes); size++)
            assert_int_equal(datagram_read(&back, bytes, size, keys[0]), size == right);
    }
}

/* Fields that are refused even from a holder of the key. */
TEST(refuses_impossible_fields)
{
#define AT(member) offsetof(struct datagram, member)
    static const struct {
        uint8_t type;
        size_t offset;
        uint8_t value;
    } wrong[] = {
        {DATAGRAM_BEAT, AT(magic), 'T'},
        {DATAGRAM_BEAT, AT(version), 4},
        {DATAGRAM_BEAT, AT(type), 0},
        {DATAGRAM_BEAT, AT(type), DATAGRAM_TYPES},
        {DATAGRAM_BEAT, AT(zero), 1},
        {DATAGRAM_BEAT, AT(zero) + 2, 1},
        {DATAGRAM_BEAT, AT(from), 0},
        {DATAGRAM_BEAT, AT(root_bound_ns) + 7, 0x80}, /* far below -1 */
        {DATAGRAM_ARRIVAL, AT(values.said), BARRIER_MAXIMA + 1},
        {DATAGRAM_ARRIVAL, AT(values.said), 0},           /* fewer than there are bytes for */
        {DATAGRAM_ARRIVAL, AT(values.maximum) + 7, 0x80}, /* the last maximum is not present */
        {DATAGRAM_ABORT, AT(fault.missing), 2},
        {DATAGRAM_ABORT, AT(fault.impossible), 2},
        {DATAGRAM_ABORT, AT(fault.heard), 2},
        {DATAGRAM_ABORT, AT(fault.zero), 1},
        {DATAGRAM_ABORT, AT(fault.silence_ns) + 7, 0x80},
        {DATAGRAM_ABORT, AT(fault.text) + 255, 'x'}, /* a text without an end */
        {DATAGRAM_ABORT, AT(fault.text), '\n'},
        {DATAGRAM_ABORT, AT(fault.text), 0}, /* characters behind the text's end */
        {DATAGRAM_ABORT, AT(fault.text), 0x80},
        {DATAGRAM_BLOB, AT(blob.size), BLOB_BYTES_MAX + 1},
    };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct datagram datagram = a_datagram(wrong[i].type), back;
        uint8_t bytes[DATAGRAM_MAX];
        size_t size = datagram_write(&datagram, key, bytes);

        assert_true(datagram_read(&back, bytes, size, key));
        bytes[wrong[i].offset] = wrong[i].value;
        datagram_seal(bytes, size - DATAGRAM_SEAL_BYTES, key);
        if (datagram_read(&back, bytes, size, key))
            fail_msg("case %zu was accepted", i);
    }
}
