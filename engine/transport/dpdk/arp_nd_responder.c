/* SPDX-License-Identifier: BSD-3-Clause */
#include "arp_nd_responder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MIN 60u /* IEEE 802.3, without FCS; frames are shorter on links without padding */
#define ARP_REQUEST 1
#define ARP_REPLY 2
#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define ND_REDIRECT 137
#define ND_SOURCE_MAC 1 /* options: link-layer addresses */
#define ND_TARGET_MAC 2
#define ND_BYTES 32u /* message, target, one link-layer address option */
#define ND_FLAG_SOLICITED 0x40
#define ND_FLAG_OVERRIDE 0x20

struct arp {
    uint16_t hardware;
    uint16_t protocol;
    uint8_t hardware_size;
    uint8_t protocol_size;
    uint16_t operation;
    uint8_t sender_mac[FRAME_MAC];
    uint8_t sender[4];
    uint8_t target_mac[FRAME_MAC];
    uint8_t target[4];
} __attribute__((packed));
static_assert(sizeof(struct arp) == 28, "ARP for IPv4 over Ethernet");

/* Neighbour solicitation or advertisement with one option, after its IPv6 header. */
struct nd {
    uint8_t version_class[4];
    uint16_t length;
    uint8_t next;
    uint8_t hops;
    uint8_t from[16];
    uint8_t to[16];
    uint8_t type;
    uint8_t code;
    uint16_t checksum;
    uint8_t flags;
    uint8_t reserved[3];
    uint8_t target[16];
    uint8_t option;
    uint8_t option_words;
    uint8_t option_mac[FRAME_MAC];
} __attribute__((packed));
static_assert(sizeof(struct nd) == FRAME_IPV6 + ND_BYTES, "neighbour discovery");

static const uint8_t broadcast[FRAME_MAC] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
static const uint8_t unspecified[16];
static const uint8_t learning[SIGNATURE_BYTES] = {'s', 'w', 'i', 't', 'c', 'h', 'b', 'e', 'n',
                                                  'c', 'h', ' ', 'l', 'e', 'a', 'r', 'n', 's'};

/* Parse "ADDRESS/PREFIX" or "ADDRESS"; the prefix has at most `most` bits. */
static int parse(int family, const char *text, void *address, uint8_t *prefix, unsigned most)
{
    char copy[64];
    char *slash, *end;
    unsigned long bits = most;

    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return -EINVAL;
    slash = strchr(copy, '/');
    if (slash != NULL) {
        *slash = '\0';
        bits = strtoul(slash + 1, &end, 10);
        if (end == slash + 1 || *end != '\0' || bits > most)
            return -EINVAL;
    }
    *prefix = (uint8_t)bits;
    return inet_pton(family, copy, address) == 1 ? 0 : -EINVAL;
}

int responder_set_addresses(struct arp_nd_responder *responder, const struct port_conf *conf,
                            struct err *err)
{
    uint8_t ignored;

    responder->has_ipv4 = conf->ipv4 != NULL;
    responder->has_ipv6 = conf->ipv6 != NULL;
    if (responder->has_ipv4 &&
        parse(AF_INET, conf->ipv4, responder->ipv4, &responder->ipv4_prefix, 32) != 0)
        return err_set(err, -EINVAL,
                       "%s: '%s' is not an IPv4 address with a prefix, such as "
                       "198.18.0.1/16",
                       conf->name, conf->ipv4);
    if (responder->has_ipv6 &&
        parse(AF_INET6, conf->ipv6, responder->ipv6, &responder->ipv6_prefix, 128) != 0)
        return err_set(err, -EINVAL,
                       "%s: '%s' is not an IPv6 address with a prefix, such as "
                       "2001:2::1/64",
                       conf->name, conf->ipv6);
    if (conf->gateway == NULL)
        return 0;
    responder->has_gateway4 = parse(AF_INET, conf->gateway, responder->gateway4, &ignored, 32) == 0;
    responder->has_gateway6 =
        parse(AF_INET6, conf->gateway, responder->gateway6, &ignored, 128) == 0;
    if (!responder->has_gateway4 && !responder->has_gateway6)
        return err_set(err, -EINVAL, "%s: gateway '%s' is not an IPv4 or IPv6 address", conf->name,
                       conf->gateway);
    return 0;
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;

