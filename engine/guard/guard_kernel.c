/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fills the guard's map from the kernel: rtnetlink(7) through libmnl.
 */
#include "guard_map.h"
#include "netns.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_NAMESPACE "/proc/thread-self/ns/net"
#define NAMED_NAMESPACES "/run/netns/*"

#define MAPPED_IPV4 "::ffff:"

/* The kernel breaks a dump off (NLM_F_DUMP_INTR) when what it lists has changed meanwhile. */
#define DUMP_TRIES 10

/* What the answers to one request are added to. */
struct reading {
    struct guard_map *map;
    int space;
    const char *what; /* of a use; NULL: say which default route it is */
};

static int receive(struct mnl_socket *socket, const struct nlmsghdr *request, mnl_cb_t callback,
                   void *data)
{
    _Alignas(struct nlmsghdr) char buffer[32768];
    int more = MNL_CB_OK;

    while (more > MNL_CB_STOP) {
        ssize_t got = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));

        if (got < 0)
            return -errno;
        errno = 0;
        more = mnl_cb_run(buffer, (size_t)got, request->nlmsg_seq, mnl_socket_get_portid(socket),
                          callback, data);
        if (more < 0)
            return errno ? -errno : -EPROTO;
        if (!(request->nlmsg_flags & NLM_F_DUMP))
            return 0;
    }
    return 0;
}

/* Sends a request in the thread's namespace and hands each answer to `callback`. */
static int ask(struct nlmsghdr *request, mnl_cb_t callback, void *data)
{
    struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    int code = 0;

    if (!socket)
        return -errno;
    request->nlmsg_flags |= NLM_F_REQUEST;
    request->nlmsg_seq = 1;
    if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
        mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
        code = -errno;
    else
        code = receive(socket, request, callback, data);
    mnl_socket_close(socket);
    return code;
}

/* Asks for all objects of `type`; `header` is the family's fixed part, zero but for the family. */
static int dump(uint16_t type, unsigned char family, mnl_cb_t callback, struct reading *reading)
{
    size_t links = reading->map->link_count, uses = reading->map->use_count;
    size_t header_size = type == RTM_GETLINK ? sizeof(struct ifinfomsg) : sizeof(struct rtmsg);
    int code = -EINTR;

    for (int i = 0; i < DUMP_TRIES && code == -EINTR; i++) {
        char buffer[256];
        struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
        unsigned char *header = mnl_nlmsg_put_extra_header(request, header_size);

        static_assert(offsetof(struct rtmsg, rtm_family) == 0, "the family is the first byte");
        static_assert(offsetof(struct ifinfomsg, ifi_family) == 0, "the family is the first byte");
        header[0] = family;
        request->nlmsg_type = type;
        request->nlmsg_flags = NLM_F_DUMP;
        reading->map->link_count = links;
        reading->map->use_count = uses;
        code = ask(request, callback, reading);
    }
    return code;
}

static void copy_text(char *to, size_t size, const struct nlattr *attribute)
{
    snprintf(to, size, "%s", mnl_attr_get_str(attribute));
}

static void read_kind(struct guard_link *link, const struct nlattr *info)
{
    struct nlattr *attribute;

    mnl_attr_for_each_nested(attribute, info)
    {
        if (mnl_attr_get_type(attribute) == IFLA_INFO_KIND)
            copy_text(link->kind, sizeof(link->kind), attribute);
    }
}

static void read_link_attribute(struct guard_link *link, const struct nlattr *attribute)
{
    switch (mnl_attr_get_type(attribute)) {
    case IFLA_IFNAME:
        copy_text(link->name, sizeof(link->name), attribute);
        break;
    case IFLA_MASTER:
        link->master = (int)mnl_attr_get_u32(attribute);
        break;
    case IFLA_LINK:
        link->peer = (int)mnl_attr_get_u32(attribute);
        break;
    case IFLA_LINK_NETNSID:
        link->peer_nsid = (int)mnl_attr_get_u32(attribute);
        link->peer_space = GUARD_SPACE_UNKNOWN;
        break;
    case IFLA_LINKINFO:
        read_kind(link, attribute);
        break;
    default:
        break;
    }
}

static int on_link(const struct nlmsghdr *message, void *data)
{
    const struct reading *reading = data;
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
    struct guard_link link = {
        .space = reading->space,
        .index = info->ifi_index,
        .peer_space = reading->space,
        .peer_nsid = GUARD_NSID_NONE,
        .loopback = info->ifi_flags & IFF_LOOPBACK,
    };
    struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, sizeof(*info))
    {
        read_link_attribute(&link, attribute);
    }
    errno = -guard_map_add_link(reading->map, &link);
    return errno ? MNL_CB_ERROR : MNL_CB_OK;
}

static const char *table_name(uint32_t table, char *buffer, size_t size)
{
    if (table == RT_TABLE_MAIN)
        return "main";
    snprintf(buffer, size, "%u", table);
    return buffer;
}

