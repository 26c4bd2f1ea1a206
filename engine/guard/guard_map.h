/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard's map: a host's devices, how they hang together, and what they are used for; plain
 * data. guard_kernel.c fills it from rtnetlink, guard_host.c from /proc and /sys; guard_map.c
 * follows its links and guard.c judges. Tests draw maps by hand, with devices that the kernel of
 * the moment may not have.
 *
 * Namespaces are numbered in the order in which they were read.
 */
#ifndef ENGINE_GUARD_MAP_H
#define ENGINE_GUARD_MAP_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define GUARD_SPACE_UNKNOWN (-1)
#define GUARD_NSID_NONE (-1)
#define GUARD_ANY_DEVICE 0

struct guard_link {
    int space;      /* its namespace */
    int index;      /* ifindex, unique in its namespace only */
    int master;     /* IFLA_MASTER: ifindex of its bridge, bond, VRF; 0: none */
    int peer;       /* IFLA_LINK: the device below a VLAN or macvlan, a veth's other end; 0: none */
    int peer_space; /* the peer's namespace; GUARD_SPACE_UNKNOWN: not read (yet) */
    int peer_nsid;  /* how `space` numbers that namespace; GUARD_NSID_NONE: it is the same one */
    char name[IF_NAMESIZE];
    char kind[IF_NAMESIZE]; /* IFLA_INFO_KIND: "bridge", "veth", ...; "": hardware */
    bool loopback;
    bool reached; /* by guard_map_reach */
};

/* Something that a host needs and that leaves by a device. */
struct guard_use {
    int space;
    int index;     /* GUARD_ANY_DEVICE: the kernel does not say by which */
    char what[96]; /* "the IPv4 default route (table main)" */
};

/* A network namespace is its inode. */
struct guard_space {
    dev_t device;
    ino_t inode;
};

struct guard_map {
    struct guard_link *links;
    size_t link_count;
    struct guard_use *uses;
    size_t use_count;
    struct guard_space *spaces;
    size_t space_count;
};

void guard_map_free(struct guard_map *map);

/* Both copy their argument. -ENOMEM without a sentence. */
int guard_map_add_link(struct guard_map *map, const struct guard_link *link);
int guard_map_add_use(struct guard_map *map, const struct guard_use *use);

struct guard_link *guard_map_find(const struct guard_map *map, int space, const char *name);

/* Marks every device that shares a cable or a bridge with those already marked: masters and their
 * members, lower devices and their uppers, veth peers; again and again until no more is found. A
 * VRF shares routes, not a cable: the way ends there. */
void guard_map_reach(struct guard_map *map);

/* Reads the devices and the default routes of a namespace (as netns_enter) and gives its number;
 * one that is on the map already is not read again. */
int guard_map_read(struct guard_map *map, const char *netns, int *space, struct err *err);

/* Finds the namespaces of peers of marked devices of `space` (whose name is `netns`) and reads
 * them: the process's own and those below /run/netns are tried. Others stay unknown. */
int guard_map_cross(struct guard_map *map, int space, const char *netns, struct err *err);

/* Adds the use `what` to the devices by which this thread's namespace, `space` on the map, reaches
 * `address` (numeric). Nothing is added when it is the host's own or has no route. -EINVAL: not
 * an address. */
int guard_map_add_route(struct guard_map *map, int space, const char *address, const char *what,
                        struct err *err);

#endif
