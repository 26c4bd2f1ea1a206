/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A host's devices, how they are connected, and what critical traffic leaves by them; plain data.
 * topology_netlink.c fills it from rtnetlink, guard_host.c from /proc and /sys; guard.c decides.
 * Tests make topologies by hand, with devices that the kernel at hand may not have.
 *
 * Namespaces are numbered in the order in which they were read.
 */
#ifndef ENGINE_GUARD_TOPOLOGY_H
#define ENGINE_GUARD_TOPOLOGY_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SPACE_UNKNOWN (-1)
#define NSID_NONE (-1)
#define ANY_DEVICE 0

struct topology_link {
    int space;      /* its namespace */
    int index;      /* ifindex, unique in its namespace only */
    int master;     /* IFLA_MASTER: ifindex of its bridge, bond, VRF; 0: none */
    int peer;       /* IFLA_LINK: the device below a VLAN or macvlan, a veth's other end; 0: none */
    int peer_space; /* the peer's namespace; SPACE_UNKNOWN: not read (yet) */
    int peer_nsid;  /* how `space` numbers that namespace; NSID_NONE: it is the same one */
    char name[IF_NAMESIZE];
    char kind[IF_NAMESIZE]; /* IFLA_INFO_KIND: "bridge", "veth", ...; "": hardware */
    bool loopback;
    /* Of a tunnel: where its packets go, and by which device below; both can be unknown. */
    unsigned char remote[16]; /* 4 bytes of IPv4 or 16 of IPv6 */
    int remote_bytes;         /* 4, 16; 0: no remote address, or none that the kernel tells */
    int below;                /* ifindex in the tunnel's own namespace; 0: not told */
    bool reached;             /* by topology_mark_connected */
};

/* Something that a host needs and that leaves by a device. */
struct critical_use {
    int space;
    int index;     /* ANY_DEVICE: the kernel does not say by which */
    char what[96]; /* "the IPv4 default route (table main)" */
};

/* A network namespace is its inode. */
struct topology_space {
    dev_t device;
    ino_t inode;
};

struct topology {
    struct topology_link *links;
    size_t link_count;
    struct critical_use *uses;
    size_t use_count;
    struct topology_space *spaces;
    size_t space_count;
};

void topology_free(struct topology *topology);

/* They copy their argument. -ENOMEM without a sentence. */
int topology_add_link(struct topology *topology, const struct topology_link *link);
int topology_add_use(struct topology *topology, const struct critical_use *use);
int topology_add_space(struct topology *topology, const struct topology_space *space);

struct topology_link *topology_find(const struct topology *topology, int space, const char *name);
struct topology_link *topology_find_index(const struct topology *topology, int space, int index);

/* Marks every device that shares a cable or a bridge with those already marked: masters and their
 * members, lower devices and their uppers, veth peers; again and again until no more is found. A
 * VRF shares routes, not a cable: the way ends there. */
void topology_mark_connected(struct topology *topology);

/* Is it a tunnel: does it send its packets inside of others, by a device that no link names? Every
 * virtual kind counts that is not known to send by its links (VLAN, bridge, bond, veth, ...). */
bool topology_is_tunnel(const struct topology_link *link);

/* Reads the devices and the default routes of a namespace (as netns_enter) and gives its number;
 * one that is on the map already is not read again. */
int topology_read(struct topology *topology, const char *netns, int *space, struct err *err);

/* Finds the namespaces of peers of marked devices of `space` (whose name is `netns`) and reads
 * them: the process's own and those below /run/netns are tried. Others stay unknown. */
int topology_cross_namespaces(struct topology *topology, int space, const char *netns,
                              struct err *err);

/* For each use of `space` (this thread's) that leaves by a tunnel adds one to the device below the
 * tunnel, found by its settings or by the route to its remote address; where neither tells, to
 * ANY_DEVICE. Uses that came before `first` were followed earlier. */
int topology_follow_tunnels(struct topology *topology, int space, size_t first);

/* Adds the use `what`, and those of tunnels, to the devices by which this thread's namespace,
 * `space` on the map, reaches `address` (numeric). Nothing is added when it is the host's own or
 * has no route. -EINVAL: not an address. */
int topology_add_route(struct topology *topology, int space, const char *address, const char *what,
                       struct err *err);

#endif