static int add_device(const struct reading *reading, int device, const char *what)
{
    struct guard_use use = {.space = reading->space, .index = device};

    snprintf(use.what, sizeof(use.what), "%s", what);
    return guard_map_add_use(reading->map, &use);
}

static int add_hops(const struct reading *reading, const struct nlattr *hops, const char *what)
{
    struct rtnexthop *hop = mnl_attr_get_payload(hops);
    int left = mnl_attr_get_payload_len(hops), code = 0;

    for (; RTNH_OK(hop, left) && code == 0; left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
        code = add_device(reading, hop->rtnh_ifindex, what);
    return code;
}

/* Adds `what` to each device by which the route leaves. */
static int add_route(const struct reading *reading, const struct nlmsghdr *route, const char *what)
{
    bool by_object = false, told = false;
    struct nlattr *attribute;
    int code = 0;

    mnl_attr_for_each(attribute, route, sizeof(struct rtmsg))
    {
        uint16_t type = mnl_attr_get_type(attribute);

        by_object |= type == RTA_NH_ID;
        told |= type == RTA_OIF || type == RTA_MULTIPATH;
        if (type == RTA_OIF)
            code = add_device(reading, (int)mnl_attr_get_u32(attribute), what);
        else if (type == RTA_MULTIPATH)
            code = add_hops(reading, attribute, what);
        if (code)
            return code;
    }
    /* sysctl net.ipv4.nexthop_compat_mode=0: the object's number only. */
    return by_object && !told ? add_device(reading, GUARD_ANY_DEVICE, what) : 0;
}

/* Half of all addresses is as good as a default route (VPN clients set two such), and so is IPv6's
 * 2000::/3, all that is assigned. */
static bool is_default(const struct rtmsg *route)
{
    return route->rtm_type == RTN_UNICAST &&
           route->rtm_dst_len <= (route->rtm_family == AF_INET6 ? 3 : 1);
}

static int on_route(const struct nlmsghdr *message, void *data)
{
    const struct reading *reading = data;
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    uint32_t table = route->rtm_table;
    char number[16], what[96];
    struct nlattr *attribute;

    if (!is_default(route))
        return MNL_CB_OK;
    mnl_attr_for_each(attribute, message, sizeof(*route))
    {
        if (mnl_attr_get_type(attribute) == RTA_TABLE)
            table = mnl_attr_get_u32(attribute);
    }
    snprintf(what, sizeof(what), "the IPv%d default route (table %s)",
             route->rtm_family == AF_INET6 ? 6 : 4, table_name(table, number, sizeof(number)));
    errno = -add_route(reading, message, what);
    return errno ? MNL_CB_ERROR : MNL_CB_OK;
}

static int on_answer(const struct nlmsghdr *message, void *data)
{
    const struct reading *reading = data;
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);

    /* A local address is reached by no device, whatever the route says. */
    errno = route->rtm_type == RTN_UNICAST ? -add_route(reading, message, reading->what) : 0;
    return errno ? MNL_CB_ERROR : MNL_CB_OK;
}

