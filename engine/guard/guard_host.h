/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What /proc and /sys say about a host, for the guard: whom its storage is mounted from, and which
 * interfaces belong to a PCI device. `root` goes before each path ("" outside tests).
 */
#ifndef ENGINE_GUARD_HOST_H
#define ENGINE_GUARD_HOST_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define GUARD_PCI_INTERFACES_MAX 64

/* Called for each server of mounted storage with its numeric address and "mounted storage (nfs4 at
 * /home)". Anything but 0 ends the search and is returned by it. */
typedef int guard_server_fn(void *data, const char *address, const char *what);

/* Network file systems (NFS, SMB, Lustre, Ceph, Gluster), iSCSI and NVMe over fabrics. */
int guard_host_storage(const char *root, guard_server_fn *each, void *data);

/* Is this a PCI address as /sys spells it: "0000:3b:00.0"? */
bool guard_host_is_pci(const char *text);

struct guard_interfaces {
    size_t count;
    char names[GUARD_PCI_INTERFACES_MAX][IF_NAMESIZE];
};

/* The interfaces of PCI device `pci`, of its physical function and of all virtual functions of
 * either: they share a cable. */
int guard_host_pci(const char *root, const char *pci, struct guard_interfaces *interfaces,
                   struct err *err);

/* The same of the PCI device that `iface` lies on; none: it lies on none. */
void guard_host_siblings(const char *root, const char *iface, struct guard_interfaces *interfaces);

/* The interfaces that share the cable of RDMA port `port` ("mlx5_2/1", "mlx5_2"): those that its
 * GIDs name, and those of its PCI device as above (IPoIB is in no GID table). -ENODEV: no such
 * port. -EPERM: neither says anything, so it is not known. */
int guard_host_rdma(const char *root, const char *port, struct guard_interfaces *interfaces,
                    struct err *err);

/* Called for the far end of each TCP connection that process `pid` or one of those that started it
 * holds, as far as this process may see them: sshd's, among others. */
int guard_host_ancestors(const char *root, pid_t pid, guard_server_fn *each, void *data);

#endif
