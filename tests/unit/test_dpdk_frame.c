/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames as bytes: headers beside what stands here, checksums that stay right for every sequence
 * and time, and damage of any one bit that is found. (Wireshark reads them in
 * tests/system/test_capture.py.)
 */
#include "../fuzz/fuzz.h"
#include "frame.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define KINDS 6 /* three header kinds, without and with a VLAN tag */

static const struct frame_end ends[2] = {
    {{2, 0, 0, 0, 0, 1}, {198, 18, 0, 1}, {0x20, 1, 0, 2, [15] = 1}, 3},
    {{2, 0, 0, 0, 0, 2}, {198, 18, 0, 2}, {0x20, 1, 0, 2, [15] = 2}, 40000},
};

static struct frame_shape shape_of(unsigned kind)
{
    const struct dpdk_options options = {
        .header = (enum header_kind)(kind / 2),
        .vlan = kind % 2,
        .vlan_id = 0x123,
        .pcp = 5,
        .dscp = 46,
        .ttl = 63,
    };
    struct frame_shape shape;

    frame_shape(&shape, &options, 0xbeef);
    return shape;
}

/* The whole frame of a size, stamped. */
static void build(uint8_t *frame, const struct frame_shape *shape, uint32_t size, uint32_t sequence,
                  int64_t time_ns)
{
    struct frame_template template;
    struct signature_time time = signature_time(time_ns);
    uint32_t headers = shape->payload + SIGNATURE_BYTES;
    struct signature *signature = (struct signature *)(frame + shape->payload);

    frame_template(&template, shape, ends, 7, size);
    memcpy(frame + headers, fill_table()->bytes, size - FRAME_FCS - headers);
    memcpy(frame, template.bytes, FRAME_TEMPLATE);
    signature_stamp(signature, sequence, &time, signature_base(signature) + time.sum);
}

static bool sound(const struct frame_shape *shape, const uint8_t *frame, uint32_t length)
{
    struct frame_check check;
    struct frame_expect expect;

    frame_check(&check, shape);
    frame_expect(&expect, shape, length);
    switch (shape->kind) {
    case HEADER_L2:
        return frame_sound_l2(&check, &expect, frame);
    case HEADER_IPV4_UDP:
        return frame_sound_ipv4(&check, &expect, frame);
    default:
        return frame_sound_ipv6(&check, &expect, frame);
    }
}

/* RFC 1071, byte by byte: the parser's own. */
static uint32_t plain_sum(uint32_t sum, const uint8_t *data, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        sum += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

static uint32_t be(const uint8_t *at, unsigned bytes)
{
    uint32_t value = 0;

    while (bytes-- > 0)
        value = value << 8 | *at++;
    return value;
}

/* Lengths and checksums, of IPv4, of UDP with its pseudo header, of the signature; and the fill. */
static void check_sums(const uint8_t *frame, const struct frame_shape *shape, uint32_t length)
{
    const uint8_t *ip = frame + shape->network, *payload = frame + shape->payload;
    bool v6 = shape->kind == HEADER_IPV6_UDP;
    const uint8_t *udp = ip + (v6 ? 40 : 20);
    uint32_t rest = length - (uint32_t)(udp - frame);
    uint8_t pseudo[4] = {0, 17, (uint8_t)(rest >> 8), (uint8_t)rest};
    uint32_t addresses = plain_sum(0, v6 ? ip + 8 : ip + 12, v6 ? 32 : 8);

    if (shape->kind != HEADER_L2) {
        assert_int_equal(be(udp + 4, 2), rest);
        assert_int_equal(v6 ? be(ip + 4, 2) : be(ip + 2, 2) - 20, rest);
        assert_int_equal(v6 ? 0xffff : plain_sum(0, ip, 20), 0xffff);
        assert_int_not_equal(be(udp + 6, 2), 0);
        assert_int_equal(plain_sum(plain_sum(addresses, pseudo, 4), udp, rest), 0xffff);
    }
    assert_int_equal(plain_sum(0, payload, 18), 0xffff);
    assert_memory_equal(payload + 18, fill_table()->bytes, length - shape->payload - 18);
    assert_true(sound(shape, frame, length));
}

#define MACS "020000000002020000000001"
#define V4 "c6120001c6120002"
#define V6                                                                                         \
    "20010002000000000000000000000001"                                                             \
    "20010002000000000000000000000002"

/* Of a frame of 257 bytes, with the signature of number 0x12345678 at 0x123456789abc ns. */
static void test_headers_are_these(void **state)
{
    static const char *const expected[KINDS] = {
        MACS "88b5",
        MACS "8100a123"
             "88b5",
        MACS "0800"
             "45b8"
             "00ef000040003f11ae1e" V4 "c007000900dbe209",
        MACS "8100a123"
             "0800"
             "45b8"
             "00eb000040003f11ae22" V4 "c007000900d76416",
        MACS "86dd"
             "6b80"
             "000000c7113f" V6 "c007000900c7f149",
        MACS "8100a123"
             "86dd"
             "6b80"
             "000000c3113f" V6 "c007000900c3dc6b",
    };
    static const char signature[] = "beef00039c40"
                                    "12345678"
                                    "12345678"
                                    "9abc";

    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct frame_shape shape = shape_of(kind);
        uint8_t frame[512];
        char text[256] = "";

        build(frame, &shape, 257, 0x12345678, 0x123456789abc);
        for (uint32_t i = 0; i < shape.payload; i++)
            snprintf(text + 2 * i, 3, "%02x", frame[i]);
        assert_string_equal(text, expected[kind]);
        for (uint32_t i = 0; i < 16; i++)
            snprintf(text + 2 * i, 3, "%02x", frame[shape.payload + i]);
        assert_string_equal(text, signature);
    }
}

