/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A raw port as a guest on the network: it makes itself known (switches learn its address), it
 * answers ARP and neighbour solicitations for its own addresses, and it finds its gateway, the
 * only next hop besides its peers. Bytes in, bytes out: no I/O.
 *
 * Sources: RFC 826 and 5227 (ARP and its announcements), RFC 4861 (neighbour discovery).
 */
#ifndef ENGINE_DPDK_GUEST_H
#define ENGINE_DPDK_GUEST_H

#include "frame.h"

#define GUEST_FRAME_MAX 96u /* longest frame that a guest sends, without FCS */

struct guest {
    uint8_t mac[FRAME_MAC];
    bool has_ipv4;
    bool has_ipv6;
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint8_t ipv4_prefix; /* bits */
    uint8_t ipv6_prefix;
    bool has_gateway4;
    bool has_gateway6;
    uint8_t gateway4[4];
    uint8_t gateway6[16];
    bool gateway_known;
    uint8_t gateway_mac[FRAME_MAC];
    /* How it speaks: as the last phase that was prepared on its port. */
    enum header_kind kind;
    bool vlan;
    uint16_t vlan_tci;
};

/* Reads "198.19.0.1/16", "2001:2:0:1::1/64" and the gateway of either family; each may be NULL.
 * -EINVAL with the sentence. */
int guest_addresses(struct guest *guest, const struct port_conf *conf, struct err *err);

/* Whether a peer is reached directly: no gateway, or inside the prefix. */
bool guest_on_link(const struct guest *guest, const struct frame_end *peer);

/* Write one frame of at most GUEST_FRAME_MAX bytes and return its length. Announcement: an ARP
 * announcement, an unsolicited neighbour advertisement, or for l2 a broadcast that only other
 * ports of ours know. Question: who has the gateway's address? */
uint32_t guest_announcement(const struct guest *guest, uint8_t *frame);
uint32_t guest_question(const struct guest *guest, uint8_t *frame);

/* What a received frame is to the guest. ANSWER: `*answer_length` bytes wait in `answer`. Learns
 * the gateway's address on the way. */
enum guest_verdict { GUEST_IGNORES, GUEST_HEARS, GUEST_ANSWERS };
enum guest_verdict guest_hear(struct guest *guest, const uint8_t *frame, uint32_t length,
                              uint8_t *answer, uint32_t *answer_length);

#endif
