/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard: line-rate traffic is a weapon, so the node asks here before it opens a port
 * (doc/reference/safety.md). An interface is refused when it, or a device that shares its cable or
 * its bridge, carries something that a host needs: a default route, the controller's connection,
 * mounted network storage; and when that is a bond or the loopback.
 */
#ifndef ENGINE_GUARD_H
#define ENGINE_GUARD_H

#include "err.h"

#include <stdbool.h>

struct guard_servers; /* guard_servers.h */

/* What is known of the port that is to be opened. Strings are the caller's. */
struct guard_rules {
    const char *controller; /* numeric address of the controller's end of the connection that is
                               said to have started this node (SSH_CONNECTION's first word); NULL
                               or "": none. Those that can be seen are found beside it. */
    const char *driver;     /* who will drive the port, for sentences: "tcp", "af_packet" */
    bool shared;            /* the port's configuration says `shared: true` */
    bool isolates_flows;    /* this driver takes only our frames off the port (rte_flow isolated
                               mode) and leaves the rest to the kernel, or will not open it */
    bool leaves_kernel;     /* opening the port takes the device away from its kernel driver */
    /* Shared by the checks of a node's ports; NULL: this check looks for its own. */
    struct guard_servers *servers;
};

/* May the port send through `iface` of namespace `netns` (as netns_enter; NULL: the process's own)?
 * 0: yes. -ENODEV: no such interface (the sentence lists those that exist); -EPERM: refused (what
 * it carries, where, what to do); or why that could not be found out: then it is not safe either.
 * What belongs to the whole host (controller, storage) is looked up in the process's own
 * namespace, whatever namespace the port is in. */
int guard_check_interface(const char *netns, const char *iface, const struct guard_rules *rules,
                          struct err *err);

/* The same for the kernel interfaces of PCI device `pci` ("0000:3b:00.0"), and of the devices that
 * share its cable by SR-IOV. A device without any (it has left its kernel driver already) passes.
 * -ENODEV: no such device; -EINVAL: not a PCI address. */
int guard_check_pci(const char *pci, const struct guard_rules *rules, struct err *err);

/* The same for the kernel interfaces that share the cable of an RDMA port ("mlx5_2/1"). Where it is
 * not known whether there are any, it is refused. */
int guard_check_rdma(const char *netns, const char *rdma, const struct guard_rules *rules,
                     struct err *err);

/* The same for a DPDK device by its arguments ("net_af_packet0,iface=eth0"): every value in them
 * that is an interface of `netns` or a PCI address is checked. */
int guard_check_vdev(const char *netns, const char *vdev, const struct guard_rules *rules,
                     struct err *err);

struct topology; /* topology.h */
struct topology_link;

/* Decides for a port of namespace `netns` (for the sentence) whose connections are marked. */
int guard_judge(const struct topology *map, const struct topology_link *port, const char *netns,
                const struct guard_rules *rules, struct err *err);

#endif
