/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The packet transport: raw Ethernet frames through a packet socket of the kernel.
 *
 * port.c opens a port, lane.c makes its share of a phase (a lane of frames, frame_lane.h), hot.c
 * moves its frames. A frame is Ethernet 14 | signature 18 | fill, as dpdk's of header l2.
 *
 * Received frames lie in a ring of TPACKET_V2, which hands each over as it comes: TPACKET_V3 keeps
 * them until a block is full or a timer of whole jiffies ends, and times would be that timer's.
 * Frames are sent by sendmmsg, which tells how many were taken: PACKET_TX_RING counts as sent what
 * the device refused.
 *
 * @see packet(7); Linux, Documentation/networking/packet_mmap.rst
 */
#ifndef ENGINE_PACKET_LANE_H
#define ENGINE_PACKET_LANE_H

#include "frame_lane.h"
#include "ip_port.h"
#include "socket_frame.h"

#include <linux/if_ether.h>

#define PACKET_TYPE ETH_P_802_EX1 /**< IEEE 802 local experimental EtherType 1 (RFC 9542) */
#define PACKET_HEAD (ETH_HLEN + SIGNATURE_BYTES) /**< bytes before the fill */

/** @brief The ring of received frames. */
struct packet_ring {
    uint8_t *slots;
    size_t slot_bytes; /**< a power of two */
    uint32_t count;
    uint32_t next; /**< the slot that the kernel fills next and we read next */
    uint32_t held; /**< slots before `next` that are read and not given back */
};

/** @brief A packet port: one socket, through which all phases send and receive. */
struct transport_port {
    struct ip_port ip; /**< first; it has no address */
    uint8_t mac[ETH_ALEN];
    uint32_t frame_max;
    struct packet_ring ring;
    uint64_t ring_drops; /**< frames that found the ring full */
    uint32_t lanes;      /**< prepared and not destroyed */
    /** @brief By the worker, and read when it is through with a phase. */
    uint64_t sent;            /**< frames that the device took */
    uint64_t received;        /**< and that the kernel handed over */
    uint64_t forward_dropped; /**< frames that a forwarder had no room for */
};

/** @brief How a partner is reached. */
struct packet_partner {
    uint8_t mac[ETH_ALEN];
    uint16_t rank;
};

struct packet_lane {
    struct frame_lane frame; /**< first */
    struct transport_port *port;
    bool announced;
    struct socket_frame outbox[FRAME_BURST_MAX];
    struct frame_template heads[FRAME_BURST_MAX]; /**< of the outbox's */
    struct socket_frame inbox[FRAME_BURST_MAX];
};

/* port.c: as in the transport's table. */
int packet_port_open(struct transport_port **port, const struct port_conf *conf,
                     const struct transport_run *run, struct err *err);
void packet_port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void packet_port_close(struct transport_port *port);
/** @brief Keep where a flow's partner is: frame_lane.h's hook. */
int packet_resolve(struct frame_lane *lane, uint32_t place, void *partner, uint64_t *line_bps,
                   struct err *err);

/** @brief hot.c: the lane's hooks. */
extern const struct frame_ops packet_ops;
/** @brief Send an empty frame to all: switches learn where the port is. */
void packet_announce(struct packet_lane *lane);

#endif
