/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fills the topology from rtnetlink(7).
 */
#include "netns.h"
#include "rtnetlink.h"
#include "sysfs.h"
#include "topology.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_NAMESPACE "/proc/thread-self/ns/net"
#define NAMED_NAMESPACES "/run/netns/*"

#define MAPPED_IPV4 "::ffff:"

/* Routes are counted by the first 16 bits of their addresses: longer prefixes stand for little. */
#define WIDE_BITS 16
#define WIDE_COUNT (1 << WIDE_BITS)

/* What the answers to one request are added to. */
struct reading {
    struct topology *topology;
    int space;
    const char *what; /* of a use; NULL: each default route says which one it is */
    size_t links;     /* before the dump */
    size_t uses;
    unsigned char *wide;  /* a bit for each value of the first 16: a wide route leads there */
    unsigned wide_routes; /* how many of these values have one */
    bool is_covered;      /* half of all addresses: of IPv6, of 2000::/3 */
};

static void forget(void *data)
{
    struct reading *reading = data;

    reading->topology->link_count = reading->links;
    reading->topology->use_count = reading->uses;
}

/* Requests all objects of `type`. */
static int dump(uint16_t type, unsigned char family,
                int (*each)(const struct nlmsghdr *message, void *data), struct reading *reading)
{
    const struct netlink_reader reader = {each, forget, reading};
    struct netlink_request request;
    unsigned char *fixed =
        netlink_begin(&request, type, NLM_F_DUMP,
                      type == RTM_GETLINK ? sizeof(struct ifinfomsg) : sizeof(struct rtmsg));

    static_assert(offsetof(struct rtmsg, rtm_family) == 0, "the family is the first byte");
    static_assert(offsetof(struct ifinfomsg, ifi_family) == 0, "the family is the first byte");
    fixed[0] = family;
    reading->links = reading->topology->link_count;
    reading->uses = reading->topology->use_count;
    return netlink_ask_here(&request, &reader);
}

/* What a kind of tunnel calls its remote addresses and the device below (linux/if_link.h,
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

static void read_remote(const struct nlattr *data, uint16_t type, int bytes,
                        struct topology_link *link)
{
    static const unsigned char none[sizeof(link->remote)];
    unsigned char remote[sizeof(link->remote)] = {0};

    if (type == 0 || !netlink_copy(netlink_find_in(data, type), remote, (size_t)bytes) ||
        memcmp(remote, none, sizeof(none)) == 0)
        return;
    memcpy(link->remote, remote, sizeof(remote));
    link->remote_bytes = bytes;
}

/* A tunnel whose packets leave in another namespace stays unknown. */
static void read_tunnel(const struct nlmsghdr *message, struct topology_link *link)
{
    const struct nlattr *info = netlink_find(message, sizeof(struct ifinfomsg), IFLA_LINKINFO);
    const struct nlattr *data = netlink_find_in(info, IFLA_INFO_DATA);

    for (size_t i = 0; i < sizeof(tunnels) / sizeof(*tunnels); i++) {
        if (link->peer_nsid != NSID_NONE || strcmp(link->kind, tunnels[i].kind) != 0)
            continue;
        read_remote(data, tunnels[i].remote, 4, link);
        read_remote(data, tunnels[i].remote6, 16, link);
        if (tunnels[i].below)
            link->below = (int)netlink_u32(netlink_find_in(data, tunnels[i].below), 0);
    }
}

static int add_link(const struct nlmsghdr *message, void *data)
{
    const struct reading *reading = data;
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
    const struct nlattr *nsid = netlink_find(message, sizeof(*info), IFLA_LINK_NETNSID);
    struct topology_link link = {
        .space = reading->space,
        .index = info->ifi_index,
        .master = (int)netlink_u32(netlink_find(message, sizeof(*info), IFLA_MASTER), 0),
        .peer = (int)netlink_u32(netlink_find(message, sizeof(*info), IFLA_LINK), 0),
        .peer_space = nsid ? SPACE_UNKNOWN : reading->space,
        .peer_nsid = (int)netlink_u32(nsid, (uint32_t)NSID_NONE),
        .loopback = info->ifi_flags & IFF_LOOPBACK,
    };

    netlink_text(netlink_find(message, sizeof(*info), IFLA_IFNAME), link.name, sizeof(link.name));
    netlink_text(
        netlink_find_in(netlink_find(message, sizeof(*info), IFLA_LINKINFO), IFLA_INFO_KIND),
        link.kind, sizeof(link.kind));
    if (topology_is_tunnel(&link))
        read_tunnel(message, &link);
    return topology_add_link(reading->topology, &link);
}