/* Of every size of every kind, odd ones too. */
static void test_lengths_and_checksums_are_right(void **state)
{
    static const uint32_t sequences[] = {0, 1, 0xffff, 0x10000, 0x7fffffff, 0xffffffff};
    static const int64_t times_ns[] = {0, 65535, 65536, 123456789012, 0xffffffffffff};
    static const uint32_t least[KINDS] = {64, 64, 64, 68, 84, 88};
    uint8_t frame[FRAME_SIZE_MAX + FRAME_TEMPLATE];

    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct frame_shape shape = shape_of(kind);

        assert_int_equal(frame_least(&shape), least[kind]);
        for (uint32_t size = frame_least(&shape); size <= FRAME_SIZE_MAX; size++) {
            build(frame, &shape, size, sequences[size % 6], times_ns[size % 5]);
            check_sums(frame, &shape, size - 4);
        }
    }
}

/* The checksum in the headers never changes, whatever is stamped. */
static void test_checksum_is_constant(void **state)
{
    uint8_t first[2048], frame[2048];
    uint64_t random = 88172645463325252u;

    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct frame_shape shape = shape_of(kind);

        build(first, &shape, 257, 0, 0);
        for (unsigned i = 0; i < 20000; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            build(frame, &shape, 257, (uint32_t)random, (int64_t)(random >> 16));
            assert_memory_equal(first, frame, shape.payload);
            check_sums(frame, &shape, 253);
        }
    }
}

/* As the fuzzer's entry point checks it. */
static void test_any_flipped_bit_is_found(void **state)
{
    for (uint8_t kind = 0; kind < KINDS; kind++)
        for (uint8_t place = 0; place < 112; place++)
            for (unsigned bit = 0; bit < 8; bit++) {
                const uint8_t input[] = {kind, 0, place, (uint8_t)(1u << bit)};

                assert_int_equal(LLVMFuzzerTestOneInput(input, sizeof input), 0);
            }
}

static void test_fill_sums(void **state)
{
    const struct fill *fill = fill_table();

    for (uint32_t n = 0; n <= FRAME_SIZE_MAX; n++) {
        uint32_t plain = plain_sum(0, fill->bytes, n);

        assert_int_equal(be16toh(fill->sum[n]), plain);
    }
}

static void test_signature_time(void **state)
{
    static const int64_t some[] = {0, 65535, 65536, 0x123456789abc, (INT64_C(1) << 48) - 1};
    struct signature signature = {.tag = htobe16(7), .src = htobe16(1), .dst = htobe16(2)};

    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct signature_time time = signature_time(some[i]);

        signature_stamp(&signature, (uint32_t)i, &time, signature_base(&signature) + time.sum);
        assert_true(signature_sound(&signature));
        assert_int_equal(signature_ns(&signature), some[i]);
    }
    assert_int_equal(signature_time(-5).sum, 0); /* before the start: the start */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_are_these),
        cmocka_unit_test(test_lengths_and_checksums_are_right),
        cmocka_unit_test(test_checksum_is_constant),
        cmocka_unit_test(test_any_flipped_bit_is_found),
        cmocka_unit_test(test_fill_sums),
        cmocka_unit_test(test_signature_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
