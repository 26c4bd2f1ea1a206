/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Frames as bytes: headers, signature, fill.
 *
 * No I/O and nothing of DPDK's.
 *
 *     Ethernet 14 | 802.1Q 4 | IPv4 20 or IPv6 40, UDP 8 | signature 18 | fill
 *
 * Sizes count the FCS (RFC 2544), which the device adds: `length` is what lies in memory, 4 less.
 * The fill is the same pseudo-random bytes in every frame (a prefix of one table), so a receiver
 * compares instead of summing, and templates of one size may be copied over one another.
 */
#ifndef ENGINE_DPDK_FRAME_H
#define ENGINE_DPDK_FRAME_H

#include "frame_lane.h"
#include "signature.h"

#include <netinet/in.h>

/* --- what a trial may say below `dpdk` --- */

enum header_kind { HEADER_L2, HEADER_IPV4_UDP, HEADER_IPV6_UDP };

/** @brief To whom a flow's frames go: the partner's port, or every other port of the network. */
enum frame_destination { DESTINATION_PORT, DESTINATION_BROADCAST, DESTINATION_MULTICAST };

struct dpdk_options {
    struct frame_options frame; /**< first */
    enum header_kind header;
    bool vlan; /**< with an 802.1Q tag of vlan_id and pcp */
    uint16_t vlan_id;
    uint8_t pcp;
    uint8_t dscp;
    uint8_t ttl;
    uint16_t udp_sources; /**< UDP source ports per flow, each a stream with its own sequence */
    enum frame_destination destination;
    uint32_t addresses;     /**< of each port: a flow's frames go to them in turn */
    uint8_t address_block;  /**< which: different blocks have no address in common */
    uint32_t address_first; /**< the first one's number within the block */
    double learning_rate;   /**< learning frames a second, of each port that receives */
    bool undersize;         /**< frames may be below 64 bytes (RFC 2889, 5.9) */
    double falls_to;        /**< a stream's load, in percent of what it was; 0: it stays ... */
    double falls_after_ns;  /**< ... so long behind the phase's start (RFC 2544, 26.5) */
};

extern const struct option_table dpdk_option_table;

/**
 * @brief Return the phase's options of `dpdk`.
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
#define FRAME_MAC 6u
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
 * discard (RFC 863), which throws away any data that it receives.
 */
#define FRAME_UDP_SOURCE 49152
#define FRAME_UDP_SOURCES_MAX 16384
#define FRAME_UDP_DESTINATION 9

/**
 * @brief In place of a rank: all of them, by an address of all stations, or of a group that is
 * documented as an example (RFC 7042 2.1.1).
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

/** @brief One end of a flow. */
struct frame_end {
    uint8_t mac[FRAME_MAC];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint16_t rank;
};

/** @brief What all frames of a phase have in common. */
struct frame_shape {
    enum header_kind kind;
    bool vlan;
    uint16_t vlan_tci;
    uint8_t traffic_class; /**< DSCP in its upper six bits */
    uint8_t ttl;
    uint16_t tag;
    uint16_t network; /**< offset of what follows Ethernet and 802.1Q */
    uint16_t payload; /**< offset of the signature */
};

void frame_shape(struct frame_shape *shape, const struct dpdk_options *options, uint16_t tag);

/** @brief The smallest size that holds headers and signature: 64 at least. */
uint32_t frame_least(const struct frame_shape *shape);

/** @brief "l2", "ipv4-udp", "ipv6-udp". */
const char *frame_kind_name(enum header_kind kind);

/**
 * @brief The first FRAME_TEMPLATE bytes of the flow's frames of `size`, with a right UDP checksum
 * and a sound signature of sequence 0 at time 0.
 */
void frame_template(struct frame_template *out, const struct frame_shape *shape,
                    const struct frame_end ends[2], uint16_t udp_source, uint32_t size);

/**
 * @brief A whole frame beside the load: the tag is `shape`'s, as the load's but for a probe.
 *
 * A buffer has room for FRAME_TEMPLATE bytes at least.
 */
void frame_write(uint8_t *frame, const struct frame_shape *shape, const struct frame_end ends[2],
                 const struct frame_single *single);

/**
 * @brief What a receiver expects of its frames' headers, chosen once so that checking takes no
 * option.
 */
struct frame_check {
    uint32_t outer; /**< bytes 12 to 15: EtherType, or 802.1Q and VLAN id (PCP may be remarked) */
    uint32_t outer_mask;
    uint64_t inner_mask; /**< of frame_expect.inner: what switches and routers may not change */
    uint16_t network;
    uint16_t payload;
    const struct fill *fill;
};

/** @brief And what it expects of those of one length. */
struct frame_expect {
    uint64_t inner;      /**< the kind's EtherType and what follows it, to the IP length */
    uint16_t udp_length; /**< as on the wire */
    uint16_t fill;       /**< bytes behind the signature */
    uint32_t sum;        /**< of the pseudo header's protocol and length, and the fill */
};

void frame_check(struct frame_check *check, const struct frame_shape *shape);
/** @brief `length` >= payload + SIGNATURE_BYTES. */
void frame_expect(struct frame_expect *expect, const struct frame_shape *shape, uint32_t length);

static inline uint16_t frame_u16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

