/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of frames from the network: the input is a byte that selects a port's headers, two bytes
 * of a place and a byte that is changed there, then a frame. The responder takes it (ARP, neighbour
 * discovery), and it is judged as a frame of a stream; no byte beyond its end is read. A changed
 * byte after the addresses of a valid frame is found, or is one that switches and routers may
 * change. tests/unit/test_dpdk_frame.c runs the same entry point with any compiler.
 */
#include "arp_nd_responder.h"
#include "shapes.h"

#include <string.h>

#define SIZE 128u

static const struct frame_end ends[2] = {
    {{2, 0, 0, 0, 0, 1}, {198, 18, 0, 1}, {0x20, 1, 0, 2, [15] = 1}, 3},
    {{2, 0, 0, 0, 0, 2}, {198, 18, 0, 2}, {0x20, 1, 0, 2, [15] = 2}, 40000},
};

struct frame_shape fuzz_shape(unsigned kind)
{
    const struct dpdk_options options = {
        .header = (enum header_kind)(kind / 2),
        .vlan = kind % 2 == 1,
        .vlan_id = 0x123,
        .pcp = 5,
        .dscp = 46,
        .ttl = 63,
    };
    struct frame_shape shape;

    frame_shape(&shape, &options, 0xbeef);
    return shape;
}

void fuzz_frame(uint8_t *frame, const struct frame_shape *shape, uint32_t size, uint32_t sequence,
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

bool fuzz_sound(const struct frame_shape *shape, const uint8_t *frame, uint32_t length)
{
    struct frame_check wanted;
    struct frame_expect expect;

    if (length < (uint32_t)shape->payload + SIGNATURE_BYTES || length > FRAME_SIZE_MAX - FRAME_FCS)
        return false;
    frame_check(&wanted, shape);
    frame_expect(&expect, shape, length);
    return frame_sound(&wanted, &expect, frame, shape->kind);
}

static void hear(const struct frame_shape *shape, const uint8_t *frame, uint32_t length)
{
    struct arp_nd_responder responder = {
        .has_ipv4 = true,
        .has_ipv6 = true,
        .has_gateway4 = true,
        .has_gateway6 = true,
        .ipv4_prefix = 24,
        .ipv6_prefix = 64,
        .kind = shape->kind,
        .vlan = shape->vlan,
        .vlan_tci = shape->vlan_tci,
    };
    uint8_t answer[RESPONDER_FRAME_MAX];
    uint32_t answer_length = 0;
    enum responder_verdict verdict;

    memcpy(responder.mac, ends[1].mac, sizeof responder.mac);
    memcpy(responder.ipv4, ends[1].ipv4, sizeof responder.ipv4);
    memcpy(responder.ipv6, ends[1].ipv6, sizeof responder.ipv6);
    memcpy(responder.gateway4, ends[0].ipv4, sizeof responder.gateway4);
    memcpy(responder.gateway6, ends[0].ipv6, sizeof responder.gateway6);
    verdict = responder_handle(&responder, frame, length, answer, &answer_length);
    check((verdict == RESPONDER_REPLIES) == (answer_length > 0));
    check(answer_length <= sizeof answer);
}

/* Bits that switches and routers may change: no checksum covers them. */
static uint8_t free_bits(const struct frame_shape *shape, uint32_t place)
{
    uint32_t ip = place - shape->network;

    if (shape->vlan && place == 14)
        return 0xf0; /* PCP and DEI */
    if (shape->kind != HEADER_IPV6_UDP || place < shape->network)
        return 0;
    return ip == 0 ? 0x0f : ip == 1 ? 0xf0 : ip == 7 ? 0xff : 0; /* class, hop limit */
}

/* A frame of the engine is valid. With a changed byte after the addresses, or with another length
 * than its headers have, it is not. */
static void damage(const struct frame_shape *shape, uint32_t place, uint8_t change)
{
    uint8_t frame[SIZE + FRAME_TEMPLATE] = {0};
    uint32_t length = SIZE - FRAME_FCS;

    fuzz_frame(frame, shape, SIZE, 0, 0);
    check(fuzz_sound(shape, frame, length));
    check(shape->kind == HEADER_L2 ||
          (!fuzz_sound(shape, frame, length - 1) && !fuzz_sound(shape, frame, length + 1)));
    place = 2 * FRAME_MAC + place % (length - 2 * FRAME_MAC);
    frame[place] ^= change;
    check(fuzz_sound(shape, frame, length) == ((change & (uint8_t)~free_bits(shape, place)) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct frame_shape shape;
    uint8_t *frame;

    if (size < 4)
        return 0;
    shape = fuzz_shape(bytes[0] % KINDS);
    damage(&shape, (uint32_t)bytes[1] << 8 | bytes[2], bytes[3]);
    size -= 4;
    frame = malloc(size); /* memory of its own, so that a sanitizer finds reads beyond its end */
    check(frame != NULL || size == 0);
    if (size > 0)
        memcpy(frame, bytes + 4, size);
    hear(&shape, frame, (uint32_t)size);
    (void)fuzz_sound(&shape, frame, (uint32_t)size);
    free(frame);
    return 0;
}
