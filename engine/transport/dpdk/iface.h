/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Kernel interface through which a DPDK port sends (AF_PACKET, AF_XDP): properties that
 * DPDK's drivers do not report, or report wrongly.
 *
 * Its sockets stay in the namespace of the call of iface_open(), so all other functions may be
 * called from any thread.
 */
#ifndef ENGINE_DPDK_IFACE_H
#define ENGINE_DPDK_IFACE_H

#include "ip_port.h"

#include <stdbool.h>
#include <stdint.h>

#define IFACE_RINGS_MAX 64 /**< equal to a port's maximum queues */

struct iface {
    /**
     * @brief Packet socket of the interface. It wakes sleeping threads by the frames that its
     * filter passes, and holds promiscuous mode, which ends with the socket (also in a crash).
     */
    struct ip_port ip;
    bool wakes;
    /** @brief Sockets of the AF_PACKET driver, one per queue, which this struct does not own. */
    int ring_fds[IFACE_RINGS_MAX];
    unsigned ring_count; /**< 0: unknown */
    /** @brief Default send buffer of a socket in bytes; send_ring is enough for a whole ring. */
    int send_buffer;
    int send_ring;
    uint64_t ring_drops;
};

/**
 * @brief Open a kernel interface; return an error if the interface is missing, unusable, not
 * Ethernet, or down.
 *
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int iface_open(struct iface *iface, const struct port_conf *conf, struct err *err);
int iface_promiscuous(struct iface *iface, struct err *err);
/**
 * @brief Make the packet socket readable when a received frame has one of two signature tags (in
 * network byte order) at `offset`. `vlan`: the frame has an 802.1Q tag, which the kernel may have
 * removed.
 *
 * The driver's ring then already has the frame, if iface_open() was called before the driver
 * started. Frames of the load wake no thread: they may gather.
 */
void iface_wake_by(struct iface *iface, const uint16_t tags[2], uint32_t offset, bool vlan);
/**
 * @brief Make the packet socket unreadable until the next frame that passes its filter.
 *
 * To be called before the ring is read.
 */
void iface_wake_clear(const struct iface *iface);
/**
 * @brief Find the sockets that the AF_PACKET driver has just opened on an interface in this
 * process; they report how many frames were dropped because the ring was full.
 *
 * From now on they receive the interface's incoming frames, but not frames sent by other programs
 * of this host.
 */
void iface_find_ring(struct iface *iface, uint32_t frames, uint32_t slot_bytes);
/** @brief Return how many received frames were dropped because the ring was full, since the ring
 * was opened; -1: unknown. */
int64_t iface_ring_drops(struct iface *iface);
/**
 * @brief Set the sizes of the send buffers of an interface's sockets, for a paced sender or a
 * forwarder.
 *
 * Frames that wait elsewhere in the kernel count against a socket's send buffer, and frames beyond
 * it wait in the socket's ring.
 *
 * This keeps a device's own queue short. Behind a virtual interface, however, there may be a
 * switch, whose full queue must drop frames. So there a paced sender gets a send buffer as large as
 * the ring; a forwarder, which sends as soon as it can, keeps the system's default, and waits as it
 * would for a NIC.
 */
void iface_cork(const struct iface *iface, bool paced);
/**
 * @brief Make the kernel send the frames that still wait in the send rings. To be called after the
 * last burst, since each burst sends the frames of the burst before.
 *
 * Returns whether frames may still wait.
 */
bool iface_push(const struct iface *iface);

#endif
