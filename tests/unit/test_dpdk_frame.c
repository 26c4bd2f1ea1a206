/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames as bytes. Beside the rows of dpdk_frame.txt: headers, answers to ARP and neighbour
 * discovery, checksums that stay right for every sequence and time, and detection of any changed
 * bit. (Wireshark reads frames in tests/system/test_capture.py.)
 */
#include "../fuzz/shapes.h"
#include "arp_nd_responder.h"
#include "prng.h"
#include "unit.h"

/* Compute the checksum of RFC 1071 byte by byte, independent of the engine's. */
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

/* Check lengths and checksums (of IPv4, of UDP with its pseudo header, of the signature) and the
 * fill. */
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

static uint32_t read_hex(uint8_t *bytes, const char *hex)
{
    uint32_t length = 0;

    for (int used; sscanf(hex, " %2hhx%n", &bytes[length], &used) == 1; hex += used)
        length++;
    return length;
}

/* Make a frame with the signature of number 0x12345678 at 0x123456789abc ns. */
TEST_ROWS(headers_are_these, "header")
{
    static const uint8_t signature[] = {0xbe, 0xef, 0x00, 0x03, 0x9c, 0x40, 0x12, 0x34,
                                        0x56, 0x78, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc};
    struct frame_shape shape = fuzz_shape((unsigned)atoi(row->fields[0]));
    uint8_t frame[512], expected[128];

    fuzz_frame(frame, &shape, 257, 0x12345678, 0x123456789abc);
    assert_int_equal(read_hex(expected, row->fields[1]), shape.payload);
    assert_memory_equal(frame, expected, shape.payload);
    assert_memory_equal(frame + shape.payload, signature, sizeof signature);
}

/* Frames of every size and kind, also odd sizes: whatever the stamp, the headers stay the same. */
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
    assert_int_equal(signature_time(-5).sum, 0); /* a time before the start becomes the start */
}

/* Check a frame with the fuzzer's entry point. */
TEST(any_flipped_bit_is_found)
{
    for (uint8_t kind = 0; kind < KINDS; kind++)
        for (uint8_t place = 0; place < 112; place++)
            for (unsigned bit = 0; bit < 8; bit++) {
                const uint8_t input[] = {kind, 0, place, (uint8_t)(1u << bit)};

                assert_int_equal(LLVMFuzzerTestOneInput(input, sizeof input), 0);
            }
}

/* --- ARP and neighbour discovery --- */

static const uint8_t me[6] = {2, 0, 0, 0, 0, 0x11};
static const uint8_t other[6] = {2, 0, 0, 0, 0, 0x22};

static struct arp_nd_responder make(enum header_kind kind)
{
    const struct port_conf conf = {.name = "n0:e0",
                                   .ipv4 = "198.18.1.17/16",
                                   .ipv6 = "2001:2::11/64",
                                   .gateway = kind == HEADER_IPV6_UDP ? "2001:2::1" : "198.18.0.1"};
    struct arp_nd_responder responder = {.kind = kind};
    struct err err = {""};

    memcpy(responder.mac, me, sizeof me);
    assert_int_equal(responder_set_addresses(&responder, &conf, &err), 0);
    return responder;
}

TEST_ROWS(each_frame_is_taken_for_what_it_is, "frame")
{
    static const char *const verdicts[] = {[RESPONDER_IGNORES] = "ignores",
                                           [RESPONDER_CONSUMES] = "consumes",
                                           [RESPONDER_REPLIES] = "replies"};
    const bool finds = strcmp(row->fields[4], "gateway") == 0;
    struct arp_nd_responder responder =
        make(strcmp(row->fields[0], "ipv4") == 0 ? HEADER_IPV4_UDP : HEADER_IPV6_UDP);
    uint8_t frame[128], answer[RESPONDER_FRAME_MAX], expected[RESPONDER_FRAME_MAX] = {0};
    uint32_t length = read_hex(frame, row->fields[1]), answered = 0, due;

    for (uint32_t less = 0; less < length; less++)
        assert_int_equal(responder_handle(&responder, frame, less, answer, &answered),
                         RESPONDER_IGNORES);
    assert_string_equal(verdicts[responder_handle(&responder, frame, length, answer, &answered)],
                        row->fields[2]);
    due = read_hex(expected, row->fields[3]);
    assert_int_equal(answered, due > 0 && due < 60 ? 60 : due); /* the engine's frames are padded */
    assert_memory_equal(answer, expected, answered);
    assert_int_equal(responder.gateway_known, finds);
    if (finds)
        assert_memory_equal(responder.gateway_mac, other, 6);
}

/* A port announces itself to a multicast group, in frames of at least 60 bytes, so that every
 * switch learns its address; another responder accepts them, with and without a VLAN tag. */
TEST(announcements_are_heard)
{
    static const uint8_t groups[][6] = {[HEADER_L2] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                        [HEADER_IPV4_UDP] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                        [HEADER_IPV6_UDP] = {0x33, 0x33, 0, 0, 0, 1}};
    static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1}; /* RFC 4291 2.7.1 */
    static const uint8_t tag[] = {0x81, 0x00, 0x00, 0x4d};

    for (unsigned i = 0; i < 2 * COUNT(groups); i++) {
        struct arp_nd_responder one = make((enum header_kind)(i / 2)), two = one;
        uint8_t frame[RESPONDER_FRAME_MAX], answer[RESPONDER_FRAME_MAX];
        uint32_t length, at = 12, answered = 0;

        memcpy(one.mac, other, sizeof other);
        one.ipv4[3] = one.ipv6[15] = 0x22;
        one.vlan = i % 2;
        one.vlan_tci = 77;
        memset(frame, 0xee, sizeof frame);
        length = responder_announcement(&one, frame);
        assert_in_range(length, 60, RESPONDER_FRAME_MAX);
        assert_memory_equal(frame, groups[i / 2], 6);
        assert_memory_equal(frame + 6, other, 6);
        if (one.vlan) {
            assert_memory_equal(frame + at, tag, sizeof tag);
            at += sizeof tag;
        }
        if (one.kind == HEADER_IPV4_UDP) /* Ethernet 2 and ARP 28, then padding of zeros */
            for (at += 30; at < length; at++)
                assert_int_equal(frame[at], 0);
        if (one.kind == HEADER_IPV6_UDP)
            assert_memory_equal(frame + at + 26, all_nodes, sizeof all_nodes);
        assert_int_equal(responder_handle(&two, frame, length, answer, &answered),
                         RESPONDER_CONSUMES);
        assert_int_equal(answered, 0);
        assert_false(two.gateway_known);
    }
}

TEST(test_on_link)
{
    struct arp_nd_responder responder = make(HEADER_IPV4_UDP);
    struct frame_end near = {.ipv4 = {198, 18, 200, 1}}, far = {.ipv4 = {198, 19, 0, 1}};

    assert_true(responder_on_link(&responder, &near));
    assert_false(responder_on_link(&responder, &far));
    responder.ipv4_prefix = 15;
    assert_true(responder_on_link(&responder, &far));
    responder.ipv4_prefix = 16;
    responder.kind = HEADER_L2;
    assert_true(responder_on_link(&responder, &far));
}
