/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames as bytes: headers beside what stands here, checksums that stay right for every sequence
 * and time, and damage of any one bit that is found. (Wireshark reads them in
 * tests/system/test_capture.py.)
 */
#include "../fuzz/shapes.h"
#include "prng.h"
#include "unit.h"

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
static void check_sums(const uint8_t *frame, const struct frame_shape *shape, uint32_t length,
                       int64_t time_ns)
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
    assert_true(fuzz_sound(shape, frame, length));
    assert_int_equal(signature_ns((const struct signature *)payload), time_ns);
}

#define MACS "020000000002020000000001"
#define V4 "c6120001c6120002"
#define V6                                                                                         \
    "20010002000000000000000000000001"                                                             \
    "20010002000000000000000000000002"

/* Of a frame of 257 bytes, with the signature of number 0x12345678 at 0x123456789abc ns. */
TEST(headers_are_these)
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
        struct frame_shape shape = fuzz_shape(kind);
        uint8_t frame[512];
        char text[256] = "";

        fuzz_frame(frame, &shape, 257, 0x12345678, 0x123456789abc);
        for (uint32_t i = 0; i < shape.payload; i++)
            snprintf(text + 2 * i, 3, "%02x", frame[i]);
        assert_string_equal(text, expected[kind]);
        for (uint32_t i = 0; i < 16; i++)
            snprintf(text + 2 * i, 3, "%02x", frame[shape.payload + i]);
        assert_string_equal(text, signature);
    }
}

/* Of every size of every kind, odd ones too; whatever is stamped, the headers stay as they are. */
TEST(lengths_and_checksums_are_right)
{
    static const uint32_t sequences[] = {0, 1, 0xffff, 0x10000, 0x7fffffff, 0xffffffff};
    static const int64_t times_ns[] = {0, 65535, 65536, 123456789012, 0xffffffffffff};
    static const uint32_t least[KINDS] = {64, 64, 64, 68, 84, 88};
    static uint8_t frame[FRAME_SIZE_MAX + FRAME_TEMPLATE], first[sizeof frame];
    uint64_t random = 1;

    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct frame_shape shape = fuzz_shape(kind);

        assert_int_equal(frame_least(&shape), least[kind]);
        for (uint32_t size = frame_least(&shape); size <= FRAME_SIZE_MAX; size++) {
            uint64_t words[2] = {prng_next(&random), prng_next(&random)};

            fuzz_frame(first, &shape, size, sequences[size % 6], times_ns[size % 5]);
            check_sums(first, &shape, size - 4, times_ns[size % 5]);
            fuzz_frame(frame, &shape, size, (uint32_t)words[0], (int64_t)(words[1] >> 16));
            check_sums(frame, &shape, size - 4, (int64_t)(words[1] >> 16));
            assert_memory_equal(first, frame, shape.payload);
        }
    }
    assert_int_equal(signature_time(-5).sum, 0); /* before the start: the start */
}

/* As the fuzzer's entry point checks it. */
TEST(any_flipped_bit_is_found)
{
    for (uint8_t kind = 0; kind < KINDS; kind++)
        for (uint8_t place = 0; place < 112; place++)
            for (unsigned bit = 0; bit < 8; bit++) {
                const uint8_t input[] = {kind, 0, place, (uint8_t)(1u << bit)};

                assert_int_equal(LLVMFuzzerTestOneInput(input, sizeof input), 0);
            }
}
