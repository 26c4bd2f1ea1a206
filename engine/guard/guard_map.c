/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard_map.h"

#include "address.h"
#include "netlink.h"
#include "netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPPED_IPV4 "::ffff:"
#define DUMP_TRIES 10
#define WIDE_BITS 16 /* of a prefix: longer ones cover too little to count */

/* State while the links and routes of a namespace are read into a map. */
struct reading {
    struct guard_map *map;
    int fd;
    const char *what; /* use of the route that is looked up */
    /* Partial routes of IPv4 and of IPv6, in 65,536ths of all addresses. The sum is over all
     * tables, which blocks too much rather than too little. */
    uint32_t parts[2];
};

/* --- the map --- */

/* Append an element to an array of the map. A host has tens of devices, seldom thousands, so that
 * one reallocation per element is cheap.
 */
static int append(void **array, size_t *count, const void *element, size_t size)
{
    char *grown = realloc(*array, (*count + 1) * size);

    if (grown == NULL)
        return -ENOMEM;
    memcpy(grown + (*count)++ * size, element, size);
    *array = grown;
    return 0;
}

int guard_map_add_link(struct guard_map *map, const struct guard_link *link)
{
    return append((void **)&map->links, &map->link_count, link, sizeof(*link));
}

int guard_map_add_use(struct guard_map *map, int index, const char *what)
{
    struct guard_use use = {.index = index};

    snprintf(use.what, sizeof(use.what), "%s", what);
    return append((void **)&map->uses, &map->use_count, &use, sizeof(use));
}

void guard_map_free(struct guard_map *map)
{
    free(map->links);
    free(map->uses);
    *map = (struct guard_map){0};
}

const struct guard_link *guard_map_find(const struct guard_map *map, const char *name)
{
    for (size_t i = 0; i < map->link_count; i++)
        if (strcmp(map->links[i].name, name) == 0)
            return &map->links[i];
    return NULL;
}

const struct guard_link *guard_map_at(const struct guard_map *map, int index)
{
    for (size_t i = 0; i < map->link_count; i++)
        if (map->links[i].index == index)
            return &map->links[i];
    return NULL;
}

bool guard_link_is_tunnel(const struct guard_link *link)
{
    /* Their packets stay in the host, or leave by a link that the kernel names. */
    static const char *const plain[] = {
        "",       "bond",    "bridge",  "dummy",  "ifb",  "ipoib", "ipvlan", "ipvtap",
        "macsec", "macvlan", "macvtap", "netkit", "team", "veth",  "vlan",   "vrf"};

    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (strcmp(link->kind, plain[i]) == 0)
            return false;
    return true;
}

/* --- links --- */

/* Attributes of each kind of tunnel for its remote addresses and the device below (linux/if_link.h,
 * linux/if_tunnel.h). */
static const struct {
    const char *kind;
    uint16_t remote, remote6, below;
} tunnels[] = {
    {"vxlan", IFLA_VXLAN_GROUP, IFLA_VXLAN_GROUP6, IFLA_VXLAN_LINK},
    {"geneve", IFLA_GENEVE_REMOTE, IFLA_GENEVE_REMOTE6, 0},
    {"gre", IFLA_GRE_REMOTE, 0, IFLA_GRE_LINK},
    {"gretap", IFLA_GRE_REMOTE, 0, IFLA_GRE_LINK},
    {"ip6gre", 0, IFLA_GRE_REMOTE, IFLA_GRE_LINK},
    {"ip6gretap", 0, IFLA_GRE_REMOTE, IFLA_GRE_LINK},
    {"ipip", IFLA_IPTUN_REMOTE, 0, IFLA_IPTUN_LINK},
    {"sit", IFLA_IPTUN_REMOTE, 0, IFLA_IPTUN_LINK},
    {"ip6tnl", 0, IFLA_IPTUN_REMOTE, IFLA_IPTUN_LINK},
};

static void read_tunnel(const struct nlattr *data, struct guard_link *link)
{
    static const unsigned char none[sizeof(link->remote)];

    for (size_t i = 0; i < sizeof(tunnels) / sizeof(*tunnels); i++) {
        if (strcmp(link->kind, tunnels[i].kind) != 0)
            continue;
        if (netlink_copy(netlink_find_in(data, tunnels[i].remote6), link->remote, 16))
            link->remote_bytes = 16;
        else if (netlink_copy(netlink_find_in(data, tunnels[i].remote), link->remote, 4))
            link->remote_bytes = 4;
        if (memcmp(link->remote, none, sizeof(none)) == 0)
            link->remote_bytes = 0;
        if (tunnels[i].below)
            link->below = (int)netlink_u32(netlink_find_in(data, tunnels[i].below), 0);
    }
}