static int add_device(const struct reading *reading, int device, const char *what)
{
    struct critical_use use = {.space = reading->space, .index = device};

    snprintf(use.what, sizeof(use.what), "%s", what);
    return topology_add_use(reading->topology, &use);
}

/* Adds `what` to each device by which the route leaves. */
static int add_route(const struct reading *reading, const struct nlmsghdr *route, const char *what)
{
    const struct nlattr *device = netlink_find(route, sizeof(struct rtmsg), RTA_OIF);
    const struct nlattr *hops = netlink_find(route, sizeof(struct rtmsg), RTA_MULTIPATH);
    struct rtnexthop *hop = hops ? mnl_attr_get_payload(hops) : NULL;
    int left = hops ? mnl_attr_get_payload_len(hops) : 0, code = 0;

    if (device)
        code = add_device(reading, (int)netlink_u32(device, ANY_DEVICE), what);
    for (; left > 0 && code == 0 && RTNH_OK(hop, left);
         left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
        code = add_device(reading, hop->rtnh_ifindex, what);
    if (code == 0 && left > 0)
        return -EPROTO;
    /* sysctl net.ipv4.nexthop_compat_mode=0: the number of a next hop object only. */
    return code == 0 && !device && !hops ? add_device(reading, ANY_DEVICE, what) : code;
}

/* Half of all addresses is as good as a default route (VPN clients set two such), and so is IPv6's
 * 2000::/3, all that is assigned. */
static bool is_default(const struct rtmsg *route)
{
    return route->rtm_type == RTN_UNICAST &&
           route->rtm_dst_len <= (route->rtm_family == AF_INET6 ? 3 : 1);
}

/* A part of what several routes may cover together; `first`: the first 16 bits of its addresses. */
static bool is_wide(const struct nlmsghdr *message, unsigned *first)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    unsigned char bytes[2];

    if (route->rtm_type != RTN_UNICAST || route->rtm_dst_len > WIDE_BITS || is_default(route) ||
        !netlink_copy(netlink_find(message, sizeof(*route), RTA_DST), bytes, sizeof(bytes)))
        return false;
    *first = (unsigned)bytes[0] << 8U | bytes[1];
    return route->rtm_family == AF_INET || bytes[0] >> 5 == 1; /* of 2000::/3 */
}

static int note_wide_route(const struct nlmsghdr *message, void *data)
{
    struct reading *reading = data;
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    unsigned first;

    if (!is_wide(message, &first))
        return 0;
    for (unsigned value = first; value < first + (1U << (WIDE_BITS - route->rtm_dst_len));
         value++) {
        unsigned char bit = (unsigned char)(1U << value % 8);

        reading->wide_routes += !(reading->wide[value / 8] & bit);
        reading->wide[value / 8] |= bit;
    }
    return 0;
}

static int add_default_route(const struct nlmsghdr *message, void *data)
{
    const struct reading *reading = data;
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    bool v6 = route->rtm_family == AF_INET6;
    uint32_t table =
        netlink_u32(netlink_find(message, sizeof(*route), RTA_TABLE), route->rtm_table);
    char number[16] = "main", what[96];
    unsigned first;

    if (!is_default(route) && !(reading->is_covered && is_wide(message, &first)))
        return 0;
    if (table != RT_TABLE_MAIN)
        snprintf(number, sizeof(number), "%u", table);
    snprintf(what, sizeof(what), "%sthe IPv%d default route (table %s)",
             is_default(route) ? "" : "a part of ", v6 ? 6 : 4, number);
    return add_route(data, message, what);
}

/* Adds the default routes of a family, and routes that together lead to half of its addresses. */
static int add_default_routes(struct reading *reading, unsigned char family)
{
    unsigned char wide[WIDE_COUNT / 8] = {0};
    int code;

    reading->wide = wide;
    reading->wide_routes = 0;
    code = dump(RTM_GETROUTE, family, note_wide_route, reading);
    reading->is_covered = reading->wide_routes >= WIDE_COUNT / (family == AF_INET6 ? 16 : 2);
    return code ? code : dump(RTM_GETROUTE, family, add_default_route, reading);
}

