/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The datagram's bytes: each type comes back as it was written, every bit is covered by the seal,
 * whatever is not exactly right is refused; and a seeded, bounded run of the fuzzer's entry point
 * (tests/fuzz/datagram.c), with inputs that are near right ones.
 */
#include "barrier_sim.h"
#include "datagram.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADER_BYTES 80
#define FUZZ_ROUNDS 3000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const uint8_t key[DATAGRAM_KEY_BYTES] = {1, 2, 3};

static void fill(void *bytes, size_t size, uint64_t *random)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)sim_random(random);
}

static void random_abort(struct datagram_abort *abort, uint64_t *random)
{
    size_t length = sim_random(random) % sizeof(abort->fault.text);

    abort->heard = sim_random(random) % 2;
    abort->fault.missing = sim_random(random) % 2;
    abort->fault.impossible = sim_random(random) % 2;
    abort->fault.node = (uint32_t)sim_random(random);
    abort->fault.epoch = (uint32_t)sim_random(random);
    abort->fault.last_epoch = (uint32_t)sim_random(random);
    abort->fault.silence_ns = (int64_t)(sim_random(random) >> 1) - 1;
    for (size_t i = 0; i < length; i++)
        abort->fault.text[i] = (char)(' ' + sim_random(random) % 95);
}

static void random_body(struct datagram *datagram, uint64_t *random)
{
    switch (datagram->type) {
    case DATAGRAM_ABORT:
        random_abort(&datagram->abort, random);
        break;
    case DATAGRAM_ARRIVAL:
        fill(datagram->values.maximum, sizeof(datagram->values.maximum), random);
        for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
            if (sim_random(random) % 2)
                datagram->values.maximum[i] = INT64_MIN;
        datagram->values.states = (uint32_t)sim_random(random);
        break;
    case DATAGRAM_BLOB:
        datagram->blob.blob.size = (uint16_t)(sim_random(random) % (BLOB_BYTES_MAX + 1));
        fill(datagram->blob.blob.bytes, datagram->blob.blob.size, random);
        datagram->blob.id = sim_random(random);
        break;
    case DATAGRAM_FETCH:
        datagram->blob.id = sim_random(random);
        break;
    default:
        break;
    }
}

static struct datagram random_datagram(enum datagram_type type, uint64_t *random)
{
    struct datagram datagram;

    memset(&datagram, 0, sizeof(datagram));
    datagram.type = type;
    datagram.from = sim_random(random) | 1;
    datagram.to = sim_random(random);
    datagram.sender = (uint32_t)sim_random(random);
    datagram.recipient = (uint32_t)sim_random(random);
    datagram.entered = (uint32_t)sim_random(random);
    datagram.epoch = (uint32_t)sim_random(random);
    datagram.round = (uint8_t)sim_random(random);
    datagram.origin_ns = (int64_t)sim_random(random);
    datagram.receive_ns = (int64_t)sim_random(random);
    datagram.transmit_ns = (int64_t)sim_random(random);
    datagram.root_offset_ns = (int64_t)sim_random(random);
    datagram.root_bound_ns = (int64_t)(sim_random(random) >> 1) - 1;
    random_body(&datagram, random);
    return datagram;
}

static void comes_back_as_it_was_written(void **state)
{
    uint64_t random = 1;

    for (unsigned round = 0; round < 200; round++) {
        for (unsigned type = 1; type < DATAGRAM_TYPES; type++) {
            struct datagram written = random_datagram(type, &random), back;
            uint8_t bytes[DATAGRAM_MAX];
            size_t size = datagram_write(&written, key, bytes);

            assert_true(datagram_sealed(bytes, size, key));
            assert_int_equal(datagram_read(&back, bytes, size), 0);
            assert_memory_equal(&written, &back, sizeof(back));
        }
    }
}

static void has_a_documented_layout(void **state)
{
    struct datagram datagram = {.type = DATAGRAM_QUESTION,
                                .sender = 0x11121314,
                                .recipient = 0x21222324,
                                .entered = 0x31323334,
                                .epoch = 0x41424344,
                                .round = 0x51,
                                .from = 0x6162636465666768,
                                .to = 0x7172737475767778};
    static const uint8_t right[] = {'S',  'B',  4,    3,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22,
                                    0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44,
                                    0x51, 0,    0,    0,    0x61, 0x62, 0x63, 0x64, 0x65, 0x66,
                                    0x67, 0x68, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78};
    uint8_t bytes[DATAGRAM_MAX];

    assert_int_equal(datagram_write(&datagram, key, bytes), HEADER_BYTES + DATAGRAM_SEAL_BYTES);
    assert_memory_equal(bytes, right, sizeof(right));
}

/* Only the maxima that say something are sent. */
static void has_values_that_say_something(void **state)
{
    struct datagram datagram = {
        .type = DATAGRAM_ARRIVAL, .from = 1, .values = {.states = 0x61626364}};
    static const uint8_t right[] = {0,    0x09, 0,    0,    0,    0,    0,    0,
                                    0,    7,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xfe, 0x61, 0x62, 0x63, 0x64};
    uint8_t bytes[DATAGRAM_MAX];

    for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
        datagram.values.maximum[i] = INT64_MIN;
    datagram.values.maximum[0] = 7;
    datagram.values.maximum[3] = -2;
    assert_int_equal(datagram_write(&datagram, key, bytes),
                     HEADER_BYTES + sizeof(right) + DATAGRAM_SEAL_BYTES);
    assert_memory_equal(bytes + HEADER_BYTES, right, sizeof(right));
}

