/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a raw port does as a host on the network: it announces its address (switches learn
 * it), it answers ARP requests and neighbour solicitations for its own addresses, and it resolves
 * its gateway, the only next hop besides its peers.
 *
 * Bytes in, bytes out: no I/O.
 *
 * Sources: RFC 826 and 5227 (ARP and its announcements), RFC 4861 (neighbour discovery).
 */
#ifndef ENGINE_DPDK_ARP_ND_RESPONDER_H
#define ENGINE_DPDK_ARP_ND_RESPONDER_H

#include "frame.h"

#define RESPONDER_FRAME_MAX 96u /**< longest frame that a responder sends, without FCS */

struct arp_nd_responder {
    uint8_t mac[FRAME_MAC];
    bool has_ipv4;
    bool has_ipv6;
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint8_t ipv4_prefix; /**< bits */
    uint8_t ipv6_prefix;
    bool has_gateway4;
    bool has_gateway6;
    uint8_t gateway4[4];
    uint8_t gateway6[16];
    bool gateway_known;
    uint8_t gateway_mac[FRAME_MAC];
    /** @brief How it speaks: as the last phase that was prepared on its port. */
    enum header_kind kind;
    bool vlan;
    uint16_t vlan_tci;
};

/**
 * @brief Reads "198.19.0.1/16", "2001:2:0:1::1/64" and the gateway of either family; each may be
 * NULL.
 *
 * -EINVAL with the sentence.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int responder_set_addresses(struct arp_nd_responder *responder, const struct port_conf *conf,
                            struct err *err);

/** @brief Return whether a peer is reached directly: no gateway, or inside the prefix. */
bool responder_on_link(const struct arp_nd_responder *responder, const struct frame_end *peer);

/**
 * @brief Write one frame of at most RESPONDER_FRAME_MAX bytes and return its length.
 *
 * Announcement: an ARP announcement, an unsolicited neighbour advertisement, or for l2 a broadcast
 * that only other ports of ours know. Request: who has the gateway's address?
 */
uint32_t responder_announcement(const struct arp_nd_responder *responder, uint8_t *frame);
/** @brief Learning: a frame to one station that only other ports of ours know. */
uint32_t responder_learning(const struct arp_nd_responder *responder, uint8_t *frame,
                            const uint8_t to[FRAME_MAC]);
uint32_t responder_request(const struct arp_nd_responder *responder, uint8_t *frame);

/**
 * @brief What a received frame is to the responder.
 *
 * REPLIES: `*answer_length` bytes wait in `answer`. Learns the gateway's address on the way.
 */
enum responder_verdict { RESPONDER_IGNORES, RESPONDER_CONSUMES, RESPONDER_REPLIES };
enum responder_verdict responder_handle(struct arp_nd_responder *responder, const uint8_t *frame,
                                        uint32_t length, uint8_t *answer, uint32_t *answer_length);

#endif
