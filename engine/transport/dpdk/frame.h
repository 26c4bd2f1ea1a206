/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Frames as bytes: headers, signature, fill.
 *
 * No I/O and no DPDK.
 *
 * @code{.unparsed}
 * Ethernet 14 | 802.1Q 4 | IPv4 20 or IPv6 40, UDP 8 | signature 18 | fill
 * @endcode
 *
 * Sizes count the FCS (RFC 2544), which the device adds: `length` is in memory, 4 less. The fill is
 * equal pseudo-random bytes in every frame (a prefix of one table), so a receiver compares instead
 * of summing, and templates of one size may be copied over one another.
 */
#ifndef ENGINE_DPDK_FRAME_H
#define ENGINE_DPDK_FRAME_H

#include "frame_lane.h"
#include "signature.h"

#include <netinet/in.h>

/* --- options of a trial below `dpdk` --- */

enum header_kind { HEADER_L2, HEADER_IPV4_UDP, HEADER_IPV6_UDP };

/** @brief Destination of a flow's frames: the partner's port, or all other ports of the network. */
enum frame_destination { DESTINATION_PORT, DESTINATION_BROADCAST, DESTINATION_MULTICAST };

struct dpdk_options {
    struct frame_options frame; /**< first member */
    enum header_kind header;
    bool vlan; /**< with an 802.1Q tag of vlan_id and pcp */
    uint16_t vlan_id;
    uint8_t pcp;
    uint8_t dscp;
    uint8_t ttl;
    enum frame_destination destination;
    uint32_t addresses;     /**< per port: a flow's frames go to them in rotation */
    uint32_t address_first; /**< number of the first address */
    double learning_rate;   /**< learning frames per second, for each receiving port */
    bool undersize;         /**< frames may be below 64 bytes (RFC 2889, 5.9) */
};

extern const struct option_table dpdk_option_table;

/**
 * @brief Return the options of the dpdk transport in a phase.
 *
 * @param phase Phase.
 * @return Options; the phase's.
 */
static inline const struct dpdk_options *dpdk_options(const struct phase *phase)
{
    return phase->options;
}

/* --- frames --- */

#define FRAME_SIZE_MIN 64u /**< with FCS (IEEE 802.3) */
#define FRAME_SIZE_MAX FILL_BYTES
#define FRAME_ETHERNET 14u
#define FRAME_VLAN 4u
#define FRAME_UDP 8u
#define FRAME_IPV4 20u
#define FRAME_IPV6 40u

#define FRAME_TYPE_L2 0x88b5 /**< IEEE 802 local experimental EtherType 1 (RFC 9542) */
#define FRAME_TYPE_IPV4 0x0800
#define FRAME_TYPE_ARP 0x0806
#define FRAME_TYPE_VLAN 0x8100
#define FRAME_TYPE_IPV6 0x86dd
#define FRAME_TYPE_MAC_CONTROL 0x8808

/**
 * @brief UDP ports: sources count up from the first dynamic port (RFC 6335); the destination is
 * discard (RFC 863), whose receiver ignores all data.
 */
#define FRAME_UDP_SOURCE 49152
#define FRAME_UDP_SOURCES_MAX 16384
#define FRAME_UDP_DESTINATION 9

/**
 * @brief Rank number that stands for all ranks, and the two addresses to which its frames go:
 * broadcast, and a multicast address for documentation (RFC 7042 2.1.1).
 */
#define FRAME_RANK_ALL 0xffffu
#define FRAME_BROADCAST                                                                            \
    {                                                                                              \
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff                                                         \
    }
#define FRAME_MULTICAST                                                                            \
    {                                                                                              \
        0x01, 0x00, 0x5e, 0x90, 0x10, 0x00                                                         \
    }

/** @brief Addresses of one end of a flow. */
struct frame_end {
    uint8_t mac[FRAME_MAC];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint16_t rank;
};

/** @brief Common layout of all frames of a phase. */
struct frame_shape {
    enum header_kind kind;
    bool vlan;
    uint16_t vlan_tci;
    uint8_t traffic_class; /**< DSCP in the upper six bits */
    uint8_t ttl;
    uint16_t tag;
    uint16_t network; /**< offset behind Ethernet and 802.1Q */
    uint16_t payload; /**< offset of the signature */
};

void frame_shape(struct frame_shape *shape, const struct dpdk_options *options, uint16_t tag);

/** @brief Return the smallest frame size that holds headers and signature, at least 64. */
uint32_t frame_least(const struct frame_shape *shape);

/** @brief Return a header kind's name: "l2", "ipv4-udp", "ipv6-udp". */
const char *frame_kind_name(enum header_kind kind);

/**
 * @brief Write the first FRAME_TEMPLATE bytes of a flow's frames of `size`, with a correct UDP
 * checksum and a valid signature of sequence 0 at time 0.
 */
void frame_template(struct frame_template *out, const struct frame_shape *shape,
                    const struct frame_end ends[2], uint16_t udp_source, uint32_t size);

/**
 * @brief Expected headers of a phase's received frames, computed once per phase so that the check
 * of a frame reads no option.
 */
struct frame_check {
    /** @brief Bytes 12 to 15: EtherType, or 802.1Q and VLAN id (PCP may change on the way). */
    uint32_t outer;
    uint32_t outer_mask;
    /** @brief Mask of frame_expect.inner: bits that switches and routers may not change. */
    uint64_t inner_mask;
    uint16_t network;
    uint16_t payload;
    const struct fill *fill;
};

