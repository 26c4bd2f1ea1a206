/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes of datagrams: the seal covers every bit, and every invalid field is refused. Then a
 * seeded, bounded run of the fuzzer's entry point (tests/fuzz/datagram.c) with almost valid inputs:
 * datagrams of each type come back as they were written.
 */
#include "../fuzz/fuzz.h"
#include "datagram.h"
#include "prng.h"
#include "unit.h"

#define FUZZ_ROUNDS 3000

static const uint8_t key[DATAGRAM_KEY_BYTES] = {1};

static void fill(void *bytes, size_t size, uint64_t *random)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)prng_next(random);
}

static struct datagram random_datagram(unsigned type, uint64_t *random)
{
    struct datagram datagram = {.type = (uint8_t)type, .round = (uint8_t)prng_next(random)};

    fill(&datagram.sender, 4 * sizeof(datagram.sender), random);
    fill(&datagram.from, offsetof(struct datagram, values) - offsetof(struct datagram, from),
         random);
    datagram.from |= 1;
    datagram.root_bound_ns = (int64_t)(prng_next(random) >> 1) - 1;
    if (type == DATAGRAM_ARRIVAL) {
        fill(&datagram.values, sizeof(datagram.values), random);
        for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
            if (prng_next(random) % 2 != 0)
                datagram.values.maximum[i] = INT64_MIN;
    } else if (type == DATAGRAM_ABORT) {
        size_t length = prng_next(random) % sizeof(datagram.fault.text);

        fill(&datagram.fault, offsetof(struct control_fault, missing), random);
        datagram.fault.missing = prng_next(random) % 2;
        datagram.fault.heard = prng_next(random) % 2;
        datagram.fault.silence_ns = (int64_t)(prng_next(random) >> 1) - 1;
        for (size_t i = 0; i < length; i++)
            datagram.fault.text[i] = (char)(' ' + prng_next(random) % 95);
    } else if (type == DATAGRAM_FETCH || type == DATAGRAM_BLOB) {
        datagram.id = prng_next(random);
    }
    if (type == DATAGRAM_BLOB) {
        fill(datagram.blob.bytes, sizeof(datagram.blob.bytes), random);
        datagram.blob.size = (uint16_t)(prng_next(random) % (BLOB_BYTES_MAX + 1));
    }
    return datagram;
}

/* A datagram is refused under another key, run id or number of nodes, with any bit changed, and at
 * any other length. */
TEST(refuses_what_is_not_as_it_was_sealed)
{
    uint8_t run_key[DATAGRAM_KEY_BYTES] = {1}, keys[4][DATAGRAM_KEY_BYTES];
    uint64_t random = 2;

    datagram_key(keys[0], run_key, "run", 3);
    datagram_key(keys[1], run_key, "run", 4);
    datagram_key(keys[2], run_key, "ran", 3);
    run_key[31] = 1;
    datagram_key(keys[3], run_key, "run", 3);
    for (unsigned type = 1; type < DATAGRAM_TYPES; type++) {
        struct datagram datagram = random_datagram(type, &random), back;
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
        struct datagram datagram = {.type = wrong[i].type, .from = 1}, back;
        uint8_t bytes[DATAGRAM_MAX];
        size_t size;

        if (wrong[i].type == DATAGRAM_ARRIVAL) {
            barrier_values_clear(&datagram.values);
            datagram.values.maximum[0] = 0;
        }
        if (wrong[i].type == DATAGRAM_ABORT)
            memset(datagram.fault.text, 'x', sizeof(datagram.fault.text) - 1);
        size = datagram_write(&datagram, key, bytes);
        assert_true(datagram_read(&back, bytes, size, key));
        bytes[wrong[i].offset] = wrong[i].value;
        datagram_seal(bytes, size - DATAGRAM_SEAL_BYTES, key);
        if (datagram_read(&back, bytes, size, key))
            fail_msg("case %zu was accepted", i);
    }
}

/* One record of the fuzzer's input: a datagram that could be right for node 6 of 11, then, one
 * time in four, damaged. */
static size_t fuzz_record(uint8_t *bytes, uint64_t *random)
{
    struct datagram datagram =
        random_datagram(1 + (unsigned)(prng_next(random) % (DATAGRAM_TYPES - 1)), random);
    size_t size;

    datagram.recipient = 6;
    datagram.sender = (uint32_t)(prng_next(random) % 12);
    datagram.epoch = (uint32_t)(prng_next(random) % 4) - 1;
    datagram.round = (uint8_t)(prng_next(random) % 5);
    datagram.from = 1 + datagram.sender;
    if (prng_next(random) % 4 == 0)
        datagram.from++; /* another process */
    datagram.to = prng_next(random) % 8 == 0 ? 0 : 1;
    if (datagram.type == DATAGRAM_ABORT)
        datagram.fault.node %= 12;
    bytes[0] = (uint8_t)(prng_next(random) % 60);
    size = datagram_write(&datagram, key, bytes + 3) - DATAGRAM_SEAL_BYTES;
    if (prng_next(random) % 4 == 0)
        bytes[3 + prng_next(random) % size] ^= (uint8_t)(1 << prng_next(random) % 8);
    bytes[1] = (uint8_t)(size >> 8);
    bytes[2] = (uint8_t)size;
    return size + 3;
}

TEST(survives_the_fuzzer)
{
    uint64_t random = 4;

    for (unsigned round = 0; round < FUZZ_ROUNDS; round++) {
        uint8_t bytes[20 * (DATAGRAM_MAX + 3)];
        size_t size = 0;

        for (unsigned records = 0; records < 20; records++)
            size += fuzz_record(bytes + size, &random);
        assert_int_equal(LLVMFuzzerTestOneInput(bytes, size), 0);
        fill(bytes, 600, &random);
        assert_int_equal(LLVMFuzzerTestOneInput(bytes, 600), 0);
    }
}