/**
 * @brief Checks below are gathered into few branches, all of which are taken one way for sound
 * frames; a compiler that thought them even would move half of the code out of the way.
 */
#define FRAME_LIKELY(condition) __builtin_expect((condition), true)
#define FRAME_INLINE static inline __attribute__((always_inline))

/**
 * @brief 0: EtherTypes are ours (802.1Q and id when tagged, then the kind's), and so is what
 * follows.
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
 * @brief From the kind's EtherType to the signature's ranks: what frames of one stream and length
 * all begin with.
 *
 * Of tagged ones the tag lies before it.
 */
#define FRAME_START_MAX (2 + FRAME_IPV6 + FRAME_UDP + 6)

FRAME_INLINE size_t frame_start_bytes(enum header_kind kind)
{
    size_t headers = kind == HEADER_L2         ? 0
                     : kind == HEADER_IPV4_UDP ? FRAME_IPV4 + FRAME_UDP
                                               : FRAME_IPV6 + FRAME_UDP;

    return 2 + headers + offsetof(struct signature, sequence);
}

/** @brief Return whether a frame begins as `start`, and has the phase's tag. */
FRAME_INLINE bool frame_starts(const struct frame_check *check, const uint8_t *start,
                               const uint8_t *frame, enum header_kind kind)
{
    uint32_t outer;

    memcpy(&outer, frame + 2 * FRAME_MAC, sizeof outer);
    return ((outer ^ check->outer) & check->outer_mask) == 0 &&
           memcmp(frame + check->network - 2, start, frame_start_bytes(kind)) == 0;
}

/** @brief Everything behind the signature is the fill. */
FRAME_INLINE bool frame_filled(const struct frame_check *check, const struct frame_expect *expect,
                               const uint8_t *frame)
{
    return expect->fill == 0 ||
           memcmp(frame + check->payload + SIGNATURE_BYTES, check->fill->bytes, expect->fill) == 0;
}

/**
 * @brief The UDP checksum, the fill's part being known: pseudo header (addresses, protocol, length:
 * RFC 768, RFC 8200 8.1), header and signature are summed.
 */
FRAME_INLINE bool frame_udp_sound(const struct frame_check *check,
                                  const struct frame_expect *expect, const uint8_t *frame,
                                  uint32_t addresses)
{
    const uint8_t *udp = frame + check->payload - FRAME_UDP;

    return checksum_right(
        checksum_add(expect->sum, udp - addresses, addresses + FRAME_UDP + SIGNATURE_BYTES));
}

/**
 * @brief Return whether the headers of a frame with our tag are as they were sent, from the
 * EtherType to the signature, but for what switches and routers may change; UDP checksums say so of
 * what the fill sums to, too.
 *
 * One of these three for a phase, by its header kind; of frames of the expected length only.
 */
FRAME_INLINE bool frame_headers_l2(const struct frame_check *check,
                                   const struct frame_expect *expect, const uint8_t *frame)
{
    return FRAME_LIKELY(frame_differs(check, expect, frame) == 0) &&
           FRAME_LIKELY(signature_sound((const struct signature *)(frame + check->payload)));
}

FRAME_INLINE bool frame_headers_ipv4(const struct frame_check *check,
                                     const struct frame_expect *expect, const uint8_t *frame)
{
    const uint8_t *ip = frame + check->network;
    uint64_t differs = frame_differs(check, expect, frame);

    differs |= (uint32_t)(ip[9] ^ IPPROTO_UDP);
    differs |= (uint32_t)(frame_u16(ip + FRAME_IPV4 + 4) ^ expect->udp_length);
    return FRAME_LIKELY(differs == 0) &&
           FRAME_LIKELY(checksum_right(checksum_add(0, ip, FRAME_IPV4))) &&
           FRAME_LIKELY(frame_udp_sound(check, expect, frame, 8));
}

FRAME_INLINE bool frame_headers_ipv6(const struct frame_check *check,
                                     const struct frame_expect *expect, const uint8_t *frame)
{
    const uint8_t *ip = frame + check->network;
    uint64_t differs = frame_differs(check, expect, frame);

    differs |= (uint32_t)(ip[6] ^ IPPROTO_UDP);
    differs |= (uint32_t)(frame_u16(ip + FRAME_IPV6 + 4) ^ expect->udp_length);
    return FRAME_LIKELY(differs == 0) && FRAME_LIKELY(frame_udp_sound(check, expect, frame, 32));
}

/** @brief And everything behind the signature is the fill. */
FRAME_INLINE bool frame_sound_l2(const struct frame_check *check, const struct frame_expect *expect,
                                 const uint8_t *frame)
{
    return frame_headers_l2(check, expect, frame) &&
           FRAME_LIKELY(frame_filled(check, expect, frame));
}

FRAME_INLINE bool frame_sound_ipv4(const struct frame_check *check,
                                   const struct frame_expect *expect, const uint8_t *frame)
{
    return frame_headers_ipv4(check, expect, frame) &&
           FRAME_LIKELY(frame_filled(check, expect, frame));
}

FRAME_INLINE bool frame_sound_ipv6(const struct frame_check *check,
                                   const struct frame_expect *expect, const uint8_t *frame)
{
    return frame_headers_ipv6(check, expect, frame) &&
           FRAME_LIKELY(frame_filled(check, expect, frame));
}

#endif