    return memcmp(a, b, bytes) == 0 && (rest == 0 || ((a[bytes] ^ b[bytes]) >> (8 - rest)) == 0);
}

bool responder_on_link(const struct arp_nd_responder *responder, const struct frame_end *peer)
{
    if (responder->kind == HEADER_IPV4_UDP && responder->has_gateway4)
        return same_prefix(responder->ipv4, peer->ipv4, responder->ipv4_prefix);
    if (responder->kind == HEADER_IPV6_UDP && responder->has_gateway6)
        return same_prefix(responder->ipv6, peer->ipv6, responder->ipv6_prefix);
    return true;
}

/* Write the Ethernet header of a frame, with the responder's VLAN tag if it has one; return the end
 * of the header. */
static uint8_t *begin(const struct arp_nd_responder *responder, uint8_t *frame, const uint8_t *to,
                      uint16_t type)
{
    uint16_t tag[2] = {htobe16(FRAME_TYPE_VLAN), htobe16(responder->vlan_tci)};
    uint8_t *at = frame + 2 * FRAME_MAC;

    memset(frame, 0, RESPONDER_FRAME_MAX);
    memcpy(frame, to, FRAME_MAC);
    memcpy(frame + FRAME_MAC, responder->mac, FRAME_MAC);
    if (responder->vlan) {
        memcpy(at, tag, sizeof tag);
        at += sizeof tag;
    }
    type = htobe16(type);
    memcpy(at, &type, sizeof type);
    return at + sizeof type;
}

static uint32_t finish(const uint8_t *frame, const uint8_t *end)
{
    uint32_t length = (uint32_t)(end - frame);

    return length > FRAME_MIN ? length : FRAME_MIN;
}

static uint32_t write_arp(const struct arp_nd_responder *responder, uint8_t *frame,
                          uint16_t operation, const uint8_t *to, const uint8_t target[4])
{
    uint8_t *at = begin(responder, frame, to, FRAME_TYPE_ARP);
    struct arp arp = {.hardware = htobe16(1),
                      .protocol = htobe16(FRAME_TYPE_IPV4),
                      .hardware_size = FRAME_MAC,
                      .protocol_size = 4,
                      .operation = htobe16(operation)};

    memcpy(arp.sender_mac, responder->mac, FRAME_MAC);
    memcpy(arp.sender, responder->ipv4, 4);
    if (operation == ARP_REPLY)
        memcpy(arp.target_mac, to, FRAME_MAC);
    memcpy(arp.target, target, 4);
    memcpy(at, &arp, sizeof arp);
    return finish(frame, at + sizeof arp);
}

/* Return the ICMPv6 checksum over the pseudo header and the message (RFC 4443 2.3). */
static uint16_t nd_sum(const struct nd *nd, uint32_t message)
{
    uint64_t sum = htobe16((uint16_t)message) + (uint32_t)htobe16(IPPROTO_ICMPV6);

    sum = checksum_add(sum, nd->from, sizeof nd->from + sizeof nd->to);
    return checksum_fold(checksum_add(sum, (const uint8_t *)nd + FRAME_IPV6, message));
}

struct nd_say {
    uint8_t type;
    uint8_t flags;
    const uint8_t *mac;    /* Ethernet destination */
    const uint8_t *to;     /* IPv6 destination */
    const uint8_t *target; /* address that the message is about */
};

