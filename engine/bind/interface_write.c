/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface.h"
#include "rtnl.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* An IPv6 address is of no use to a route until nobody else has answered to it (RFC 4862: a
 * second or so); until then the kernel refuses. */
#define ROUTE_TRIES 30
#define TRY_NS 100000000

/* What a person says of a route or a hop; the other flags are what the kernel says of the link. */
#define SAID_FLAGS (RTNH_F_ONLINK | RTNH_F_PERVASIVE)

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* --- the link --- */

static struct nlmsghdr *begin_change(char *buffer, const char *name)
{
    struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
    struct ifinfomsg *info = mnl_nlmsg_put_extra_header(request, sizeof *info);

    request->nlmsg_type = RTM_NEWLINK;
    info->ifi_index = (int)if_nametoindex(name);
    return request;
}

static int set_up(const char *name, bool up)
{
    _Alignas(struct nlmsghdr) char buffer[256];
    struct nlmsghdr *request = begin_change(buffer, name);
    struct ifinfomsg *info = mnl_nlmsg_get_payload(request);

    info->ifi_change = IFF_UP;
    info->ifi_flags = up ? IFF_UP : 0;
    return bind_rtnl_ask(request, NULL);
}

static int set_name(const char *name, const char *wanted)
{
    _Alignas(struct nlmsghdr) char buffer[256];
    struct nlmsghdr *request = begin_change(buffer, name);

    mnl_attr_put_strz(request, IFLA_IFNAME, wanted);
    return bind_rtnl_ask(request, NULL);
}

static int set_mtu(const char *name, const json_t *state)
{
    _Alignas(struct nlmsghdr) char buffer[256];
    struct nlmsghdr *request = begin_change(buffer, name);
    json_int_t mtu = json_integer_value(json_object_get(state, "mtu"));

    mnl_attr_put_u32(request, IFLA_MTU, (uint32_t)mtu);
    return mtu > 0 ? bind_rtnl_ask(request, NULL) : 0;
}

static int set_mac(const char *name, const json_t *state)
{
    _Alignas(struct nlmsghdr) char buffer[256];
    struct nlmsghdr *request = begin_change(buffer, name);
    unsigned char mac[6];

    if (sscanf(text_of(state, "mac"), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", &mac[0], &mac[1],
               &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
        return 0;
    mnl_attr_put(request, IFLA_ADDRESS, sizeof mac, mac);
    return bind_rtnl_ask(request, NULL);
}

static bool same(const json_t *now, const json_t *wanted, const char *key)
{
    return json_equal(json_object_get(now, key), json_object_get(wanted, key)) != 0;
}

/* Name and MAC are changed while it is down, as most drivers want it. */
static int write_link(const char *name, const json_t *state, struct err *err)
{
    const char *wanted = text_of(state, "name");
    json_t *now = NULL;
    int rc = bind_interface_read(name, &now, err);

    if (rc != 0)
        return rc;
    if (!same(now, state, "name") || !same(now, state, "mac"))
        rc = set_up(name, false);
    if (rc == 0 && !same(now, state, "name")) {
        rc = set_name(name, wanted);
        name = rc == 0 ? wanted : name;
    }
    if (rc == 0 && !same(now, state, "mac"))
        rc = set_mac(name, state);
    if (rc == 0 && !same(now, state, "mtu"))
        rc = set_mtu(name, state);
    if (rc == 0)
        rc = bind_offloads_write(name, json_object_get(state, "offloads"));
    if (rc == 0)
        rc = set_up(name, json_is_true(json_object_get(state, "up")));
    json_decref(now);
    if (rc != 0)
        err_set(err, rc, "Interface %s (%s, MAC %s, MTU %d) can't be made as it was: %s.", wanted,
                name, text_of(state, "mac"), (int)json_integer_value(json_object_get(state, "mtu")),
                strerror(-rc));
    return rc;
}

/* --- addresses and routes: the kernel's own messages, with the interface's new number --- */

static void renumber_route(struct nlmsghdr *message, int before, int now)
{
    struct rtmsg *route = mnl_nlmsg_get_payload(message);
    struct nlattr *attribute;

    route->rtm_flags &= SAID_FLAGS;
    mnl_attr_for_each(attribute, message, sizeof(struct rtmsg))
    {
        uint16_t type = mnl_attr_get_type(attribute);
        struct rtnexthop *hop = mnl_attr_get_payload(attribute);
        int left = mnl_attr_get_payload_len(attribute);

        if (type == RTA_OIF && (int)mnl_attr_get_u32(attribute) == before)
            memcpy(mnl_attr_get_payload(attribute), &now, sizeof now);
        /* A next hop object went with the interface; the route says its ways beside it. */
        if (type == RTA_NH_ID)
            attribute->nla_type = RTA_UNSPEC;
        for (; type == RTA_MULTIPATH && RTNH_OK(hop, left);
             left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop)) {
            hop->rtnh_ifindex = hop->rtnh_ifindex == before ? now : hop->rtnh_ifindex;
            hop->rtnh_flags &= SAID_FLAGS;
        }
    }
}

static bool has_gateway(const struct nlmsghdr *message)
{
    struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, sizeof(struct rtmsg))
    {
        uint16_t type = mnl_attr_get_type(attribute);

        if (type == RTA_GATEWAY || type == RTA_VIA || type == RTA_MULTIPATH)
            return true;
    }
    return false;
}

