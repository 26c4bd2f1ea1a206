/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames as bytes: headers, signature, fill. No I/O and nothing of DPDK's.
 *
 *     Ethernet 14 | 802.1Q 4 | IPv4 20 or IPv6 40, UDP 8 | signature 18 | fill
 *
 * Sizes count the FCS (RFC 2544), which the device adds: `length` is what lies in memory, 4 less.
 * The fill is the same pseudo-random bytes in every frame (a prefix of one table), so a receiver
 * compares instead of summing, and templates of one size may be copied over one another.
 */
#ifndef ENGINE_DPDK_FRAME_H
#define ENGINE_DPDK_FRAME_H

#include "signature.h"
#include "transport.h"

#include <netinet/in.h>

#define FRAME_SIZE_MAX 9216u
#define FRAME_MAC 6u
#define FRAME_ETHERNET 14u
#define FRAME_VLAN 4u
#define FRAME_UDP 8u
#define FRAME_IPV4 20u
#define FRAME_IPV6 40u

#define FRAME_TYPE_L2 0x88b5 /* IEEE 802 local experimental EtherType 1 (RFC 9542) */
#define FRAME_TYPE_IPV4 0x0800
#define FRAME_TYPE_ARP 0x0806
#define FRAME_TYPE_VLAN 0x8100
#define FRAME_TYPE_IPV6 0x86dd

/* UDP ports: sources count up from the first dynamic port (RFC 6335); the destination is discard
 * (RFC 863), which throws away any data that it receives. */
#define FRAME_UDP_SOURCE 49152
#define FRAME_UDP_SOURCES_MAX 16384
#define FRAME_UDP_DESTINATION 9

/* The first bytes of a frame: headers (66 at most), signature, and fill up to a round number that
 * is copied without a loop. Copying over a shorter frame writes fill behind its end: harmless. */
#define FRAME_TEMPLATE 96u
struct frame_template {
    uint8_t bytes[FRAME_TEMPLATE];
} __attribute__((aligned(32)));

/* One end of a flow. */
struct frame_end {
    uint8_t mac[FRAME_MAC];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint16_t rank;
};

/* What all frames of a phase have in common. */
struct frame_shape {
    enum header_kind kind;
    bool vlan;
    uint16_t vlan_tci;
    uint8_t traffic_class; /* DSCP in its upper six bits */
    uint8_t ttl;
    uint16_t tag;
    uint16_t network; /* offset of what follows Ethernet and 802.1Q */
    uint16_t payload; /* offset of the signature */
};

void frame_shape(struct frame_shape *shape, const struct dpdk_options *options, uint16_t tag);

/* The smallest size that holds headers and signature: 64 at least. */
uint32_t frame_least(const struct frame_shape *shape);

/* "l2", "ipv4-udp", "ipv6-udp". */
const char *frame_kind_name(enum header_kind kind);

/* The first FRAME_TEMPLATE bytes of the flow's frames of `size`, with a right UDP checksum and a
 * sound signature of sequence 0 at time 0. */
void frame_template(struct frame_template *out, const struct frame_shape *shape,
                    const struct frame_end ends[2], uint16_t udp_source, uint32_t size);

/* The fill's bytes, and the one's complement sum of its first n bytes at [n]. Made once. */
struct frame_fill {
    uint8_t bytes[FRAME_SIZE_MAX];
    uint16_t sum[FRAME_SIZE_MAX + 1];
};
const struct frame_fill *frame_fill(void);

/* What a receiver expects of its frames' headers, chosen once so that checking takes no option. */
struct frame_check {
    uint32_t outer; /* bytes 12 to 15: EtherType, or 802.1Q and VLAN id (PCP may be remarked) */
    uint32_t outer_mask;
    uint64_t ipv6; /* first 8 bytes of IPv6 but for length: a router may change class and limit */
    uint64_t ipv6_mask;
    uint16_t type;
    uint16_t network;
    uint16_t payload;
    const struct frame_fill *fill;
};

void frame_check(struct frame_check *check, const struct frame_shape *shape);

static inline uint16_t frame_u16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

/* EtherTypes are ours: 802.1Q and id when tagged, then the kind's. */
static inline bool frame_typed(const struct frame_check *check, const uint8_t *frame)
{
    uint32_t outer;

    memcpy(&outer, frame + 2 * FRAME_MAC, sizeof outer);
    return (outer & check->outer_mask) == check->outer &&
           frame_u16(frame + check->network - 2) == check->type;
}

/* Everything behind the signature is the fill. */
static inline bool frame_filled(const struct frame_check *check, const uint8_t *frame,
                                uint32_t length)
{
    uint32_t end = check->payload + SIGNATURE_BYTES;

    return length == end || memcmp(frame + end, check->fill->bytes, length - end) == 0;
}

/* The UDP checksum, the fill's part being known: pseudo header (addresses, protocol, length: RFC
 * 768, RFC 8200 8.1), header and signature are summed. */
static inline bool frame_udp_sound(const struct frame_check *check, const uint8_t *frame,
                                   uint32_t length, uint32_t addresses)
{
    const uint8_t *udp = frame + check->payload - FRAME_UDP;
    uint64_t sum = checksum_add(0, udp - addresses, addresses + FRAME_UDP + SIGNATURE_BYTES);

    sum += htobe16(IPPROTO_UDP) + (uint32_t)frame_u16(udp + 4);
    sum += check->fill->sum[length - check->payload - SIGNATURE_BYTES];
    return checksum_fold(sum) == 0xffff;
}

/* Whether a frame with our tag is as it was sent, from the EtherType to the last byte, but for
 * what switches and routers may change. One of these three for a phase, by its header kind.
 * `length` >= payload + SIGNATURE_BYTES. */
static inline bool frame_sound_l2(const struct frame_check *check, const uint8_t *frame,
                                  uint32_t length)
{
    return frame_typed(check, frame) && frame_filled(check, frame, length) &&
           signature_sound((const struct signature *)(frame + check->payload));
}

static inline bool frame_sound_ipv4(const struct frame_check *check, const uint8_t *frame,
                                    uint32_t length)
{
    const uint8_t *ip = frame + check->network;

    return frame_typed(check, frame) && ip[0] == 0x45 && ip[9] == IPPROTO_UDP &&
           frame_u16(ip + 2) == htobe16((uint16_t)(length - check->network)) &&
           frame_u16(ip + 24) == htobe16((uint16_t)(length - check->network - FRAME_IPV4)) &&
           checksum_fold(checksum_add(0, ip, FRAME_IPV4)) == 0xffff &&
           frame_udp_sound(check, frame, length, 8) && frame_filled(check, frame, length);
}

static inline bool frame_sound_ipv6(const struct frame_check *check, const uint8_t *frame,
                                    uint32_t length)
{
    const uint8_t *ip = frame + check->network;
    uint16_t behind = htobe16((uint16_t)(length - check->network - FRAME_IPV6));
    uint64_t first;

    memcpy(&first, ip, sizeof first);
    return frame_typed(check, frame) && (first & check->ipv6_mask) == check->ipv6 &&
           frame_u16(ip + 4) == behind && frame_u16(ip + FRAME_IPV6 + 4) == behind &&
           frame_udp_sound(check, frame, length, 32) && frame_filled(check, frame, length);
}

#endif
