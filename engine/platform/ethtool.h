/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ethtool's questions about an interface. `fd` is any socket of the interface's network namespace.
 */
#ifndef ENGINE_ETHTOOL_H
#define ENGINE_ETHTOOL_H

#include <linux/ethtool.h>
#include <stdint.h>

/* One of linux/ethtool.h's commands, answered in place; 0 or a negative errno. */
int ethtool_ask(int fd, const char *iface, void *command);

/* Driver and bus address; empty where the driver says nothing. */
struct ethtool_drvinfo ethtool_driver(int fd, const char *iface);

/* The data of a command that answers with one number (ETHTOOL_GTSO, ETHTOOL_GFLAGS); 0: unknown. */
uint32_t ethtool_number(int fd, const char *iface, uint32_t command);

/* bit/s as the driver says, also where it is made up (veth, bridges); 0: unknown. */
uint64_t ethtool_speed_bps(int fd, const char *iface);

#endif
