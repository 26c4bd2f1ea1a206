/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface.h"
#include "rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What answers are added to: only those about interface `index` are ours. */
struct reading {
    int index;
    json_t *link;
    json_t *list;
};

static void forget(void *data)
{
    json_array_clear(((struct reading *)data)->list);
}

static int on_link(const struct nlmsghdr *message, void *data)
{
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
    struct reading *reading = data;
    struct nlattr *attribute;

    reading->index = info->ifi_index;
    json_object_set_new(reading->link, "up", json_boolean((info->ifi_flags & IFF_UP) != 0));
    mnl_attr_for_each(attribute, message, sizeof *info)
    {
        const unsigned char *mac = mnl_attr_get_payload(attribute);
        char text[18];

        switch (mnl_attr_get_type(attribute)) {
        case IFLA_MTU:
            json_object_set_new(reading->link, "mtu", json_integer(mnl_attr_get_u32(attribute)));
            break;
        case IFLA_ADDRESS:
            if (mnl_attr_get_payload_len(attribute) != 6)
                break;
            snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
                     mac[3], mac[4], mac[5]);
            json_object_set_new(reading->link, "mac", json_string(text));
            break;
        default:
            break;
        }
    }
    return MNL_CB_OK;
}

static int read_link(const char *name, struct reading *reading)
{
    _Alignas(struct nlmsghdr) char buffer[256];
    struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
    const struct rtnl_reader reader = {on_link, NULL, reading};

    request->nlmsg_type = RTM_GETLINK;
    mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    return bind_rtnl_ask(request, &reader);
}

static int add(const struct reading *reading, const char *text, const struct nlmsghdr *message)
{
    char *digits = bind_rtnl_to_text(message);
    int failed =
        digits == NULL || json_array_append_new(reading->list, json_pack("{s:s, s:s}", "text", text,
                                                                         "message", digits)) != 0;

    free(digits);
    errno = failed ? ENOMEM : 0;
    return failed ? MNL_CB_ERROR : MNL_CB_OK;
}

static void print_address(int family, struct nlattr *attribute, char *text, size_t size)
{
    if (attribute == NULL ||
        inet_ntop(family, mnl_attr_get_payload(attribute), text, (socklen_t)size) == NULL)
        snprintf(text, size, "%s", "?");
}

/* Temporary addresses (RFC 8981) are the kernel's own business. IPv4 has another meaning for the
 * flag: secondary. */
static int on_address(const struct nlmsghdr *message, void *data)
{
    const struct ifaddrmsg *info = mnl_nlmsg_get_payload(message);
    const struct reading *reading = data;
    struct nlattr *attribute, *local = NULL, *address = NULL;
    uint32_t flags = info->ifa_flags;
    char text[INET6_ADDRSTRLEN], line[128];

    if ((int)info->ifa_index != reading->index)
        return MNL_CB_OK;
    mnl_attr_for_each(attribute, message, sizeof *info)
    {
        uint16_t type = mnl_attr_get_type(attribute);

        flags = type == IFA_FLAGS ? mnl_attr_get_u32(attribute) : flags;
        local = type == IFA_LOCAL ? attribute : local;
        address = type == IFA_ADDRESS ? attribute : address;
    }
    if (info->ifa_family == AF_INET6 && (flags & IFA_F_TEMPORARY) != 0)
        return MNL_CB_OK;
    print_address(info->ifa_family, local != NULL ? local : address, text, sizeof text);
    snprintf(line, sizeof line, "%s/%u scope %u flags 0x%x", text, info->ifa_prefixlen,
             info->ifa_scope, flags);
    return add(reading, line, message);
}

/* Does the route leave by our interface, alone or among others? */
static bool leaves_by(const struct nlmsghdr *message, int index)
{
    struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, sizeof(struct rtmsg))
    {
        if (mnl_attr_get_type(attribute) == RTA_OIF && (int)mnl_attr_get_u32(attribute) == index)
            return true;
        if (mnl_attr_get_type(attribute) == RTA_MULTIPATH) {
            struct rtnexthop *hop = mnl_attr_get_payload(attribute);
            int left = mnl_attr_get_payload_len(attribute);

            for (; RTNH_OK(hop, left); left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
                if (hop->rtnh_ifindex == index)
                    return true;
        }
    }
    return false;
}

