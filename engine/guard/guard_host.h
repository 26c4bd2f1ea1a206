/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Which interfaces belong to a PCI device or an RDMA port, as /sys says.
 *
 * `root` goes before each path ("" outside tests).
 */
#ifndef ENGINE_GUARD_HOST_H
#define ENGINE_GUARD_HOST_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define GUARD_INTERFACES_MAX 64

/**
 * @brief Return whether a text is a PCI address as /sys spells it: "0000:3b:00.0".
 *
 * @param text Zero-terminated text; not kept.
 * @return True: it is.
 */
bool guard_host_is_pci(const char *text);

struct guard_interfaces {
    size_t count;
    char names[GUARD_INTERFACES_MAX][IF_NAMESIZE];
};

/**
 * @brief List the interfaces of a PCI device.
 *
 * @param root Put before each path; "" outside tests.
 * @param pci PCI address, "0000:3b:00.0".
 * @param interfaces Takes the names.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL: not an address; -ENODEV: there is no such device.
 */
int guard_host_pci(const char *root, const char *pci, struct guard_interfaces *interfaces,
                   struct err *err);

/**
 * @brief List the interfaces that share the cable of an RDMA port ("mlx5_2/1", "mlx5_2"): those
 * that its GIDs name, and those of its PCI device (IPoIB is in no GID table).
 *
 * @param root Put before each path; "" outside tests.
 * @param port RDMA port.
 * @param interfaces Takes the names.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -ENODEV: no such port; -EPERM: neither says anything, so it is not known.
 */
int guard_host_rdma(const char *root, const char *port, struct guard_interfaces *interfaces,
                    struct err *err);

#endif
