/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Flow isolation: of a port that others use too (`shared: true`), DPDK gets our frames and
 * the kernel keeps the rest.
 *
 * That is rte_flow's isolated mode under a bifurcated driver (mlx5), or under any other whose rules
 * say what it takes from a kernel interface (net_tap with `remote`).
 *
 * Ours are frames of our EtherType, UDP to the port's own address and our destination, and, behind
 * a gateway, what asks for that address or answers it: each bare and with an 802.1Q tag. Nothing
 * else is taken: no promiscuous mode, no rule on a protocol alone. The kernel must not own the
 * address.
 *
 * Rules end with the process, however it ends: the device belongs to it.
 */
#ifndef ENGINE_DPDK_ISOLATE_H
#define ENGINE_DPDK_ISOLATE_H

#include "err.h"

#include <stdint.h>

struct transport_port;

/**
 * @brief Before the device is configured.
 *
 * -ENOTSUP or the like: its driver isolates nothing; -EADDRINUSE: the kernel owns one of the port's
 * addresses.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int isolate_begin(const struct transport_port *port, struct err *err);

/**
 * @brief Installs the rules that let our frames in, once the device runs with its queues.
 *
 * IP comes by all queues if `spread_by` (RTE_ETH_RSS_ bits) is not 0, all else by the first. An
 * error: the driver can't tell some of our frames from others' frames; then no rule is left.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int isolate_install_rules(struct transport_port *port, uint64_t spread_by, struct err *err);

/**
 * @brief Before the device is stopped: removes the rules, if there are any.
 */
void isolate_end(struct transport_port *port);

#endif
