/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Device at a port of the modelled switch: a DPDK device (memif, ring, ...), or a kernel
 * interface such as a veth's end through our own packet socket.
 *
 * DPDK's own driver for kernel interfaces waits without end for a slow receiver, and allows 32
 * devices per process.
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
    /** @brief Receive up to `most` waiting frames from a device; return their number. */
    uint16_t (*receive)(struct device *device, struct rte_mbuf **frames, uint16_t most);
    /** @brief Send frames by a device; return how many frames the device took. The caller still
     * owns the other frames. */
    uint16_t (*send)(struct device *device, struct rte_mbuf **frames, uint16_t count);
    /** @brief Return whether a device's other end is connected; NULL: always. */
    bool (*ready)(struct device *device);
    /**
     * @brief Return how many frames were lost at the device's input since the last call; NULL: the
     * other end of the device counts them.
     */
    uint64_t (*lost)(struct device *device);
    void (*close)(struct device *device);
};

/** @brief Common first part of each kind's device struct. */
struct device {
    const struct device_kind *kind;
    struct rte_mempool *pool;
    int64_t empty_ns; /**< time at which it was last found empty */
    uint64_t lost;
    uint16_t count;
    struct rte_mbuf *leaving[DEVICE_BURST];
};

struct device_need {
    struct rte_mempool *pool;
    uint32_t length_max; /**< of a frame, without FCS */
    /** @brief Approximate bytes of received frames that the ring of a kernel interface must hold
     * until they are read. */
    uint64_t room_bytes;
};

/**
 * @brief Open a DPDK device by its arguments ("net_memif0,role=server").
 *
 * @param[out] device Device.
 * @param arguments DPDK's device arguments.
 * @param pool Packets of the device; must outlive it.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, and the caller closes it by its kind; -ENODEV, -EPERM ... with an error message.
 */
int device_open_ethernet(struct device **device, const char *arguments, struct rte_mempool *pool,
                         struct err *err);
/**
 * @brief Open a kernel interface through a packet socket.
 *
 * @param[out] device Device.
 * @param iface Name of the network interface.
 * @param need Buffer sizes that the device needs.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return As device_open_ethernet().
 */
int device_open_packet(struct device **device, const char *iface, const struct device_need *need,
                       struct err *err);

#endif
