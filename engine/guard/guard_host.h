/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which interfaces belong to a PCI device or an RDMA port, as /sys says. `root` goes before each
 * path ("" outside tests).
 */
#ifndef ENGINE_GUARD_HOST_H
#define ENGINE_GUARD_HOST_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define GUARD_INTERFACES_MAX 64

/* Is this a PCI address as /sys spells it: "0000:3b:00.0"? */
bool guard_host_is_pci(const char *text);

struct guard_interfaces {
    size_t count;
    char names[GUARD_INTERFACES_MAX][IF_NAMESIZE];
};

/* The interfaces of PCI device `pci`. -EINVAL: not an address. -ENODEV: there is none. */
int guard_host_pci(const char *root, const char *pci, struct guard_interfaces *interfaces,
                   struct err *err);

/* The interfaces that share the cable of RDMA port `port` ("mlx5_2/1", "mlx5_2"): those that its
 * GIDs name, and those of its PCI device (IPoIB is in no GID table). -ENODEV: no such port. -EPERM:
 * neither says anything, so it is not known. */
int guard_host_rdma(const char *root, const char *port, struct guard_interfaces *interfaces,
                    struct err *err);

#endif
