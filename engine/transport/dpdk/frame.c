/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

#include <string.h>

static_assert(FRAME_ETHERNET + FRAME_VLAN + FRAME_IPV6 + FRAME_UDP + SIGNATURE_BYTES <=
                  FRAME_TEMPLATE,
              "a template holds headers and signature");

/* --- options --- */

static const char *const header_words[] = {
    [HEADER_L2] = "l2", [HEADER_IPV4_UDP] = "ipv4-udp", [HEADER_IPV6_UDP] = "ipv6-udp", NULL};

static const char *const destination_words[] = {[DESTINATION_PORT] = "port",
                                                [DESTINATION_BROADCAST] = "broadcast",
                                                [DESTINATION_MULTICAST] = "multicast",
                                                NULL};

#define MEMBER(type, key, member) OPTION(type, dpdk_options, key, member)

/* Options of the dpdk transport. Rules that depend on the port are checked when a phase is
 * prepared. */
static const struct option option_list[] = {
    {MEMBER(OPTION_WORD, "header", header), .words = header_words},
    {MEMBER(OPTION_NUMBER, "vlan", vlan_id), .max = 4094,
     .given = offsetof(struct dpdk_options, vlan)},
    {MEMBER(OPTION_NUMBER, "pcp", pcp), .max = 7},
    {MEMBER(OPTION_NUMBER, "dscp", dscp), .max = 63},
    {MEMBER(OPTION_NUMBER, "ttl", ttl), .min = 1, .max = UINT8_MAX, .initial = 64},
    {MEMBER(OPTION_NUMBER, "udp_sources", frame.udp_sources), .min = 1,
     .max = FRAME_UDP_SOURCES_MAX, .initial = 1},
    FRAME_OPTIONS(dpdk_options, frame.),
    {MEMBER(OPTION_WORD, "destination", destination), .words = destination_words},
    {MEMBER(OPTION_NUMBER, "addresses", addresses), .min = 1, .max = 1 << 20, .initial = 1},
    {MEMBER(OPTION_NUMBER, "address_first", address_first), .max = (1 << 20) - 1},
    {MEMBER(OPTION_REAL, "learning_rate", learning_rate), .min = 1, .initial = 1000},
    {MEMBER(OPTION_BOOL, "undersize", undersize)},
    {MEMBER(OPTION_REAL, "falls_to", frame.falls_to)},
    {MEMBER(OPTION_REAL, "falls_after_ns", frame.falls_after_ns)},
    {.key = NULL},
};

const struct option_table dpdk_option_table = {option_list, sizeof(struct dpdk_options)};

/* --- frames --- */

static const struct {
    const char *name;
    uint16_t type;
    uint16_t headers; /* after Ethernet and 802.1Q */
} kinds[] = {
    [HEADER_L2] = {"l2", FRAME_TYPE_L2, 0},
    [HEADER_IPV4_UDP] = {"ipv4-udp", FRAME_TYPE_IPV4, FRAME_IPV4 + FRAME_UDP},
    [HEADER_IPV6_UDP] = {"ipv6-udp", FRAME_TYPE_IPV6, FRAME_IPV6 + FRAME_UDP},
};

const char *frame_kind_name(enum header_kind kind)
{
    return kinds[kind].name;
}

void frame_shape(struct frame_shape *shape, const struct dpdk_options *options, uint16_t tag)
{
    *shape = (struct frame_shape){
        .kind = options->header,
        .vlan = options->vlan,
        .vlan_tci = (uint16_t)((options->pcp & 7) << 13 | (options->vlan_id & 0xfff)),
        .traffic_class = (uint8_t)(options->dscp << 2),
        .ttl = options->ttl,
        .tag = tag,
        .network = (uint16_t)(FRAME_ETHERNET + (options->vlan ? FRAME_VLAN : 0)),
    };
    shape->payload = (uint16_t)(shape->network + kinds[shape->kind].headers);
}

uint32_t frame_least(const struct frame_shape *shape)
{
    uint32_t least = shape->payload + SIGNATURE_BYTES + FRAME_FCS;

    return least > FRAME_SIZE_MIN ? least : FRAME_SIZE_MIN;
}

/* Append data to an unfinished frame; return the frame's new end. */
static uint8_t *put(uint8_t *at, const void *data, size_t size)
{
    memcpy(at, data, size);
    return at + size;
}

static uint8_t *put16(uint8_t *at, uint32_t value)
{
    uint16_t field = htobe16((uint16_t)value);

    return put(at, &field, sizeof field);
}

/* Append the IPv4 header (RFC 791). The flag "don't fragment" is set, so the identification has no
 * meaning (RFC 6864). */
static uint8_t *put_ipv4(uint8_t *at, const struct frame_shape *shape,
                         const struct frame_end ends[2], uint32_t behind)
{
    uint8_t *start = at;
    uint16_t sum;

    *at++ = 0x45;
    *at++ = shape->traffic_class;
    at = put16(at, FRAME_IPV4 + behind);
    at = put16(at, 0);
    at = put16(at, 0x4000);
    *at++ = shape->ttl;
    *at++ = IPPROTO_UDP;
    at = put16(at, 0);
    at = put(at, ends[0].ipv4, 4);
    at = put(at, ends[1].ipv4, 4);
    sum = (uint16_t)~checksum_fold(checksum_add(0, start, FRAME_IPV4));
    memcpy(start + 10, &sum, sizeof sum);
    return at;
}

