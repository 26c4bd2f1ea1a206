/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface.h"

#include "rtnetlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What answers are added to: only those about interface `index` matter. */
struct reading {
    int index;
    json_t *list;
};

static void forget(void *data)
{
    json_array_clear(((struct reading *)data)->list);
}

/* Notes a message by a text for people and by its body (what follows its header) in hexadecimal. */
static int note(const struct reading *reading, const char *text, const struct nlmsghdr *message)
{
    const unsigned char *body = mnl_nlmsg_get_payload(message);
    size_t size = mnl_nlmsg_get_payload_len(message);
    char *digits = malloc(2 * size + 1);
    int rc = -ENOMEM;

    if (digits == NULL)
        return rc;
    digits[0] = '\0';
    for (size_t i = 0; i < size; i++)
        snprintf(digits + 2 * i, 3, "%02x", body[i]);
    if (json_array_append_new(reading->list,
                              json_pack("{s:s, s:s}", "text", text, "message", digits)) == 0)
        rc = 0;
    free(digits);
    return rc;
}

static void print_address(int family, const struct nlattr *attribute, char *text, size_t size)
{
    unsigned char bytes[16];

    if (!netlink_copy(attribute, bytes, family == AF_INET6 ? 16 : 4) ||
        inet_ntop(family, bytes, text, (socklen_t)size) == NULL)
        snprintf(text, size, "%s", "?");
}

/* Temporary addresses (RFC 8981) are the kernel's own business. IPv4 has another meaning for the
 * flag: secondary. */
static int note_address(const struct nlmsghdr *message, void *data)
{
    const struct ifaddrmsg *info = mnl_nlmsg_get_payload(message);
    const struct nlattr *address = netlink_find(message, sizeof *info, IFA_LOCAL);
    const struct reading *reading = data;
    uint32_t flags = netlink_u32(netlink_find(message, sizeof *info, IFA_FLAGS), info->ifa_flags);
    char text[INET6_ADDRSTRLEN], line[128];

    if ((int)info->ifa_index != reading->index ||
        (info->ifa_family == AF_INET6 && (flags & IFA_F_TEMPORARY) != 0))
        return 0;
    if (address == NULL)
        address = netlink_find(message, sizeof *info, IFA_ADDRESS);
    print_address(info->ifa_family, address, text, sizeof text);
    snprintf(line, sizeof line, "%s/%u scope %u flags 0x%x", text, info->ifa_prefixlen,
             info->ifa_scope, flags);
    return note(reading, line, message);
}

/* Does the route leave by our interface, alone or among others? */
static bool leaves_by(const struct nlmsghdr *message, int index)
{
    const struct nlattr *hops = netlink_find(message, sizeof(struct rtmsg), RTA_MULTIPATH);
    struct rtnexthop *hop = hops != NULL ? mnl_attr_get_payload(hops) : NULL;
    int left = hops != NULL ? mnl_attr_get_payload_len(hops) : 0;

    for (; left > 0 && RTNH_OK(hop, left); left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
        if (hop->rtnh_ifindex == index)
            return true;
    return (int)netlink_u32(netlink_find(message, sizeof(struct rtmsg), RTA_OIF), 0) == index;
}

/* What the kernel or a router's advertisement made will be made again. */
static int note_route(const struct nlmsghdr *message, void *data)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    const struct nlattr *to = netlink_find(message, sizeof *route, RTA_DST);
    const struct nlattr *via = netlink_find(message, sizeof *route, RTA_GATEWAY);
    const struct reading *reading = data;
    char target[INET6_ADDRSTRLEN] = "default", gateway[INET6_ADDRSTRLEN] = "", line[192];

    if ((route->rtm_flags & RTM_F_CLONED) != 0 || route->rtm_protocol == RTPROT_KERNEL ||
        route->rtm_protocol == RTPROT_RA || route->rtm_protocol == RTPROT_REDIRECT ||
        !leaves_by(message, reading->index))
        return 0;
    if (to != NULL)
        print_address(route->rtm_family, to, target, sizeof target);
    if (via != NULL)
        print_address(route->rtm_family, via, gateway, sizeof gateway);
    snprintf(line, sizeof line, "%s/%u%s%s table %u metric %u", target, route->rtm_dst_len,
             via != NULL ? " via " : "", gateway,
             netlink_u32(netlink_find(message, sizeof *route, RTA_TABLE), route->rtm_table),
             netlink_u32(netlink_find(message, sizeof *route, RTA_PRIORITY), 0));
    return note(reading, line, message);
}

/* The addresses or routes of both families. */
static int read_list(int index, bool routes, json_t **list)
{
    static const unsigned char families[] = {AF_INET, AF_INET6};
    int rc = 0;

    *list = json_array();
    for (size_t i = 0; i < sizeof families && rc == 0; i++) {
        struct reading reading = {.index = index, .list = json_array()};
        const struct netlink_reader reader = {routes ? note_route : note_address, forget, &reading};
        struct netlink_request request;
        unsigned char *fixed =
            netlink_begin(&request, routes ? RTM_GETROUTE : RTM_GETADDR, NLM_F_DUMP,
                          routes ? sizeof(struct rtmsg) : sizeof(struct ifaddrmsg));

        fixed[0] = families[i]; /* both begin with it */
        rc = netlink_ask_here(&request, &reader);
        if (rc == 0)
            json_array_extend(*list, reading.list);
        json_decref(reading.list);
        rc = rc == -EOPNOTSUPP ? 0 : rc; /* a kernel without this family */
    }
    return rc;
}

int bind_interface_read(const char *name, json_t **state, struct err *err)
{
    int index = (int)if_nametoindex(name), fd = netlink_open();
    json_t *addresses = NULL, *routes = NULL;
    struct link_state link;
    char mac[18] = ""; /* others than Ethernet have more bytes, and keep them */
    int rc = index == 0 ? -ENODEV : fd < 0 ? fd : link_read(fd, index, &link);

    if (rc == 0)
        rc = read_list(index, false, &addresses);
    if (rc == 0)
        rc = read_list(index, true, &routes);
    if (rc == 0 && link.type == ARPHRD_ETHER)
        snprintf(mac, sizeof mac, "%02x:%02x:%02x:%02x:%02x:%02x", link.mac[0], link.mac[1],
                 link.mac[2], link.mac[3], link.mac[4], link.mac[5]);
    if (rc == 0) {
        *state = json_pack("{s:s, s:i, s:b, s:i, s:s, s:O, s:O, s:o}", "name", name, "index", index,
                           "up", (link.flags & IFF_UP) != 0, "mtu", (int)link.mtu, "mac", mac,
                           "addresses", addresses, "routes", routes, "offloads",
                           bind_offloads_read(name));
        rc = *state != NULL ? 0 : -ENOMEM;
    }
    json_decref(addresses);
    json_decref(routes);
    if (fd >= 0)
        close(fd);
    return rc == 0
               ? 0
               : err_set(err, rc, "Interface %s can't be read (%s), so it could not be restored.",
                         name, strerror(-rc));
}
