/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How messages are cut into frames and put together again: by hand, and with frames that are lost,
 * doubled and out of order, against a judge that remembers all.
 */
#include "message.h"

#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct frame_shape shape_of(enum header_kind kind, bool vlan)
{
    const struct dpdk_options options = {.header = kind, .vlan = vlan, .vlan_id = 7, .ttl = 64};
    struct frame_shape shape;

    frame_shape(&shape, &options, 0x1234);
    return shape;
}

/* --- on the wire --- */

#define FRAME_BYTES 200u
#define LENGTH (FRAME_BYTES - FRAME_FCS)

/* The UDP checksum as a host would verify it: over the pseudo header (addresses, protocol, length)
 * and every byte of the datagram. */
static bool udp_right(const struct frame_shape *shape, const uint8_t *frame)
{
    const uint8_t *udp = frame + shape->payload - FRAME_UDP;
    uint32_t length = (uint32_t)(frame + LENGTH - udp);
    uint64_t sum = htobe16(IPPROTO_UDP) + (uint32_t)htobe16((uint16_t)length);

    return checksum_right(checksum_add(sum, udp - 8, 8 + length));
}

/* Whatever the segment's number is, the frame's UDP checksum stays right; and a damaged header is
 * seen as such. */
static void test_segment_header(void **state)
{
    static const uint32_t numbers[] = {0, 1, 255, 65535, 65536, 0x12345678, SEGMENT_END};
    const struct frame_end ends[2] = {{.mac = {2}, .ipv4 = {10, 0, 0, 1}, .rank = 3},
                                      {.mac = {4}, .ipv4 = {10, 0, 0, 2}, .rank = 5}};
    struct frame_shape shape = shape_of(HEADER_IPV4_UDP, false);
    uint32_t head = shape.payload + SIGNATURE_BYTES;
    struct frame_template template;
    uint8_t frame[LENGTH];
    struct segment *segment = (struct segment *)(frame + head);

    frame_template(&template, &shape, ends, 0, FRAME_BYTES);
    memcpy(frame + head, fill_table()->bytes, LENGTH - head);
    memcpy(frame, template.bytes, FRAME_TEMPLATE);
    assert_true(udp_right(&shape, frame));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        segment_write(segment, numbers[i]);
        assert_int_equal(be32toh(segment->number), numbers[i]);
        assert_true(segment_sound(segment));
        assert_true(udp_right(&shape, frame));
        for (unsigned bit = 0; bit < 8 * SEGMENT_BYTES; bit++) {
            frame[head + bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(segment_sound(segment));
            assert_false(udp_right(&shape, frame));
            frame[head + bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

/* --- how messages are cut --- */

static void check_cut(const struct segmentation *segmentation, uint32_t frame_bytes, uint32_t bytes)
{
    uint32_t segments = message_segments(segmentation, bytes), sum = 0;

    assert_true(segments >= 1);
    for (uint32_t i = 0; i < segments; i++) {
        uint32_t part = message_part(segmentation, bytes, i),
                 length = message_length(segmentation, bytes, i);

        assert_in_range(part, 1, segmentation->room);
        if (i + 1 < segments)
            assert_int_equal(part, segmentation->room);
        assert_true(length >= segmentation->least && length + FRAME_FCS <= frame_bytes);
        assert_true(length >= segmentation->head + part);
        sum += part;
    }
    assert_int_equal(sum, bytes);
}

static void test_cut_covers_each_message_once(void **state)
{
    static const uint32_t frames[] = {128, 1518, 9216};
    struct segmentation segmentation;

    for (int kind = HEADER_L2; kind <= HEADER_IPV6_UDP; kind++) {
        for (int vlan = 0; vlan < 2; vlan++) {
            struct frame_shape shape = shape_of((enum header_kind)kind, vlan);

            for (size_t f = 0; f < sizeof frames / sizeof frames[0]; f++) {
                assert_true(segmentation_make(&segmentation, &shape, frames[f]));
                for (uint32_t near = 0; near < 3; near++) {
                    check_cut(&segmentation, frames[f], 1 + near);
                    check_cut(&segmentation, frames[f], segmentation.room - 1 + near);
                    check_cut(&segmentation, frames[f], 4 * segmentation.room - 1 + near);
                    check_cut(&segmentation, frames[f], (4u << 20) - 1 + near);
                }
            }
            assert_int_equal(message_segments(&segmentation, MESSAGE_BYTES_MAX),
                             (MESSAGE_BYTES_MAX + segmentation.room - 1) / segmentation.room);
        }
    }
}

static void test_frames_without_room(void **state)
{
    struct frame_shape small = shape_of(HEADER_L2, false), large = shape_of(HEADER_IPV6_UDP, true);
    struct segmentation segmentation;

    assert_true(segmentation_make(&segmentation, &small, 64));
    assert_int_equal(segmentation.room,
                     64 - FRAME_FCS - FRAME_ETHERNET - SIGNATURE_BYTES - SEGMENT_BYTES);
    assert_false(segmentation_make(&segmentation, &small, 63));
    assert_false(segmentation_make(&segmentation, &large,
                                   large.payload + SIGNATURE_BYTES + SEGMENT_BYTES + FRAME_FCS));
    assert_true(segmentation_make(&segmentation, &large,
                                  large.payload + SIGNATURE_BYTES + SEGMENT_BYTES + FRAME_FCS + 1));
    assert_int_equal(segmentation.room, 1);
}

/* --- putting them together --- */

#define ROOM 200u

static struct reassembly make(void)
{
    struct reassembly reassembly;

    assert_int_equal(reassembly_make(&reassembly, ROOM), 0);
    return reassembly;
}

static void test_order_does_not_matter(void **state)
{
    static const uint32_t orders[][5] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}};
    static const uint32_t reordered[] = {0, 4, 3};
    struct reassembly reassembly = make();

    for (uint32_t n = 0; n < 3; n++) {
        uint32_t late = 0;

        assert_true(reassembly_is_new(&reassembly, n));
        reassembly_begin(&reassembly, n, 5);
        for (unsigned i = 0; i < 5; i++) {
            assert_false(reassembly_whole(&reassembly));
            late += reassembly_take(&reassembly, n, orders[n][i]) == SEQUENCE_REORDERED;
        }
        assert_true(reassembly_whole(&reassembly));
        assert_int_equal(late, reordered[n]);
    }
    assert_int_equal(reassembly.broken, 0);
    reassembly_free(&reassembly);
}

static void test_duplicates_and_late_rounds(void **state)
{
    struct reassembly reassembly = make();

    assert_int_equal(reassembly_take(&reassembly, 0, 0), SEQUENCE_LATE); /* nothing has begun */
    reassembly_begin(&reassembly, 0, 3);
    assert_int_equal(reassembly_take(&reassembly, 0, 1), SEQUENCE_FRESH);
    assert_int_equal(reassembly_take(&reassembly, 0, 1), SEQUENCE_DUPLICATE);
    reassembly_begin(&reassembly, 4, 2); /* 0 stays incomplete, 1 to 3 were lost whole */
    assert_int_equal(reassembly.broken, 1);
    assert_int_equal(reassembly_take(&reassembly, 0, 0), SEQUENCE_LATE);
    assert_int_equal(reassembly_take(&reassembly, 3, 0), SEQUENCE_LATE);
    assert_int_equal(reassembly_take(&reassembly, 4, 0), SEQUENCE_FRESH);
    assert_int_equal(reassembly_take(&reassembly, 4, 1), SEQUENCE_FRESH);
    assert_true(reassembly_whole(&reassembly));
    assert_int_equal(reassembly_take(&reassembly, 4, 1), SEQUENCE_DUPLICATE); /* of a whole one */
    assert_true(reassembly_whole(&reassembly));
    reassembly_begin(&reassembly, 5, 2);
    assert_int_equal(reassembly_take(&reassembly, 5, 0), SEQUENCE_FRESH);
    reassembly_give_up(&reassembly);
    assert_int_equal(reassembly_take(&reassembly, 5, 1), SEQUENCE_LATE);
    assert_false(reassembly_whole(&reassembly));
    assert_int_equal(reassembly.broken, 2);
    reassembly_free(&reassembly);
}

/* 32 bits on the wire wrap; the number does not. */
static void test_numbers_wrap(void **state)
{
    struct reassembly reassembly = make();

    reassembly_begin(&reassembly, UINT32_MAX - 1, 1);
    for (uint64_t n = UINT32_MAX; n < (uint64_t)UINT32_MAX + 4; n++) {
        assert_true(reassembly_is_new(&reassembly, (uint32_t)n));
        assert_true(reassembly_number(&reassembly, (uint32_t)n) == n);
        reassembly_begin(&reassembly, n, 1);
        assert_int_equal(reassembly_take(&reassembly, n, 0), SEQUENCE_FRESH);
        assert_false(reassembly_is_new(&reassembly, (uint32_t)n));
        assert_false(reassembly_is_new(&reassembly, (uint32_t)n - 1));
        assert_true(reassembly_number(&reassembly, (uint32_t)n - 1) == n - 1);
    }
    reassembly_free(&reassembly);
}

/* Numbers before the first are no new ones. */
static void test_before_the_first(void **state)
{
    struct reassembly reassembly = make();

    assert_false(reassembly_is_new(&reassembly, UINT32_MAX));
    assert_int_equal(reassembly_take(&reassembly, reassembly_number(&reassembly, UINT32_MAX), 0),
                     SEQUENCE_LATE);
    reassembly_free(&reassembly);
}

/* --- a lossy network --- */

#define ROUNDS 3000u

static uint64_t random_state = 42;

static uint32_t below(uint32_t n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545f4914f6cdd1dULL >> 32) * n >> 32);
}