static int add_link(const struct nlmsghdr *message, void *data)
{
    struct guard_map *map = data;
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
    const struct nlattr *more = netlink_find(message, sizeof(*info), IFLA_LINKINFO);
    struct guard_link link = {
        .index = info->ifi_index,
        .master = (int)netlink_u32(netlink_find(message, sizeof(*info), IFLA_MASTER), 0),
        .lower = (int)netlink_u32(netlink_find(message, sizeof(*info), IFLA_LINK), 0),
        .elsewhere = netlink_find(message, sizeof(*info), IFLA_LINK_NETNSID) != NULL,
        .loopback = info->ifi_flags & IFF_LOOPBACK,
    };

    netlink_text(netlink_find(message, sizeof(*info), IFLA_IFNAME), link.name, sizeof(link.name));
    netlink_text(netlink_find_in(more, IFLA_INFO_KIND), link.kind, sizeof(link.kind));
    if (guard_link_is_tunnel(&link) && !link.elsewhere)
        read_tunnel(netlink_find_in(more, IFLA_INFO_DATA), &link);
    /* A veth's IFLA_LINK is the other end of its cable, and no device below it. */
    if (guard_link_is_tunnel(&link) || strcmp(link.kind, "veth") == 0 ||
        strcmp(link.kind, "netkit") == 0)
        link.lower = link.elsewhere = 0;
    return guard_map_add_link(map, &link);
}

/* --- routes --- */

