/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Devices of a network namespace, and the routes that a host needs through them: read from
 * rtnetlink(7) by one dump of links and one of routes.
 *
 * Plain data: tests make maps by hand.
 */
#ifndef ENGINE_GUARD_MAP_H
#define ENGINE_GUARD_MAP_H

#include "err.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define ANY_DEVICE 0

struct guard_link {
    int index;
    int master;     /**< ifindex of its bridge, bond, VRF; 0: none */
    int lower;      /**< ifindex of the device below a VLAN or macvlan; 0: none */
    bool elsewhere; /**< the lower device is in another namespace */
    bool loopback;
    char name[IF_NAMESIZE];
    char kind[IF_NAMESIZE]; /**< "bridge", "veth", ...; "": hardware */
    /** @brief Destination of a tunnel's packets. It and the device below (`below`) can be
     * unknown. */
    unsigned char remote[16]; /**< 4 bytes of IPv4 or 16 of IPv6 */
    int remote_bytes;         /**< 4, 16; 0: none, or not reported by the kernel */
    int below;                /**< ifindex; 0: not reported */
};

/** @brief Route or connection that the host needs, and the device that carries it. */
struct guard_use {
    int index;     /**< ifindex of the device; ANY_DEVICE: unknown */
    int part;      /**< while reading: 4 or 6, a route to a part of all IPv4 or IPv6 addresses */
    char what[96]; /**< "the IPv4 default route (table main)" */
};

struct guard_map {
    struct guard_link *links;
    size_t link_count;
    struct guard_use *uses;
    size_t use_count;
};

/**
 * @brief Free the memory of a map.
 *
 * @param map Map of devices, with the routes that the host needs through them.
 */
void guard_map_free(struct guard_map *map);

/**
 * @brief Add a copy of a device to a map.
 *
 * @param map Map of devices, with the routes that the host needs through them.
 * @param link Device; copied.
 * @return 0; -ENOMEM; no error message is set.
 */
int guard_map_add_link(struct guard_map *map, const struct guard_link *link);
/**
 * @brief Add to a map a route or connection that the host needs, with the device that carries it.
 *
 * @param map Map of devices, with the routes that the host needs through them.
 * @param index Index of the device that carries the route or connection, or ANY_DEVICE.
 * @param what Description, such as "the IPv4 default route (table main)"; copied.
 * @return 0; -ENOMEM; no error message is set.
 */
int guard_map_add_use(struct guard_map *map, int index, const char *what);

/**
 * @brief Return the device of a map that has a given name.
 *
 * @param map Map of devices, with the routes that the host needs through them.
 * @param name Name.
 * @return Device of the map; NULL: there is none.
 */
const struct guard_link *guard_map_find(const struct guard_map *map, const char *name);
/**
 * @brief Return the device of a map that has a given interface index.
 *
 * @param map Map of devices, with the routes that the host needs through them.
 * @param index Index of the device.
 * @return Device of the map; NULL: there is none.
 */
const struct guard_link *guard_map_at(const struct guard_map *map, int index);

/**
 * @brief Return whether a device is a tunnel: it sends its packets inside other packets, through a
 * device that its link message does not name.
 *
 * Every virtual kind counts, except those known to send by their links (VLAN, bridge, bond, veth,
 * ...).
 *
 * @param link Device.
 * @return True: the device is a tunnel.
 */
bool guard_link_is_tunnel(const struct guard_link *link);

/**
 * @brief Read a namespace's devices and the routes that the host needs: default routes, routes that
 * together cover half of all addresses, and, in the process's own namespace, the route to the
 * controller.
 *
 * Traffic of a tunnel also uses the device below, found by the tunnel's settings or by the route to
 * its remote address; where neither is available, it uses ANY_DEVICE.
 *
 * @param[out] map Map; the caller frees it by guard_map_free(), also after a failure.
 * @param netns Network namespace, as netns_enter() takes it; NULL: the process's own.
 * @param controller Numeric address of the controller; NULL or "": none.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno.
 */
int guard_map_read(struct guard_map *map, const char *netns, const char *controller,
                   struct err *err);

#endif
