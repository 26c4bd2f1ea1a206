/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Safety guard: checks a port before the node opens it, because line-rate traffic can take a
 * network down (doc/reference/safety.md).
 *
 * An interface is blocked when a default route or the controller's connection leaves by it, by an
 * interface on its cable, or by a tunnel over it; when it is a bond or a member of a bond or
 * bridge; and when it is the loopback.
 */
#ifndef ENGINE_GUARD_H
#define ENGINE_GUARD_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define GUARD_INTERFACES_MAX 64

/**
 * @brief Properties of a port by which the safety guard allows or blocks the port.
 *
 * Strings are the caller's.
 */
struct guard_rules {
    /**
     * @brief Numeric address of the controller's end of the connection that started this node
     * (SSH_CONNECTION's first word); NULL or "": none.
     */
    const char *controller;
    bool shared;       /**< the port's configuration has `shared: true` */
    bool takes_frames; /**< the port's transport also consumes frames for other programs: it can
                          never be `shared` */
};

/**
 * @brief Check whether a port may send through an interface.
 *
 * @param netns Network namespace, as netns_enter() takes it; NULL: the process's own.
 * @param iface Name of the network interface.
 * @param rules Properties of the port.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0: the port may send; -ENODEV: no such interface (the error message lists the existing
 *        ones); -EPERM: blocked (the error message says what the interface carries and what to do);
 *        another negative errno: the check failed, so the port must not send.
 */
int guard_check_interface(const char *netns, const char *iface, const struct guard_rules *rules,
                          struct err *err);

/**
 * @brief Check whether a port may send through a PCI device, by checking the device's kernel
 * interfaces. A device without kernel interfaces (already unbound from its kernel driver) passes.
 *
 * @param pci PCI address, "0000:3b:00.0".
 * @param rules Properties of the port.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return As guard_check_interface(); -ENODEV: no such device; -EINVAL: not a PCI address.
 */
int guard_check_pci(const char *pci, const struct guard_rules *rules, struct err *err);

/**
 * @brief Check whether a port may send through an RDMA port, by checking the kernel interfaces on
 * the same cable.
 *
 * If these interfaces cannot be determined, the port is blocked.
 *
 * @param netns Network namespace, as netns_enter() takes it; NULL: the process's own.
 * @param rdma RDMA port, "mlx5_2/1".
 * @param rules Properties of the port.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return As guard_check_interface().
 */
int guard_check_rdma(const char *netns, const char *rdma, const struct guard_rules *rules,
                     struct err *err);

/**
 * @brief Check whether a port may send through a DPDK device, by checking each network interface
 * and each PCI address that the device's arguments name.
 *
 * @param netns Network namespace, as netns_enter() takes it; NULL: the process's own.
 * @param vdev Arguments of a DPDK device, "net_af_packet0,iface=eth0".
 * @param rules Properties of the port.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return As guard_check_interface().
 */
int guard_check_vdev(const char *netns, const char *vdev, const struct guard_rules *rules,
                     struct err *err);

/** @brief Interfaces that belong to a PCI device or an RDMA port. */
struct guard_interfaces {
    size_t count;
    char names[GUARD_INTERFACES_MAX][IF_NAMESIZE];
};

/**
 * @brief List the kernel interfaces of a PCI device.
 *
 * @param root Prefix of each path; "" except in tests.
 * @param pci PCI address, "0000:3b:00.0".
 * @param[out] interfaces Names.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -EINVAL: not an address; -ENODEV: there is no such device.
 */
int guard_host_pci(const char *root, const char *pci, struct guard_interfaces *interfaces,
                   struct err *err);

/**
 * @brief List the kernel interfaces that share the cable of an RDMA port ("mlx5_2/1", "mlx5_2"):
 * interfaces that its GIDs name, and interfaces of its PCI device (IPoIB is in no GID table).
 *
 * @param root Prefix of each path; "" except in tests.
 * @param port RDMA port.
 * @param[out] interfaces Names.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -ENODEV: no such port; -EPERM: neither source names an interface, so the interfaces
 *        are unknown.
 */
int guard_host_rdma(const char *root, const char *port, struct guard_interfaces *interfaces,
                    struct err *err);

struct guard_map; /* guard_map.h */
struct guard_link;

/**
 * @brief Check whether a port may send, given a map of the host's devices and of the routes that
 * the host needs.
 *
 * @param map Map of devices, with the routes that the host needs through them.
 * @param port Port of the map.
 * @param netns Network namespace, as netns_enter() takes it; NULL: the process's own.
 * @param rules Properties of the port.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return As guard_check_interface().
 */
int guard_judge(const struct guard_map *map, const struct guard_link *port, const char *netns,
                const struct guard_rules *rules, struct err *err);

#endif