static int add_found_route(const struct nlmsghdr *message, void *data)
{
    const struct reading *reading = data;
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);

    /* A local address is reached by no device, whatever the route says. */
    return route->rtm_type == RTN_UNICAST ? add_route(reading, message, reading->what) : 0;
}

/* Gives the number of the thread's namespace; `known`: it has been read already. */
static int number_space(struct topology *topology, int *space, bool *known)
{
    struct topology_space here;
    struct stat status;

    if (stat(OWN_NAMESPACE, &status) < 0)
        return -errno;
    here = (struct topology_space){status.st_dev, status.st_ino};
    for (*space = 0; *space < (int)topology->space_count; ++*space)
        if (topology->spaces[*space].device == here.device &&
            topology->spaces[*space].inode == here.inode)
            break;
    *known = *space < (int)topology->space_count;
    return *known ? 0 : topology_add_space(topology, &here);
}

int topology_read(struct topology *topology, const char *netns, int *space, struct err *err)
{
    struct reading reading = {.topology = topology};
    int previous = -1, code;
    bool known = false;

    *space = SPACE_UNKNOWN;
    code = netns_enter(netns, &previous, err);
    if (code)
        return code;
    code = number_space(topology, space, &known);
    if (code || known)
        goto cleanup;
    reading.space = *space;
    code = dump(RTM_GETLINK, AF_UNSPEC, add_link, &reading);
    if (!code)
        code = add_default_routes(&reading, AF_INET);
    if (!code)
        code = add_default_routes(&reading, AF_INET6);
    if (!code)
        code = topology_follow_tunnels(topology, *space, 0);
cleanup:
    netns_leave(previous);
    if (code)
        err_set(err, code,
                "The interfaces and routes of %s%s can't be read, so it is not known "
                "whether traffic there is safe: %s.",
                netns && *netns ? "network namespace " : "this host", netns ? netns : "",
                strerror(-code));
    return code;
}

static int read_nsid(const struct nlmsghdr *message, void *data)
{
    *(int *)data = (int)netlink_u32(netlink_find(message, sizeof(struct rtgenmsg), NETNSA_NSID),
                                    (uint32_t)NSID_NONE);
    return 0;
}

/* How the thread's namespace numbers that of `fd`; NSID_NONE: not at all, or that is none. */
static int find_nsid(int fd, int *nsid, struct err *err)
{
    const struct netlink_reader reader = {.each = read_nsid, .data = nsid};
    struct netlink_request request;
    int code;

    *nsid = NSID_NONE;
    netlink_begin(&request, RTM_GETNSID, 0, sizeof(struct rtgenmsg));
    mnl_attr_put_u32(&request.header, NETNSA_FD, (uint32_t)fd);
    code = netlink_ask_here(&request, &reader);
    if (code && code != -EINVAL)
        return err_set(err, code,
                       "The numbers of network namespaces can't be read, so it is not known "
                       "whether traffic is safe: %s.",
                       strerror(-code));
    return 0;
}

/* Does a marked device have its peer in the namespace that `space` numbers `nsid`? */
static bool peers_live_in(const struct topology *topology, int space, int nsid)
{
    for (size_t i = 0; i < topology->link_count; i++)
        if (topology->links[i].space == space && topology->links[i].reached &&
            topology->links[i].peer_nsid == nsid)
            return nsid != NSID_NONE;
    return false;
}

/* Reads the namespace open as `fd` when a marked device of `space` has its peer there. The thread
 * is in `space`. */
static int cross_to(struct topology *topology, int space, int fd, struct err *err)
{
    int nsid, peer_space, code = find_nsid(fd, &nsid, err);
    struct err why = {0};
    char path[64];

    if (code || !peers_live_in(topology, space, nsid))
        return code;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    code = topology_read(topology, path, &peer_space, &why);
    if (code == -EPERM)
        return 0; /* without the privilege to look, it stays unknown */
    if (code)
        return err_set(err, code, "%s", why.text);
    for (size_t i = 0; i < topology->link_count; i++)
        if (topology->links[i].space == space && topology->links[i].peer_nsid == nsid)
            topology->links[i].peer_space = peer_space;
    return 0;
}

