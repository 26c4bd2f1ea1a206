/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief ARP and ND responder, a raw port's host stack: announces its addresses (switches learn
 * them), answers ARP requests and neighbour solicitations for them, and resolves its gateway, the
 * only next hop besides its peers.
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
    /**
     * @brief Header kind of the responder's frames: the kind of the last phase prepared on its
     * port.
     */
    enum header_kind kind;
    bool vlan;
    uint16_t vlan_tci;
};

/**
 * @brief Set the responder's addresses from "198.19.0.1/16", "2001:2:0:1::1/64" and the gateway of
 * either family; each may be NULL.
 *
 * Returns -EINVAL with an error message.
 *
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int responder_set_addresses(struct arp_nd_responder *responder, const struct port_conf *conf,
                            struct err *err);

/** @brief Return whether a peer is reached directly, without the gateway: the port has no gateway,
 * or the peer's address is inside the port's prefix. */
bool responder_on_link(const struct arp_nd_responder *responder, const struct frame_end *peer);

/**
 * @brief Write an announcement of the port's address, and return its length, at most
 * RESPONDER_FRAME_MAX.
 *
 * An ARP announcement, an unsolicited neighbour advertisement, or for l2 a broadcast that only our
 * ports understand. responder_request() writes a request for the gateway's address.
 */
uint32_t responder_announcement(const struct arp_nd_responder *responder, uint8_t *frame);
/** @brief Write a learning frame, from which switches learn the port's address. It is sent to one
 * station; only Switchbench ports recognize it. */
uint32_t responder_learning(const struct arp_nd_responder *responder, uint8_t *frame,
                            const uint8_t to[FRAME_MAC]);
uint32_t responder_request(const struct arp_nd_responder *responder, uint8_t *frame);

/**
 * @brief Action of the responder on a received frame: ignore it, consume it, or consume it and
 * reply.
 *
 * With RESPONDER_REPLIES the reply is in `answer`, `*answer_length` bytes. responder_handle() also
 * stores the gateway's address from a received answer.
 */
enum responder_verdict { RESPONDER_IGNORES, RESPONDER_CONSUMES, RESPONDER_REPLIES };
enum responder_verdict responder_handle(struct arp_nd_responder *responder, const uint8_t *frame,
                                        uint32_t length, uint8_t *answer, uint32_t *answer_length);

#endif
