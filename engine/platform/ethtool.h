/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Queries to the driver of a network interface, by the kernel's ethtool requests.
 *
 * `fd` is any socket of the interface's network namespace.
 */
#ifndef ENGINE_ETHTOOL_H
#define ENGINE_ETHTOOL_H

#include <linux/ethtool.h>
#include <stdint.h>

/**
 * @brief Send an ethtool command; the kernel writes its answer into the same struct.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param iface Name of the network interface.
 * @param command One of the structs of linux/ethtool.h.
 * @return 0 or a negative errno.
 */
int ethtool_ask(int fd, const char *iface, void *command);

/**
 * @brief Return the name of a network interface's driver, and the bus address of its device.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param iface Name of the network interface.
 * @return Driver information; all zero if the driver reports none.
 */
struct ethtool_drvinfo ethtool_driver(int fd, const char *iface);

/**
 * @brief Read the number that an ethtool command returns (ETHTOOL_GTSO, ETHTOOL_GFLAGS).
 *
 * @param fd Open descriptor; stays the caller's.
 * @param iface Name of the network interface.
 * @param command Command that answers with one number (ETHTOOL_GTSO, ETHTOOL_GFLAGS).
 * @return Number; 0: unknown.
 */
uint32_t ethtool_number(int fd, const char *iface, uint32_t command);

/**
 * @brief Return the link speed of an interface as its driver reports it; drivers without a wire
 * (veth, bridges) report an arbitrary speed.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param iface Name of the network interface.
 * @return bit/s; 0: unknown.
 */
uint64_t ethtool_speed_bps(int fd, const char *iface);

#endif