static uint32_t write_nd(const struct arp_nd_responder *responder, uint8_t *frame,
                         const struct nd_say *say)
{
    uint8_t *at = begin(responder, frame, say->mac, FRAME_TYPE_IPV6);
    struct nd nd = {.version_class = {0x60},
                    .length = htobe16(ND_BYTES),
                    .next = IPPROTO_ICMPV6,
                    .hops = 255,
                    .type = say->type,
                    .flags = say->flags,
                    .option_words = 1};

    nd.option = say->type == ND_SOLICITATION ? ND_SOURCE_MAC : ND_TARGET_MAC;
    memcpy(nd.from, responder->ipv6, sizeof nd.from);
    memcpy(nd.to, say->to, sizeof nd.to);
    memcpy(nd.target, say->target, sizeof nd.target);
    memcpy(nd.option_mac, responder->mac, FRAME_MAC);
    nd.checksum = (uint16_t)~nd_sum(&nd, ND_BYTES);
    memcpy(at, &nd, sizeof nd);
    return finish(frame, at + sizeof nd);
}

/* Write the Ethernet address of an IPv6 multicast group (RFC 2464 7). */
static void multicast_mac(const uint8_t group[16], uint8_t mac[FRAME_MAC])
{
    mac[0] = mac[1] = 0x33;
    memcpy(mac + 2, group + 12, 4);
}

uint32_t responder_learning(const struct arp_nd_responder *responder, uint8_t *frame,
                            const uint8_t to[FRAME_MAC])
{
    uint8_t *at = begin(responder, frame, to, FRAME_TYPE_L2);

    memcpy(at, learning, SIGNATURE_BYTES);
    return finish(frame, at + SIGNATURE_BYTES);
}

uint32_t responder_announcement(const struct arp_nd_responder *responder, uint8_t *frame)
{
    uint8_t mac[FRAME_MAC];
    struct nd_say say = {ND_ADVERTISEMENT, ND_FLAG_OVERRIDE, mac, all_nodes, responder->ipv6};

    if (responder->kind == HEADER_IPV4_UDP && responder->has_ipv4)
        return write_arp(responder, frame, ARP_REQUEST, broadcast, responder->ipv4);
    if (responder->kind == HEADER_IPV6_UDP && responder->has_ipv6) {
        multicast_mac(all_nodes, mac);
        return write_nd(responder, frame, &say);
    }
    return responder_learning(responder, frame, broadcast);
}

uint32_t responder_request(const struct arp_nd_responder *responder, uint8_t *frame)
{
    uint8_t group[16] = {0xff, 0x02, [11] = 1, [12] = 0xff}; /* solicited-node (RFC 4291 2.7.1) */
    uint8_t mac[FRAME_MAC];
    struct nd_say say = {ND_SOLICITATION, 0, mac, group, responder->gateway6};

    if (responder->kind == HEADER_IPV4_UDP)
        return write_arp(responder, frame, ARP_REQUEST, broadcast, responder->gateway4);
    memcpy(group + 13, responder->gateway6 + 13, 3);
    multicast_mac(group, mac);
    return write_nd(responder, frame, &say);
}

static void learn_gateway(struct arp_nd_responder *responder, const uint8_t mac[FRAME_MAC])
{
    memcpy(responder->gateway_mac, mac, FRAME_MAC);
    responder->gateway_known = true;
}

static enum responder_verdict handle_arp(struct arp_nd_responder *responder, const uint8_t *at,
                                         uint8_t *answer, uint32_t *answer_length)
{
    struct arp arp;

    memcpy(&arp, at, sizeof arp);
    if (arp.hardware != htobe16(1) || arp.protocol != htobe16(FRAME_TYPE_IPV4))
        return RESPONDER_IGNORES;
    if (responder->has_gateway4 && memcmp(arp.sender, responder->gateway4, 4) == 0)
        learn_gateway(responder, arp.sender_mac);
    if (memcmp(arp.sender, arp.target, 4) == 0)
        return RESPONDER_CONSUMES;
    if (!responder->has_ipv4 || memcmp(arp.target, responder->ipv4, 4) != 0)
        return RESPONDER_IGNORES;
    if (arp.operation != htobe16(ARP_REQUEST))
        return RESPONDER_CONSUMES;
    *answer_length = write_arp(responder, answer, ARP_REPLY, arp.sender_mac, arp.sender);
    return RESPONDER_REPLIES;
}