/* One message's frames as they arrive: shuffled, some missing, some twice. */
static uint32_t deliver(uint32_t segments, uint32_t *arrivals)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < segments; i++)
        for (uint32_t copies = below(50) == 0 ? 0 : 1 + (below(30) == 0); copies > 0; copies--)
            arrivals[count++] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = below(i), kept = arrivals[i - 1];

        arrivals[i - 1] = arrivals[j];
        arrivals[j] = kept;
    }
    return count;
}

static void test_lossy_network(void **state)
{
    struct reassembly reassembly = make();
    uint32_t whole = 0, broken = 0;

    for (uint64_t n = 0; n < ROUNDS; n++) {
        uint32_t segments = 1 + below(ROOM), arrivals[2 * ROOM], greatest = 0, distinct = 0;
        bool seen[ROOM] = {false};
        uint32_t count = deliver(segments, arrivals);

        reassembly_begin(&reassembly, n, segments);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t segment = arrivals[i];
            enum sequence_verdict right = seen[segment]        ? SEQUENCE_DUPLICATE
                                          : segment < greatest ? SEQUENCE_REORDERED
                                                               : SEQUENCE_FRESH;

            if (n > 0 && below(100) == 0)
                assert_int_equal(reassembly_take(&reassembly, n - 1, 0), SEQUENCE_LATE);
            assert_int_equal(reassembly_take(&reassembly, n, segment), right);
            distinct += !seen[segment];
            seen[segment] = true;
            greatest = segment > greatest ? segment : greatest;
            assert_int_equal(reassembly_whole(&reassembly), distinct == segments);
        }
        whole += distinct == segments;
        broken += distinct < segments;
    }
    reassembly_give_up(&reassembly);
    assert_int_equal(reassembly.broken, broken);
    assert_true(whole > ROUNDS / 10 && broken > ROUNDS / 10);
    reassembly_free(&reassembly);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment_header),
        cmocka_unit_test(test_cut_covers_each_message_once),
        cmocka_unit_test(test_frames_without_room),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_duplicates_and_late_rounds),
        cmocka_unit_test(test_numbers_wrap),
        cmocka_unit_test(test_before_the_first),
        cmocka_unit_test(test_lossy_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
