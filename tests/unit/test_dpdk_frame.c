/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames as bytes: templates read by a parser that shares no code with what wrote them, checksums
 * that stay right for every sequence and time, and damage of any one bit that is found.
 */
#include "frame.h"

#include <stdint.h>
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

static const uint8_t *parse_udp(const uint8_t *at, const uint8_t *addresses, uint32_t bytes,
                                uint32_t length)
{
    uint8_t pseudo[4] = {0, 17, (uint8_t)(length >> 8), (uint8_t)length};

    assert_int_equal(be(at, 2), FRAME_UDP_SOURCE + 7);
    assert_int_equal(be(at + 2, 2), 9);
    assert_int_equal(be(at + 4, 2), length);
    assert_int_not_equal(be(at + 6, 2), 0);
    assert_int_equal(plain_sum(plain_sum(plain_sum(0, addresses, bytes), pseudo, 4), at, length),
                     0xffff);
    return at + 8;
}

static const uint8_t *parse_ipv4(const uint8_t *at, uint32_t length)
{
    assert_int_equal(at[0], 0x45);
    assert_int_equal(at[1], 46 << 2);
    assert_int_equal(be(at + 2, 2), length);
    assert_int_equal(be(at + 6, 2), 0x4000);
    assert_int_equal(at[8], 63);
    assert_int_equal(at[9], 17);
    assert_int_equal(plain_sum(0, at, 20), 0xffff);
    assert_memory_equal(at + 12, ends[0].ipv4, 4);
    assert_memory_equal(at + 16, ends[1].ipv4, 4);
    return parse_udp(at + 20, at + 12, 8, length - 20);
}

static const uint8_t *parse_ipv6(const uint8_t *at, uint32_t length)
{
    assert_int_equal(be(at, 4), 0x60000000 | 46u << 22);
    assert_int_equal(be(at + 4, 2), length - 40);
    assert_int_equal(at[6], 17);
    assert_int_equal(at[7], 63);
    assert_memory_equal(at + 8, ends[0].ipv6, 16);
    assert_memory_equal(at + 24, ends[1].ipv6, 16);
    return parse_udp(at + 40, at + 8, 32, length - 40);
}

static void parse(const uint8_t *frame, unsigned kind, uint32_t length, uint32_t sequence,
                  uint64_t time_ns)
{
    static const uint32_t types[] = {0x88b5, 0x0800, 0x86dd};
    const uint8_t *at = frame + 12, *end = frame + length;

    assert_memory_equal(frame, ends[1].mac, 6);
    assert_memory_equal(frame + 6, ends[0].mac, 6);
    if (kind % 2) {
        assert_int_equal(be(at, 4), 0x8100a123);
        at += 4;
    }
    assert_int_equal(be(at, 2), types[kind / 2]);
    at += 2;
    if (kind / 2 == 1)
        at = parse_ipv4(at, (uint32_t)(end - at));
    else if (kind / 2 == 2)
        at = parse_ipv6(at, (uint32_t)(end - at));
    assert_int_equal(be(at, 2), 0xbeef);
    assert_int_equal(be(at + 2, 2), 3);
    assert_int_equal(be(at + 4, 2), 40000);
    assert_int_equal(be(at + 6, 4), sequence);
    assert_int_equal(be(at + 10, 4), time_ns >> 16);
    assert_int_equal(be(at + 14, 2), time_ns & 0xffff);
    assert_int_equal(plain_sum(0, at, 18), 0xffff);
    assert_memory_equal(at + 18, fill_table()->bytes, (size_t)(end - at - 18));
}

/* Every size of every kind, odd ones too. */
static void test_templates_parse(void **state)
{
    static const uint32_t sequences[] = {0, 1, 0xffff, 0x10000, 0x7fffffff, 0xffffffff};
    static const int64_t times_ns[] = {0, 65535, 65536, 123456789012, 0xffffffffffff};
    static const uint32_t least[KINDS] = {64, 64, 64, 68, 84, 88};
    uint8_t frame[FRAME_SIZE_MAX + FRAME_TEMPLATE];

    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct frame_shape shape = shape_of(kind);

        assert_int_equal(frame_least(&shape), least[kind]);
        for (uint32_t size = frame_least(&shape); size <= FRAME_SIZE_MAX; size++) {
            uint32_t sequence = sequences[size % 6];
            int64_t time_ns = times_ns[size % 5];

            build(frame, &shape, size, sequence, time_ns);
            parse(frame, kind, size - 4, sequence, (uint64_t)time_ns);
            assert_true(sound(&shape, frame, size - 4));
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
            assert_int_equal(plain_sum(0, frame + shape.payload, 18), 0xffff);
            assert_true(sound(&shape, frame, 253));
        }
    }
}

/* Bits that switches and routers may change on the way: no checksum covers them. */
static bool may_change(const struct frame_shape *shape, uint32_t byte, unsigned bit)
{
    uint32_t ip = byte - shape->network;

    if (shape->vlan && byte == 14)
        return bit >= 4; /* PCP and DEI */
    if (shape->kind != HEADER_IPV6_UDP || byte < shape->network)
        return false;
    return (ip == 0 && bit < 4) || (ip == 1 && bit >= 4) || ip == 7; /* class, hop limit */
}

static void test_any_flipped_bit_is_found(void **state)
{
    uint8_t frame[2048];

    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct frame_shape shape = shape_of(kind);
        uint32_t length = 199 - 4;

        build(frame, &shape, 199, 0x12345678, 987654321);
        for (uint32_t byte = 12; byte < length; byte++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                frame[byte] ^= (uint8_t)(1u << bit);
                assert_int_equal(sound(&shape, frame, length), may_change(&shape, byte, bit));
                frame[byte] ^= (uint8_t)(1u << bit);
            }
        }
        assert_true(sound(&shape, frame, length));
        if (shape.kind != HEADER_L2) {
            assert_false(sound(&shape, frame, length - 1));
            assert_false(sound(&shape, frame, length + 1));
        }
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
        cmocka_unit_test(test_templates_parse),
        cmocka_unit_test(test_checksum_is_constant),
        cmocka_unit_test(test_any_flipped_bit_is_found),
        cmocka_unit_test(test_fill_sums),
        cmocka_unit_test(test_signature_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