static enum responder_verdict answer_nd(const struct arp_nd_responder *responder,
                                        const struct nd *nd, const uint8_t *source, uint8_t *answer,
                                        uint32_t *answer_length)
{
    uint8_t group_mac[FRAME_MAC];
    struct nd_say say = {ND_ADVERTISEMENT, ND_FLAG_SOLICITED | ND_FLAG_OVERRIDE, source, nd->from,
                         responder->ipv6};

    /* Duplicate address detection has no source address: the answer goes to all nodes (RFC 4861
     * 7.2.4). */
    if (memcmp(nd->from, unspecified, sizeof unspecified) == 0) {
        multicast_mac(all_nodes, group_mac);
        say.flags = ND_FLAG_OVERRIDE;
        say.mac = group_mac;
        say.to = all_nodes;
    }
    *answer_length = write_nd(responder, answer, &say);
    return RESPONDER_REPLIES;
}

static enum responder_verdict handle_ipv6(struct arp_nd_responder *responder, const uint8_t *source,
                                          const uint8_t *at, uint32_t length, uint8_t *answer,
                                          uint32_t *answer_length)
{
    const struct nd *nd = (const struct nd *)at; /* its option may be missing */
    uint32_t message = be16toh(nd->length);

    /* RFC 4861 7.1: from this link (hop limit 255), complete, with a right checksum. */
    if (nd->next != IPPROTO_ICMPV6 || nd->hops != 255 || nd->code != 0 || message < 24 ||
        message > length - FRAME_IPV6 || nd_sum(nd, message) != 0xffff)
        return RESPONDER_IGNORES;
    if (nd->type == ND_SOLICITATION && responder->has_ipv6 &&
        memcmp(nd->target, responder->ipv6, sizeof nd->target) == 0)
        return answer_nd(responder, nd, source, answer, answer_length);
    /* A router redirects frames that it sends back to their link. A port keeps its gateway, but the
     * target's prefix, where a signature would be, may have the ranks of a flow. */
    if (nd->type == ND_REDIRECT)
        return RESPONDER_CONSUMES;
    if (nd->type != ND_ADVERTISEMENT)
        return RESPONDER_IGNORES;
    if (responder->has_gateway6 && memcmp(nd->target, responder->gateway6, sizeof nd->target) == 0)
        learn_gateway(responder,
                      message >= ND_BYTES && nd->option == ND_TARGET_MAC && nd->option_words == 1
                          ? nd->option_mac
                          : source);
    return RESPONDER_CONSUMES;
}

enum responder_verdict responder_handle(struct arp_nd_responder *responder, const uint8_t *frame,
                                        uint32_t length, uint8_t *answer, uint32_t *answer_length)
{
    uint32_t offset = FRAME_ETHERNET;
    uint16_t type;

    if (length < FRAME_ETHERNET)
        return RESPONDER_IGNORES;
    if (frame_u16(frame + 2 * FRAME_MAC) == htobe16(FRAME_TYPE_VLAN))
        offset += FRAME_VLAN;
    if (length < offset)
        return RESPONDER_IGNORES;
    type = be16toh(frame_u16(frame + offset - 2));
    if (type == FRAME_TYPE_ARP && length >= offset + sizeof(struct arp))
        return handle_arp(responder, frame + offset, answer, answer_length);
    if (type == FRAME_TYPE_IPV6 && length >= offset + FRAME_IPV6 + 24)
        return handle_ipv6(responder, frame + FRAME_MAC, frame + offset, length - offset, answer,
                           answer_length);
    if (type == FRAME_TYPE_L2 && length >= offset + SIGNATURE_BYTES &&
        memcmp(frame + offset, learning, SIGNATURE_BYTES) == 0)
        return RESPONDER_CONSUMES;
    return RESPONDER_IGNORES;
}
