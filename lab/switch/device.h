/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What is plugged into a port: a device of DPDK's (memif, ring, ...) or a kernel interface,
 * such as a veth's end, by a packet socket of our own.
 *
 * DPDK's own driver for those waits without end when a receiver is slow to take frames, and 32
 * devices are all that a process may have of it.
 */
#ifndef MODEL_DEVICE_H
#define MODEL_DEVICE_H

#include "err.h"

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;

#define DEVICE_BURST 64u

struct device;

struct device_kind {
    /** @brief Up to `most` frames that wait. */
    uint16_t (*receive)(struct device *device, struct rte_mbuf **frames, uint16_t most);
    /** @brief Takes the first n, which it returns; the rest stays the caller's. */
    uint16_t (*send)(struct device *device, struct rte_mbuf **frames, uint16_t count);
    /** @brief Somebody is plugged in; NULL: always. */
    bool (*ready)(struct device *device);
    /** @brief Frames that it lost on their way in, since the last call; NULL: it leaves them to its
     * other end. */
    uint64_t (*lost)(struct device *device);
    void (*close)(struct device *device);
};

/** @brief Each kind's own struct begins with this. */
struct device {
    const struct device_kind *kind;
    struct rte_mempool *pool;
    int64_t empty_ns; /**< when it was last seen to hold nothing */
    uint64_t lost;
    uint16_t count;
    struct rte_mbuf *leaving[DEVICE_BURST];
};

struct device_need {
    struct rte_mempool *pool;
    uint32_t length_max; /**< of a frame, without FCS */
    uint64_t room_bytes; /**< what a kernel interface may hold before it is read, about */
};

/**
 * @brief Open a device of DPDK's by its arguments ("net_memif0,role=server").
 *
 * @param device Takes the device.
 * @param arguments DPDK's device arguments.
 * @param pool Packets of the device; must outlive it.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, and the caller closes it by its kind; -ENODEV, -EPERM ... with the sentence.
 */
int device_open_ethernet(struct device **device, const char *arguments, struct rte_mempool *pool,
                         struct err *err);
/**
 * @brief Open a kernel interface by a packet socket.
 *
 * @param device Takes the device.
 * @param iface Name of the network interface.
 * @param need What the device is to hold.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return As device_open_ethernet().
 */
int device_open_packet(struct device **device, const char *iface, const struct device_need *need,
                       struct err *err);

#endif
