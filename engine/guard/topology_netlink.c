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

/* What the answers to one request are added to. */
struct reading {
    struct topology *topology;
    int space;
    const char *what; /* of a use; NULL: each default route says which one it is */
    size_t links;     /* before the dump */
    size_t uses;
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
static int add_default_route(const struct nlmsghdr *message, void *data)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    bool v6 = route->rtm_family == AF_INET6;
    uint32_t table =
        netlink_u32(netlink_find(message, sizeof(*route), RTA_TABLE), route->rtm_table);
    char number[16] = "main", what[96];

    if (route->rtm_type != RTN_UNICAST || route->rtm_dst_len > (v6 ? 3 : 1))
        return 0;
    if (table != RT_TABLE_MAIN)
        snprintf(number, sizeof(number), "%u", table);
    snprintf(what, sizeof(what), "the IPv%d default route (table %s)", v6 ? 6 : 4, number);
    return add_route(data, message, what);
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
        code = dump(RTM_GETROUTE, AF_INET, add_default_route, &reading);
    if (!code)
        code = dump(RTM_GETROUTE, AF_INET6, add_default_route, &reading);
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

int topology_add_route(struct topology *topology, int space, const char *address, const char *what,
                       struct err *err)
{
    struct reading reading = {.topology = topology, .space = space, .what = what};
    const struct netlink_reader reader = {.each = add_found_route, .data = &reading};
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct netlink_request request;
    const struct sockaddr_in6 *v6;
    struct addrinfo *found;
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
        struct rtmsg *route = v6->sin6_family == AF_INET6
                                  ? route_begin(&request, AF_INET6, &v6->sin6_addr)
                                  : route_begin(&request, AF_INET, &v4->sin_addr);

        /* The route with all its next hops, not the one that this lookup happens to hash to. */
        route->rtm_flags = RTM_F_FIB_MATCH;
        code = netlink_ask_here(&request, &reader);
    }
    freeaddrinfo(found);
    if (code == -ENETUNREACH || code == -EHOSTUNREACH || code == -EACCES)
        return 0;
    if (code)
        err_set(err, code, "The route to %s can't be looked up: %s.", address, strerror(-code));
    return code;
}