/* Gives the number of the thread's namespace on the map; `known`: it was there already. */
static int number_space(struct guard_map *map, int *space, bool *known)
{
    struct guard_space *grown;
    struct stat status;

    if (stat(OWN_NAMESPACE, &status) < 0)
        return -errno;
    *known = true;
    for (size_t i = 0; i < map->space_count; i++) {
        *space = (int)i;
        if (map->spaces[i].device == status.st_dev && map->spaces[i].inode == status.st_ino)
            return 0;
    }
    grown = realloc(map->spaces, (map->space_count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    *known = false;
    *space = (int)map->space_count;
    map->spaces = grown;
    grown[map->space_count++] = (struct guard_space){status.st_dev, status.st_ino};
    return 0;
}

int guard_map_read(struct guard_map *map, const char *netns, int *space, struct err *err)
{
    struct reading reading = {.map = map};
    int previous = -1, code;
    bool known = false;

    *space = GUARD_SPACE_UNKNOWN;
    code = netns_enter(netns, &previous, err);
    if (code)
        return code;
    code = number_space(map, space, &known);
    if (code || known)
        goto cleanup;
    reading.space = *space;
    code = dump(RTM_GETLINK, AF_UNSPEC, on_link, &reading);
    if (!code)
        code = dump(RTM_GETROUTE, AF_INET, on_route, &reading);
    if (!code)
        code = dump(RTM_GETROUTE, AF_INET6, on_route, &reading);
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

static int on_nsid(const struct nlmsghdr *message, void *data)
{
    int *nsid = data;
    struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, sizeof(struct rtgenmsg))
    {
        if (mnl_attr_get_type(attribute) == NETNSA_NSID)
            *nsid = (int)mnl_attr_get_u32(attribute);
    }
    return MNL_CB_OK;
}

/* How the thread's namespace numbers that of `fd`; GUARD_NSID_NONE: not at all. */
static int nsid_of(int fd)
{
    char buffer[256];
    struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
    int nsid = GUARD_NSID_NONE;

    request->nlmsg_type = RTM_GETNSID;
    mnl_nlmsg_put_extra_header(request, sizeof(struct rtgenmsg));
    mnl_attr_put_u32(request, NETNSA_FD, (uint32_t)fd);
    return ask(request, on_nsid, &nsid) == 0 ? nsid : GUARD_NSID_NONE;
}

/* Does a marked device have its peer in the namespace that `space` numbers `nsid`? */
static bool peers_live_in(const struct guard_map *map, int space, int nsid)
{
    for (size_t i = 0; i < map->link_count; i++)
        if (map->links[i].space == space && map->links[i].reached &&
            map->links[i].peer_nsid == nsid)
            return nsid != GUARD_NSID_NONE;
    return false;
}

static void settle_peers(struct guard_map *map, int space, int nsid, int peer_space)
{
    for (size_t i = 0; i < map->link_count; i++)
        if (map->links[i].space == space && map->links[i].peer_nsid == nsid)
            map->links[i].peer_space = peer_space;
}

/* Reads the namespace open as `fd` when a marked device of `space` has its peer there. The thread
 * is in `space`. */
static int cross_to(struct guard_map *map, int space, int fd, struct err *err)
{
    int nsid = nsid_of(fd), peer_space, code;
    struct err why = {0};
    char path[64];

    if (!peers_live_in(map, space, nsid))
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    code = guard_map_read(map, path, &peer_space, &why);
    if (code == -EPERM)
        return 0; /* without the privilege to look, it stays unknown */
    if (code)
        return err_set(err, code, "%s", why.text);
    settle_peers(map, space, nsid, peer_space);
    return 0;
}

int guard_map_cross(struct guard_map *map, int space, const char *netns, struct err *err)
{
    int own = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC), previous = -1, code;
    glob_t named = {0};

    if (own < 0)
        return err_set(err, -errno, OWN_NAMESPACE " can't be opened: %s.", strerror(errno));
    code = netns_enter(netns, &previous, err);
    if (code)
        goto cleanup;
    code = cross_to(map, space, own, err);
    if (glob(NAMED_NAMESPACES, GLOB_NOSORT, NULL, &named))
        named.gl_pathc = 0;
    for (size_t i = 0; i < named.gl_pathc && code == 0; i++) {
        /* A namespace that went away meanwhile is no reason to stop. */
        int fd = open(named.gl_pathv[i], O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            continue;
        code = cross_to(map, space, fd, err);
        close(fd);
    }
    globfree(&named);
    netns_leave(previous);
cleanup:
    close(own);
    return code;
}

static struct nlmsghdr *put_route_request(char *buffer, const struct addrinfo *address)
{
    struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
    struct rtmsg *route = mnl_nlmsg_put_extra_header(request, sizeof(*route));
    const void *bytes;

    if (address->ai_family == AF_INET6)
        bytes = &((const struct sockaddr_in6 *)(const void *)address->ai_addr)->sin6_addr;
    else
        bytes = &((const struct sockaddr_in *)(const void *)address->ai_addr)->sin_addr;
    request->nlmsg_type = RTM_GETROUTE;
    route->rtm_family = (unsigned char)address->ai_family;
    route->rtm_dst_len = address->ai_family == AF_INET6 ? 128 : 32;
    /* The route with all its next hops, not the one that this lookup happens to hash to. */
    route->rtm_flags = RTM_F_FIB_MATCH;
    mnl_attr_put(request, RTA_DST, route->rtm_dst_len / 8, bytes);
    return request;
}

int guard_map_add_route(struct guard_map *map, int space, const char *address, const char *what,
                        struct err *err)
{
    struct reading reading = {.map = map, .space = space, .what = what};
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    unsigned scope = 0;
    char buffer[256];
    int code;

    if (strncasecmp(address, MAPPED_IPV4, strlen(MAPPED_IPV4)) == 0 && strchr(address, '.'))
        address += strlen(MAPPED_IPV4);
    if (getaddrinfo(address, NULL, &hints, &found))
        return err_set(err, -EINVAL, "%s is not a numeric IP address.", address);
    if (found->ai_family == AF_INET6)
        scope = ((const struct sockaddr_in6 *)(const void *)found->ai_addr)->sin6_scope_id;
    if (scope)
        code = add_device(&reading, (int)scope, what);
    else
        code = ask(put_route_request(buffer, found), on_answer, &reading);
    freeaddrinfo(found);
    if (code == -ENETUNREACH || code == -EHOSTUNREACH || code == -EACCES)
        return 0;
    if (code)
        err_set(err, code, "The route to %s can't be looked up: %s.", address, strerror(-code));
    return code;
}