static void every_bit_is_sealed(void **state)
{
    uint64_t random = 2;
    uint8_t other[DATAGRAM_KEY_BYTES] = {1, 2, 4};

    for (unsigned type = 1; type < DATAGRAM_TYPES; type++) {
        struct datagram datagram = random_datagram(type, &random);
        uint8_t bytes[DATAGRAM_MAX];
        size_t size = datagram_write(&datagram, key, bytes);

        assert_false(datagram_sealed(bytes, size, other));
        assert_false(datagram_sealed(bytes, size - 1, key));
        for (size_t bit = 0; bit < size * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(datagram_sealed(bytes, size, key));
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    assert_false(datagram_sealed(other, DATAGRAM_SEAL_BYTES - 1, key));
}

static void refuses_every_other_length(void **state)
{
    uint64_t random = 3;

    for (unsigned type = 1; type < DATAGRAM_TYPES; type++) {
        struct datagram datagram = random_datagram(type, &random), back;
        uint8_t bytes[DATAGRAM_MAX + 1] = {0};
        size_t right = datagram_write(&datagram, key, bytes);

        for (size_t size = 0; size <= sizeof(bytes); size++)
            assert_int_equal(datagram_read(&back, bytes, size), size == right ? 0 : -EBADMSG);
    }
}

static void refuses_impossible_fields(void **state)
{
    static const struct {
        enum datagram_type type;
        size_t offset;
        uint8_t value;
    } wrong[] = {
        {DATAGRAM_BEAT, 0, 'T'},                    /* magic */
        {DATAGRAM_BEAT, 2, 1},                      /* version */
        {DATAGRAM_BEAT, 3, 0},                      /* type */
        {DATAGRAM_BEAT, 3, DATAGRAM_TYPES},         /* type */
        {DATAGRAM_BEAT, 3, 255},                    /* type */
        {DATAGRAM_BEAT, 21, 1},                     /* not zero */
        {DATAGRAM_BEAT, 23, 1},                     /* not zero */
        {DATAGRAM_BEAT, 31, 0},                     /* no nonce */
        {DATAGRAM_BEAT, 72, 0x80},                  /* bound far below -1 */
        {DATAGRAM_ARRIVAL, HEADER_BYTES, 0x80},     /* no such maximum */
        {DATAGRAM_ARRIVAL, HEADER_BYTES, 0},        /* one fewer than there are bytes for */
        {DATAGRAM_ARRIVAL, HEADER_BYTES + 2, 0x80}, /* said, and nothing */
        {DATAGRAM_ABORT, HEADER_BYTES, 8},          /* no such flag */
        {DATAGRAM_ABORT, HEADER_BYTES + 13, 0x80},  /* silence below -1 */
        {DATAGRAM_ABORT, HEADER_BYTES + 21, 1},     /* text longer than there is room */
        {DATAGRAM_ABORT, HEADER_BYTES + 23, '\n'},  /* not printable */
        {DATAGRAM_ABORT, HEADER_BYTES + 23, 0},     /* the same */
        {DATAGRAM_ABORT, HEADER_BYTES + 23, 0x80},  /* not ASCII */
        {DATAGRAM_BLOB, HEADER_BYTES + 8, 1},       /* blob longer than there is room */
    };

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct datagram datagram = {.type = wrong[i].type, .from = 1}, back;
        uint8_t bytes[DATAGRAM_MAX];
        size_t size;

        if (wrong[i].type == DATAGRAM_ABORT)
            strcpy(datagram.abort.fault.text, "text");
        size = datagram_write(&datagram, key, bytes);
        assert_int_equal(datagram_read(&back, bytes, size), 0);
        bytes[wrong[i].offset] = wrong[i].value;
        if (datagram_read(&back, bytes, size) != -EBADMSG)
            fail_msg("case %u was accepted", i);
    }
}

/* One record of the fuzzer's input: a datagram that could be right for node 6 of 11, then, one
 * time in four, damaged. */
static size_t fuzz_record(uint8_t *bytes, uint64_t *random)
{
    struct datagram datagram =
        random_datagram(1 + sim_random(random) % (DATAGRAM_TYPES - 1), random);
    size_t size;

    datagram.recipient = 6;
    datagram.sender = (uint32_t)(sim_random(random) % 12);
    datagram.epoch = (uint32_t)(sim_random(random) % 4) - 1;
    datagram.round = (uint8_t)(sim_random(random) % 5);
    datagram.from = 1 + datagram.sender;
    if (sim_random(random) % 4 == 0)
        datagram.from++; /* another process */
    datagram.to = sim_random(random) % 8 == 0 ? 0 : 1;
    if (datagram.type == DATAGRAM_ABORT)
        datagram.abort.fault.node %= 12;
    if (datagram.type >= DATAGRAM_FETCH && datagram.type <= DATAGRAM_BLOB)
        datagram.blob.id %= 2;
    bytes[0] = (uint8_t)(sim_random(random) % 60);
    size = datagram_write(&datagram, key, bytes + 3);
    if (sim_random(random) % 4 == 0)
        bytes[3 + sim_random(random) % size] ^= (uint8_t)(1 << sim_random(random) % 8);
    bytes[1] = (uint8_t)(size >> 8);
    bytes[2] = (uint8_t)size;
    return size + 3;
}

static void survives_the_fuzzer(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_documented_layout),
        cmocka_unit_test(comes_back_as_it_was_written),
        cmocka_unit_test(has_values_that_say_something),
        cmocka_unit_test(every_bit_is_sealed),
        cmocka_unit_test(refuses_every_other_length),
        cmocka_unit_test(refuses_impossible_fields),
        cmocka_unit_test(survives_the_fuzzer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