/** @brief Expected headers of received frames of one length. */
struct frame_expect {
    uint64_t inner;      /**< the kind's EtherType and the bytes behind it, to the IP length */
    uint16_t udp_length; /**< in network byte order */
    uint16_t fill;       /**< bytes behind the signature */
    uint32_t sum;        /**< of the pseudo header's protocol and length, and of the fill */
};

void frame_check(struct frame_check *check, const struct frame_shape *shape);
/** @brief Compute the expected headers of frames; `length` >= payload + SIGNATURE_BYTES. */
void frame_expect(struct frame_expect *expect, const struct frame_shape *shape, uint32_t length);

static inline uint16_t frame_u16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

/**
 * @brief Tell the compiler that a condition is mostly true. The checks of a frame are combined into
 * few branches, which valid frames never take; without this hint the compiler would place half of
 * the code elsewhere.
 */
#define FRAME_LIKELY(condition) __builtin_expect((condition), true)
#define FRAME_INLINE static inline __attribute__((always_inline))

/**
 * @brief Compare a frame's EtherType and the bytes behind it with the expected ones, in a tagged
 * frame also 802.1Q and VLAN id; return 0 if they are equal.
 */
FRAME_INLINE uint64_t frame_differs(const struct frame_check *check,
                                    const struct frame_expect *expect, const uint8_t *frame)
{
    uint32_t outer;
    uint64_t inner;

    memcpy(&outer, frame + 2 * FRAME_MAC, sizeof outer);
    memcpy(&inner, frame + check->network - 2, sizeof inner);
    return ((outer ^ check->outer) & check->outer_mask) |
           ((inner ^ expect->inner) & check->inner_mask);
}

/**
 * @brief Return how many bytes a frame has from the EtherType of its header kind to the ranks in
 * its signature; they are equal in all frames of one stream and length.
 *
 * The VLAN tag of a tagged frame is in front of these bytes.
 */
#define FRAME_START_MAX (2 + FRAME_IPV6 + FRAME_UDP + 6)

FRAME_INLINE size_t frame_start_bytes(enum header_kind kind)
{
    size_t headers = kind == HEADER_L2         ? 0
                     : kind == HEADER_IPV4_UDP ? FRAME_IPV4 + FRAME_UDP
                                               : FRAME_IPV6 + FRAME_UDP;

    return 2 + headers + offsetof(struct signature, sequence);
}

/** @brief Return whether a frame has the phase's VLAN tag, and equals `start` from its EtherType
 * on. */
FRAME_INLINE bool frame_starts(const struct frame_check *check, const uint8_t *start,
                               const uint8_t *frame, enum header_kind kind)
{
    uint32_t outer;

    memcpy(&outer, frame + 2 * FRAME_MAC, sizeof outer);
    return ((outer ^ check->outer) & check->outer_mask) == 0 &&
           memcmp(frame + check->network - 2, start, frame_start_bytes(kind)) == 0;
}

/** @brief Return whether all bytes of a frame behind the signature are the expected fill. */
FRAME_INLINE bool frame_filled(const struct frame_check *check, const struct frame_expect *expect,
                               const uint8_t *frame)
{
    return expect->fill == 0 ||
           memcmp(frame + check->payload + SIGNATURE_BYTES, check->fill->bytes, expect->fill) == 0;
}

/**
 * @brief Return whether a frame of the expected length with our tag is unchanged behind its
 * addresses, except for fields that switches and routers may change: EtherType and headers, their
 * checksums, the signature and the fill.
 *
 * `kind` is the phase's, a constant. A UDP checksum also covers the pseudo header (addresses,
 * protocol, length: RFC 768, RFC 8200 8.1), the signature and the fill, whose sum is known.
 */
FRAME_INLINE bool frame_sound(const struct frame_check *check, const struct frame_expect *expect,
                              const uint8_t *frame, enum header_kind kind)
{
    const bool v4 = kind == HEADER_IPV4_UDP;
    const uint8_t *ip = frame + check->network, *payload = frame + check->payload;
    const uint32_t summed = (v4 ? 8 : 32) + FRAME_UDP; /* addresses and UDP's header */
    uint64_t differs = frame_differs(check, expect, frame);

    if (kind != HEADER_L2) {
        differs |= (uint32_t)(ip[v4 ? 9 : 6] ^ IPPROTO_UDP);
        differs |=
            (uint32_t)(frame_u16(ip + (v4 ? FRAME_IPV4 : FRAME_IPV6) + 4) ^ expect->udp_length);
    }
    if (!FRAME_LIKELY(differs == 0))
        return false;
    if (kind == HEADER_L2 && !FRAME_LIKELY(signature_sound((const struct signature *)payload)))
        return false;
    if (v4 && !FRAME_LIKELY(checksum_right(checksum_add(0, ip, FRAME_IPV4))))
        return false;
    if (kind != HEADER_L2 && !FRAME_LIKELY(checksum_right(checksum_add(
                                 expect->sum, payload - summed, summed + SIGNATURE_BYTES))))
        return false;
    return FRAME_LIKELY(frame_filled(check, expect, frame));
}

#endif
