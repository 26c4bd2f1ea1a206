/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The device under a port: how it comes to be (a kernel interface, a PCI device, a virtual
 * one), its queues and their memory.
 */
#ifndef ENGINE_DPDK_PORT_DEVICE_H
#define ENGINE_DPDK_PORT_DEVICE_H

#include "port_state.h"

struct rte_eth_dev_info;

/**
 * @brief In the port's namespace: drivers make their sockets there.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int port_device_open(struct transport_port *port, struct err *err);
/** @brief Also of one that was opened in part. */
void port_device_close(struct transport_port *port);

/** @brief What a device gives: its send queues and the offloads of ours that it has. */
struct queue_layout {
    uint16_t queues;
    uint16_t send_queues;
    uint64_t send_offloads;
    uint64_t spread_by; /**< RTE_ETH_RSS_ bits; 0: one queue, or the device spreads by itself */
};

/**
 * @brief `conf`: queues, queues_at_most.
 *
 * -EINVAL with what is possible.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int choose_queues(struct queue_layout *layout, const struct port_conf *conf,
                  const struct rte_eth_dev_info *info, struct err *err);

/**
 * @brief The buffers for received frames of a PCI device's queue: as many as are held at the same
 * time when the port forwards, in rings of so many descriptors, in the forwarder's queue, in a
 * burst and in the caches of cores.
 *
 * With fewer the device runs out of them.
 */
uint32_t receive_pool_frames(uint16_t receives, uint16_t sends);

#endif