static int put_address(struct nlmsghdr *message, int now)
{
    struct ifaddrmsg *info = mnl_nlmsg_get_payload(message);
    int rc;

    info->ifa_index = (uint32_t)now;
    message->nlmsg_type = RTM_NEWADDR;
    message->nlmsg_flags = NLM_F_CREATE;
    rc = bind_rtnl_ask(message, NULL);
    return rc == -EEXIST ? 0 : rc;
}

/* Appended, because another route to the same place may have come meanwhile or been there all the
 * time, by another interface. */
static int put_route(struct nlmsghdr *message, int before, int now)
{
    int rc = -EAGAIN;

    renumber_route(message, before, now);
    message->nlmsg_type = RTM_NEWROUTE;
    message->nlmsg_flags = NLM_F_CREATE | NLM_F_APPEND;
    for (int i = 0; i < ROUTE_TRIES; i++) {
        rc = bind_rtnl_ask(message, NULL);
        if (rc == 0 || rc == -EEXIST)
            return 0;
        (void)nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
    }
    return rc;
}

enum pass { ADDRESSES, NEAR_ROUTES, FAR_ROUTES, PASSES };

/* One message of a list, if this pass is for it. */
static int put_message(const json_t *entry, enum pass pass, int before, int now)
{
    _Alignas(struct nlmsghdr) char buffer[RTNL_MESSAGE_MAX];
    struct nlmsghdr *message = (struct nlmsghdr *)(void *)buffer;
    int rc = bind_rtnl_from_text(message, text_of(entry, "message"));

    if (rc != 0)
        return rc;
    if (pass == ADDRESSES)
        return put_address(message, now);
    if (has_gateway(message) != (pass == FAR_ROUTES))
        return 0;
    return put_route(message, before, now);
}

/* A gateway is reached by a route that must be there before. */
static int write_lists(const char *name, const json_t *state, struct err *err)
{
    int before = (int)json_integer_value(json_object_get(state, "index"));
    int now = (int)if_nametoindex(name), first = 0;

    for (enum pass pass = ADDRESSES; pass < PASSES; pass++) {
        const json_t *list = json_object_get(state, pass == ADDRESSES ? "addresses" : "routes");

        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *entry = json_array_get(list, i);
            int rc = put_message(entry, pass, before, now);

            if (rc != 0)
                first = err_set(err, rc, "Interface %s can't get its %s back (%s): %s.", name,
                                pass == ADDRESSES ? "address" : "route", text_of(entry, "text"),
                                strerror(-rc));
        }
    }
    return first;
}

int bind_interface_write(const char *name, const json_t *state, struct err *err)
{
    int rc = write_link(name, state, err);

    return rc == 0 ? write_lists(text_of(state, "name"), state, err) : rc;
}