/* Add the use `what` for each device by which a route leaves. */
static int add_hops(struct guard_map *map, const struct nlmsghdr *route, const char *what)
{
    const struct nlattr *device = netlink_find(route, sizeof(struct rtmsg), RTA_OIF);
    const struct nlattr *hops = netlink_find(route, sizeof(struct rtmsg), RTA_MULTIPATH);
    struct rtnexthop *hop = hops ? mnl_attr_get_payload(hops) : NULL;
    int left = hops ? mnl_attr_get_payload_len(hops) : 0, code = 0;

    if (device)
        code = guard_map_add_use(map, (int)netlink_u32(device, ANY_DEVICE), what);
    for (; left > 0 && code == 0 && RTNH_OK(hop, left);
         left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
        code = guard_map_add_use(map, hop->rtnh_ifindex, what);
    if (code == 0 && left > 0)
        return -EPROTO;
    /* With sysctl net.ipv4.nexthop_compat_mode=0 a route has only the number of a next hop object.
     */
    return code == 0 && !device && !hops ? guard_map_add_use(map, ANY_DEVICE, what) : code;
}

/* Add a route to the map, if it is a default route, or a partial route: several of these may
 * together replace a default route. Overlapping routes count twice, which blocks more, never less.
 * A route to half of all addresses counts as a default route (VPN clients set two such routes), and
 * so does IPv6's 2000::/3, which holds all assigned addresses.
 */
static int add_route(const struct nlmsghdr *message, void *data)
{
    struct reading *reading = data;
    struct guard_map *map = reading->map;
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    bool v6 = route->rtm_family == AF_INET6, whole = route->rtm_dst_len <= (v6 ? 3 : 1);
    uint32_t table =
        netlink_u32(netlink_find(message, sizeof(*route), RTA_TABLE), route->rtm_table);
    char number[16] = "main", what[96];
    size_t before = map->use_count;
    unsigned char first = 0;
    int code;

    (void)netlink_copy(netlink_find(message, sizeof(*route), RTA_DST), &first, sizeof(first));
    if ((route->rtm_family != AF_INET && !v6) || route->rtm_type != RTN_UNICAST ||
        route->rtm_dst_len > WIDE_BITS || (!whole && v6 && first >> 5 != 1))
        return 0;
    if (table != RT_TABLE_MAIN)
        snprintf(number, sizeof(number), "%u", table);
    snprintf(what, sizeof(what), "%sthe IPv%d default route (table %s)", whole ? "" : "a part of ",
             v6 ? 6 : 4, number);
    if (!whole)
        reading->parts[v6] += 1U << (WIDE_BITS - route->rtm_dst_len);
    code = add_hops(map, message, what);
    for (size_t i = before; i < map->use_count; i++)
        map->uses[i].part = whole ? 0 : v6 ? 6 : 4;
    return code;
}

/* Read the links and routes of the thread's namespace; start again if the kernel interrupted a
 * dump. Add partial routes as a use if together they cover half of all addresses. */
static int read_here(struct reading *reading)
{
    struct guard_map *map = reading->map;
    struct netlink_request request;
    int code = -EINTR;
    size_t kept = 0;

    for (int i = 0; i < DUMP_TRIES && code == -EINTR; i++) {
        map->link_count = map->use_count = 0;
        memset(reading->parts, 0, sizeof(reading->parts));
        netlink_begin(&request, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
        code = netlink_ask(reading->fd, &request, add_link, map);
        netlink_begin(&request, RTM_GETROUTE, NLM_F_DUMP, sizeof(struct rtmsg));
        if (code == 0)
            code = netlink_ask(reading->fd, &request, add_route, reading);
    }
    for (size_t i = 0; i < map->use_count; i++) {
        bool v6 = map->uses[i].part == 6;

        if (map->uses[i].part == 0 || reading->parts[v6] >= 1U << (WIDE_BITS - (v6 ? 4 : 1)))
            map->uses[kept++] = map->uses[i];
    }
    map->use_count = kept;
    return code;
}

static int add_found_route(const struct nlmsghdr *message, void *data)
{
    const struct reading *reading = data;
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);

    /* A local address is reached without any device. */
    return route->rtm_type == RTN_UNICAST ? add_hops(reading->map, message, reading->what) : 0;
}

/* Add the use `what` for each device by which the kernel routes to an address; nothing if there is
 * no route. The lookup returns all next hops of a multipath route, not only the next hop for this
 * address. */
static int add_way_to(struct reading *reading, int family, const void *address, const char *what)
{
    struct netlink_request request;
    int code;

    reading->what = what;
    route_begin(&request, family, address)->rtm_flags = RTM_F_FIB_MATCH;
    code = netlink_ask(reading->fd, &request, add_found_route, reading);
    return code == -ENETUNREACH || code == -EHOSTUNREACH || code == -EACCES ? 0 : code;
}

/* Add the uses of the devices below tunnels. A tunnel in a tunnel adds further uses at the end of
 * the list; the number of links bounds a loop of tunnels. */
static int follow_tunnels(struct reading *reading)
{
    struct guard_map *map = reading->map;
    size_t most = map->use_count + 2 * map->link_count;
    int code = 0;

    for (size_t i = 0; i < map->use_count && code == 0; i++) {
        const struct guard_link *tunnel = guard_map_at(map, map->uses[i].index);
        size_t before = map->use_count;
        char what[sizeof(map->uses->what)];

        if (!tunnel || !guard_link_is_tunnel(tunnel))
            continue;
        if (i > most)
            return -ELOOP;
        snprintf(what, sizeof(what), "%.60s through tunnel %s", map->uses[i].what, tunnel->name);
        if (tunnel->below)
            code = guard_map_add_use(map, tunnel->below, what);
        if (code == 0 && tunnel->remote_bytes)
            code = add_way_to(reading, tunnel->remote_bytes == 4 ? AF_INET : AF_INET6,
                              tunnel->remote, what);
        if (code == 0 && map->use_count == before)
            code = guard_map_add_use(map, ANY_DEVICE, what);
    }
    return code;
}

static int add_controller(struct reading *reading, const char *controller, struct err *err)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;
    const struct sockaddr_in6 *v6;
    char what[96];
    int code;

    snprintf(what, sizeof(what), "the controller's connection (from %.46s)", controller);
    if (strncasecmp(controller, MAPPED_IPV4, strlen(MAPPED_IPV4)) == 0 && strchr(controller, '.'))
        controller += strlen(MAPPED_IPV4);
    if (getaddrinfo(controller, NULL, &hints, &found))
        return err_set(err, -EINVAL, "The controller's address %s is not a numeric IP address.",
                       controller);
    v6 = (const void *)found->ai_addr;
    if (found->ai_family == AF_INET6 && v6->sin6_scope_id)
        code = guard_map_add_use(reading->map, (int)v6->sin6_scope_id, what);
    else
        code = add_way_to(reading, found->ai_family, address_bytes(v6), what);
    freeaddrinfo(found);
    return code;
}

int guard_map_read(struct guard_map *map, const char *netns, const char *controller,
                   struct err *err)
{
    struct reading reading = {.map = map, .fd = -1};
    struct stat own, here;
    int previous = -1, code = stat(NETNS_OWN, &own) == 0 ? 0 : -errno;

    if (code == 0)
        code = netns_enter(netns, &previous, err);
    if (code == 0)
        code = stat(NETNS_OWN, &here) == 0 ? 0 : -errno;
    if (code == 0)
        code = (reading.fd = netlink_open()) < 0 ? reading.fd : read_here(&reading);
    if (code == 0 && controller && *controller && own.st_ino == here.st_ino)
        code = add_controller(&reading, controller, err);
    if (code == 0)
        code = follow_tunnels(&reading);
    if (reading.fd >= 0)
        close(reading.fd);
    netns_leave(previous);
    if (code)
        err_set(err, code,
                "The interfaces and routes of %s%s can't be read, so it is not known whether "
                "traffic there is safe: %s.",
                netns && *netns ? "network namespace " : "this host", netns ? netns : "",
                strerror(-code));
    return code;
}