static void print_route(const struct nlmsghdr *message, char *line, size_t size)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    struct nlattr *attribute, *to = NULL, *via = NULL;
    uint32_t table = route->rtm_table, metric = 0;
    char target[INET6_ADDRSTRLEN] = "default", gateway[INET6_ADDRSTRLEN] = "";

    mnl_attr_for_each(attribute, message, sizeof *route)
    {
        uint16_t type = mnl_attr_get_type(attribute);

        to = type == RTA_DST ? attribute : to;
        via = type == RTA_GATEWAY ? attribute : via;
        table = type == RTA_TABLE ? mnl_attr_get_u32(attribute) : table;
        metric = type == RTA_PRIORITY ? mnl_attr_get_u32(attribute) : metric;
    }
    if (to != NULL)
        print_address(route->rtm_family, to, target, sizeof target);
    if (via != NULL)
        print_address(route->rtm_family, via, gateway, sizeof gateway);
    snprintf(line, size, "%s/%u%s%s table %u metric %u", target, route->rtm_dst_len,
             via != NULL ? " via " : "", gateway, table, metric);
}

/* What the kernel or a router's advertisement made will be made again. */
static int on_route(const struct nlmsghdr *message, void *data)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(message);
    const struct reading *reading = data;
    char line[192];

    if ((route->rtm_flags & RTM_F_CLONED) != 0 || route->rtm_protocol == RTPROT_KERNEL ||
        route->rtm_protocol == RTPROT_RA || route->rtm_protocol == RTPROT_REDIRECT ||
        !leaves_by(message, reading->index))
        return MNL_CB_OK;
    print_route(message, line, sizeof line);
    return add(reading, line, message);
}

static int dump(uint16_t type, unsigned char family, mnl_cb_t callback, struct reading *reading)
{
    _Alignas(struct nlmsghdr) char buffer[256];
    struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
    const struct rtnl_reader reader = {callback, forget, reading};
    size_t size = type == RTM_GETADDR ? sizeof(struct ifaddrmsg) : sizeof(struct rtmsg);
    unsigned char *header = mnl_nlmsg_put_extra_header(request, size);

    header[0] = family; /* both begin with it */
    request->nlmsg_type = type;
    request->nlmsg_flags = NLM_F_DUMP;
    return bind_rtnl_ask(request, &reader);
}

/* Fills `into`'s list of this name with both families' answers. */
static int read_list(json_t *into, const char *name, struct reading *reading)
{
    static const unsigned char families[] = {AF_INET, AF_INET6};
    bool routes = strcmp(name, "routes") == 0;
    json_t *all = json_array();
    int rc = all != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; i < sizeof families && rc == 0; i++) {
        reading->list = json_array();
        rc = dump(routes ? RTM_GETROUTE : RTM_GETADDR, families[i], routes ? on_route : on_address,
                  reading);
        if (rc == 0)
            json_array_extend(all, reading->list);
        json_decref(reading->list);
        rc = rc == -EOPNOTSUPP ? 0 : rc; /* a kernel without this family */
    }
    json_object_set_new(into, name, all);
    return rc;
}

int bind_interface_read(const char *name, json_t **state, struct err *err)
{
    struct reading reading = {.link = json_object()};
    int rc = read_link(name, &reading);

    json_object_set_new(reading.link, "name", json_string(name));
    json_object_set_new(reading.link, "index", json_integer(reading.index));
    if (rc == 0)
        rc = read_list(reading.link, "addresses", &reading);
    if (rc == 0)
        rc = read_list(reading.link, "routes", &reading);
    if (rc != 0) {
        json_decref(reading.link);
        return err_set(err, rc, "Interface %s can't be read (%s), so it could not be given back.",
                       name, strerror(-rc));
    }
    json_object_set_new(reading.link, "offloads", bind_offloads_read(name));
    *state = reading.link;
    return 0;
}
