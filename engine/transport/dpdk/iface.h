/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A kernel interface that a DPDK port sends through (AF_PACKET, AF_XDP): what DPDK's drivers
 * do not say or say wrongly.
 *
 * Its sockets stay in the namespace where iface_open was called, so all the rest may be asked from
 * any thread.
 */
#ifndef ENGINE_DPDK_IFACE_H
#define ENGINE_DPDK_IFACE_H

#include "err.h"
#include "netlink.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define IFACE_RINGS_MAX 64 /**< as many as a port has queues */

struct iface {
    char name[IFNAMSIZ];
    int index;
    int packet_fd; /**< wakes sleepers, by the frames that its filter lets pass; holds promiscuous
                      mode, which ends with it (also in a crash) */
    bool wakes;
    int route_fd; /**< rtnetlink, for statistics */
    /** @brief AF_PACKET driver's own sockets, one a queue, not ours to close. */
    int ring_fds[IFACE_RINGS_MAX];
    unsigned ring_count; /**< 0: not known */
    int send_buffer;     /**< bytes that a socket has by default, and what a whole ring needs */
    int send_ring;
    uint32_t mtu;
    uint8_t mac[6];
    bool on_bus;         /**< a device, not made by software alone (veth and the like) */
    uint64_t link_bps;   /**< 0: virtual, or unknown */
    bool vlan_offloaded; /**< takes 802.1Q tags out of what it receives: XDP never sees them */
    uint64_t ring_drops;
    uint64_t receive_errors; /**< when iface_counts_begin read them */
    uint64_t sent;           /**< the same */
    struct link_drops drops; /**< as iface_counts last read them */
};

struct iface_counts {
    uint64_t receive_errors; /**< since iface_counts_begin, as the others */
    uint64_t sent;           /**< by whomever */
    uint64_t send_dropped;   /**< in this host: attempts, AF_PACKET sends a frame again and again */
    uint64_t no_carrier;     /**< dropped while sending, as there was no carrier */
};

/**
 * @brief Refuses an interface that is not there, may not be used, is no Ethernet or is down.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int iface_open(struct iface *iface, const char *name, struct err *err);
int iface_promiscuous(struct iface *iface, struct err *err);
/**
 * @brief Has packet_fd become readable when a received frame has one of the tags (as on the wire)
 * at `offset`; behind an 802.1Q tag if `vlan`, which may have been taken out of the frame.
 *
 * By then the driver's ring has the frame, so long as iface_open was called before the driver
 * began. For the load's frames nobody is woken: they may gather.
 */
void iface_wake_by(struct iface *iface, const uint16_t tags[2], uint32_t offset, bool vlan);
/**
 * @brief Makes packet_fd unreadable, until the next such frame.
 *
 * Before the ring is looked at.
 */
void iface_wake_clear(const struct iface *iface);
/** @brief Up, and with a carrier. */
bool iface_running(const struct iface *iface);
void iface_counts_begin(struct iface *iface);
int iface_counts(struct iface *iface, struct iface_counts *counts);
/**
 * @brief Finds the sockets that the AF_PACKET driver has just opened on the interface in this
 * process: the only place where the kernel says how many frames found its ring full.
 *
 * From now on they hear what comes by the interface, not what other programs of this host send by
 * it.
 */
void iface_find_ring(struct iface *iface, uint32_t frames, uint32_t slot_bytes);
/** @brief Frames that found the ring full since it was opened; -1: not known. */
int64_t iface_ring_drops(struct iface *iface);
/**
 * @brief Frames of a socket that wait elsewhere in the kernel count against its send buffer, and
 * those that find it full wait in the socket's ring.
 *
 * A device's own queue is kept short in this way. But behind a virtual interface there may be a
 * switch, whose full queue must drop what comes. So there whoever sends at a rate of its own
 * (`paced`) gets a send buffer as large as the ring; who sends on what comes as soon as it can, one
 * as the system has it, and waits as it would for a NIC.
 */
void iface_cork(const struct iface *iface, bool paced);
/**
 * @brief Has the kernel send what waits in the rings, as the driver does with each burst: for those
 * behind which no other comes.
 *
 * Returns whether some may wait still.
 */
bool iface_push(const struct iface *iface);
void iface_close(struct iface *iface);

#endif