int topology_cross_namespaces(struct topology *topology, int space, const char *netns,
                              struct err *err)
{
    int own = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC), previous = -1, code;
    glob_t named;

    if (own < 0)
        return err_set(err, -errno, OWN_NAMESPACE " can't be opened: %s.", strerror(errno));
    code = netns_enter(netns, &previous, err);
    if (code)
        goto cleanup;
    code = cross_to(topology, space, own, err);
    sysfs_glob(&named, NAMED_NAMESPACES);
    for (size_t i = 0; i < named.gl_pathc && code == 0; i++) {
        /* A namespace that went away meanwhile is no reason to stop. */
        int fd = open(named.gl_pathv[i], O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            continue;
        code = cross_to(topology, space, fd, err);
        close(fd);
    }
    globfree(&named);
    netns_leave(previous);
cleanup:
    close(own);
    return code;
}

/* The route with all its next hops, not the one that this lookup happens to hash to. */
static int look_up_route(struct reading *reading, int family, const void *address)
{
    const struct netlink_reader reader = {.each = add_found_route, .data = reading};
    struct netlink_request request;

    route_begin(&request, family, address)->rtm_flags = RTM_F_FIB_MATCH;
    return netlink_ask_here(&request, &reader);
}

static bool is_no_route(int code)
{
    return code == -ENETUNREACH || code == -EHOSTUNREACH || code == -EACCES;
}

/* Adds the use to what is below a tunnel. */
static int follow_tunnel(struct topology *topology, const struct topology_link *tunnel,
                         const struct critical_use *use)
{
    struct reading reading = {.topology = topology, .space = use->space};
    char what[sizeof(use->what)];
    size_t before = topology->use_count;
    int code = 0;

    snprintf(what, sizeof(what), "%.60s through tunnel %s", use->what, tunnel->name);
    reading.what = what;
    if (tunnel->below)
        code = add_device(&reading, tunnel->below, what);
    if (code == 0 && tunnel->remote_bytes)
        code =
            look_up_route(&reading, tunnel->remote_bytes == 4 ? AF_INET : AF_INET6, tunnel->remote);
    if (code && !is_no_route(code))
        return code;
    return topology->use_count > before ? 0 : add_device(&reading, ANY_DEVICE, what);
}

int topology_follow_tunnels(struct topology *topology, int space, size_t first)
{
    int code = 0;

    /* A tunnel in a tunnel adds uses behind this one; one that leads into itself is not the first
     * device that it meets: the count of links ends it. */
    for (size_t i = first; i < topology->use_count && code == 0; i++) {
        const struct critical_use use = topology->uses[i];
        const struct topology_link *tunnel = topology_find_index(topology, use.space, use.index);

        if (use.space != space || !tunnel || !topology_is_tunnel(tunnel))
            continue;
        if (topology->use_count - first > 2 * topology->link_count + WIDE_BITS)
            return -ELOOP;
        code = follow_tunnel(topology, tunnel, &use);
    }
    return code;
}

int topology_add_route(struct topology *topology, int space, const char *address, const char *what,
                       struct err *err)
{
    struct reading reading = {.topology = topology, .space = space, .what = what};
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    const struct sockaddr_in6 *v6;
    struct addrinfo *found;
    size_t first = topology->use_count;
    int code;

    if (strncasecmp(address, MAPPED_IPV4, strlen(MAPPED_IPV4)) == 0 && strchr(address, '.'))
        address += strlen(MAPPED_IPV4);
    if (getaddrinfo(address, NULL, &hints, &found))
        return err_set(err, -EINVAL, "%s is not a numeric IP address.", address);
    v6 = (const void *)found->ai_addr;
    if (v6->sin6_family == AF_INET6 && v6->sin6_scope_id) {
        code = add_device(&reading, (int)v6->sin6_scope_id, what);
    } else {
        const struct sockaddr_in *v4 = (const void *)v6;

        code = v6->sin6_family == AF_INET6 ? look_up_route(&reading, AF_INET6, &v6->sin6_addr)
                                           : look_up_route(&reading, AF_INET, &v4->sin_addr);
    }
    freeaddrinfo(found);
    if (is_no_route(code))
        return 0;
    if (code == 0)
        code = topology_follow_tunnels(topology, space, first);
    if (code)
        err_set(err, code, "The route to %s can't be looked up: %s.", address, strerror(-code));
    return code;
}
