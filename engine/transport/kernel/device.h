/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What can be known of a kernel interface: its address, speed, offloads, NUMA node.
 *
 * The fd is any socket of the interface's namespace.
 */
#ifndef ENGINE_KERNEL_DEVICE_H
#define ENGINE_KERNEL_DEVICE_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct port_conf;

/**
 * @brief Finds the address that a port is to use (its tcp_address, else its interface's first one:
 * IPv4, then global IPv6, then link-local) and the interface that holds it.
 *
 * The caller is in the port's namespace. `transport`: for messages. `iface` has room for
 * IF_NAMESIZE. -ENODEV, -EADDRNOTAVAIL, -EINVAL with the sentence.
 *
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int kernel_device_address(const struct port_conf *conf, const char *transport,
                          struct sockaddr_storage *address, char *iface, struct err *err);

/** @brief bit/s as the driver says; 0: unknown, or a veth pair, which has none. */
uint64_t kernel_device_speed_bps(int fd, const char *iface);
/**
 * @brief Is it a device on a bus? Others are the kernel's own, and pass a burst of frames as one.
 */
bool kernel_device_has_wire(int fd, const char *iface);
/** @brief -1: none. */
int kernel_device_numa_node(int fd, const char *iface);
/** @brief "tso,gso,gro": those in use, by ethtool's words. */
void kernel_device_offloads(int fd, const char *iface, char *text, size_t size);

#endif