/* Append the IPv6 header (RFC 8200), with flow label 0. */
static uint8_t *put_ipv6(uint8_t *at, const struct frame_shape *shape,
                         const struct frame_end ends[2], uint32_t behind)
{
    at = put16(at, 0x6000 | (uint32_t)shape->traffic_class << 4);
    at = put16(at, 0);
    at = put16(at, behind);
    *at++ = IPPROTO_UDP;
    *at++ = shape->ttl;
    at = put(at, ends[0].ipv6, 16);
    return put(at, ends[1].ipv6, 16);
}

/* Append the UDP header. In its checksum the signature's part is always zero, and the fill's part
 * is known. */
static uint8_t *put_udp(uint8_t *at, uint16_t udp_source, uint32_t length, uint32_t addresses)
{
    uint8_t *start = at;
    uint64_t sum = htobe16(IPPROTO_UDP) + (uint32_t)htobe16((uint16_t)length);
    uint16_t field;

    at = put16(at, FRAME_UDP_SOURCE + (uint32_t)udp_source);
    at = put16(at, FRAME_UDP_DESTINATION);
    at = put16(at, length);
    at = put16(at, 0);
    sum = checksum_add(sum, start - addresses, addresses + FRAME_UDP);
    sum += fill_table()->sum[length - FRAME_UDP - SIGNATURE_BYTES];
    field = (uint16_t)~checksum_fold(sum);
    if (field == 0)
        field = 0xffff; /* 0 means "none" (RFC 768) */
    memcpy(start + 6, &field, sizeof field);
    return at;
}

void frame_template(struct frame_template *out, const struct frame_shape *shape,
                    const struct frame_end ends[2], uint16_t udp_source, uint32_t size)
{
    uint32_t behind = size - FRAME_FCS - shape->network - kinds[shape->kind].headers + FRAME_UDP;
    struct signature_time zero = signature_time(0);
    struct signature *signature;
    uint8_t *at = put(put(out->bytes, ends[1].mac, FRAME_MAC), ends[0].mac, FRAME_MAC);

    if (shape->vlan)
        at = put16(put16(at, FRAME_TYPE_VLAN), shape->vlan_tci);
    at = put16(at, kinds[shape->kind].type);
    if (shape->kind == HEADER_IPV4_UDP)
        at = put_udp(put_ipv4(at, shape, ends, behind), udp_source, behind, 8);
    else if (shape->kind == HEADER_IPV6_UDP)
        at = put_udp(put_ipv6(at, shape, ends, behind), udp_source, behind, 32);
    signature = (struct signature *)at;
    signature->tag = htobe16(shape->tag);
    signature->src = htobe16(ends[0].rank);
    signature->dst = htobe16(ends[1].rank);
    signature_stamp(signature, 0, &zero, signature_base(signature));
    at += SIGNATURE_BYTES;
    memcpy(at, fill_table()->bytes, (size_t)(out->bytes + FRAME_TEMPLATE - at));
}

/* Fields of the IP header that no switch or router changes. RFC 791: version and header length,
 * total length; the class may be changed. RFC 8200: version, flow label, length. */
static const uint8_t inner_masks[][8] = {
    [HEADER_L2] = {0xff, 0xff},
    [HEADER_IPV4_UDP] = {0xff, 0xff, 0xff, 0x00, 0xff, 0xff, 0x00, 0x00},
    [HEADER_IPV6_UDP] = {0xff, 0xff, 0xf0, 0x0f, 0xff, 0xff, 0xff, 0xff},
};

void frame_check(struct frame_check *check, const struct frame_shape *shape)
{
    uint8_t outer[4] = {0}, mask[4] = {0xff, 0xff, 0, 0};

    *check = (struct frame_check){
        .network = shape->network,
        .payload = shape->payload,
        .fill = fill_table(),
    };
    put16(outer, kinds[shape->kind].type);
    if (shape->vlan) {
        put16(put16(outer, FRAME_TYPE_VLAN), shape->vlan_tci & 0xfff);
        put16(mask + 2, 0x0fff);
    }
    memcpy(&check->outer, outer, sizeof outer);
    memcpy(&check->outer_mask, mask, sizeof mask);
    memcpy(&check->inner_mask, inner_masks[shape->kind], sizeof check->inner_mask);
}

void frame_expect(struct frame_expect *expect, const struct frame_shape *shape, uint32_t length)
{
    uint32_t udp_length = length - shape->payload + FRAME_UDP;
    uint8_t inner[8] = {0};

    put16(inner, kinds[shape->kind].type);
    if (shape->kind == HEADER_IPV4_UDP) {
        inner[2] = 0x45;
        put16(inner + 4, FRAME_IPV4 + udp_length);
    } else if (shape->kind == HEADER_IPV6_UDP) {
        inner[2] = 0x60;
        put16(inner + 6, udp_length);
    }
    memcpy(&expect->inner, inner, sizeof inner);
    expect->udp_length = htobe16((uint16_t)udp_length);
    expect->fill = (uint16_t)(length - shape->payload - SIGNATURE_BYTES);
    expect->sum =
        htobe16(IPPROTO_UDP) + (uint32_t)expect->udp_length + fill_table()->sum[expect->fill];
}
