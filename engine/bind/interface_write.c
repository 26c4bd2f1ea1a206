/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface.h"

#include "journal.h"
#include "netlink.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS 30
#define ROUND_NS 100000000

/* What a person says of a route or a hop; the other flags are what the kernel says of the link. */
#define SAID_FLAGS (RTNH_F_ONLINK | RTNH_F_PERVASIVE)

/* --- the link --- */

static int set_up(int index, bool up)
{
    struct netlink_request request;
    struct ifinfomsg *info = netlink_begin(&request, RTM_NEWLINK, 0, sizeof *info);

    info->ifi_index = index;
    info->ifi_change = IFF_UP;
    info->ifi_flags = up ? IFF_UP : 0;
    return netlink_ask_here(&request, NULL);
}

static bool put_name(struct nlmsghdr *message, const json_t *value)
{
    mnl_attr_put_strz(message, IFLA_IFNAME, json_string_value(value));
    return true;
}

static bool put_mac(struct nlmsghdr *message, const json_t *value)
{
    unsigned char mac[6];

    if (sscanf(json_string_value(value), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", &mac[0], &mac[1],
               &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
        return false;
    mnl_attr_put(message, IFLA_ADDRESS, sizeof mac, mac);
    return true;
}

static bool put_mtu(struct nlmsghdr *message, const json_t *value)
{
    mnl_attr_put_u32(message, IFLA_MTU, (uint32_t)json_integer_value(value));
    return true;
}

/* What a link can be given, by its key in the journal, in this order. */
static const struct {
    const char *key;
    json_type type;
    bool down; /* most drivers want it changed while the link is down */
    bool (*put)(struct nlmsghdr *message, const json_t *value);
} link_settings[] = {
    {"name", JSON_STRING, true, put_name},
    {"mac", JSON_STRING, true, put_mac},
    {"mtu", JSON_INTEGER, false, put_mtu},
};

static int write_setting(int index, size_t i, const json_t *now, const json_t *state)
{
    const json_t *value = json_object_get(state, link_settings[i].key);
    struct netlink_request request;
    struct ifinfomsg *info = netlink_begin(&request, RTM_NEWLINK, 0, sizeof *info);
    int rc = 0;

    info->ifi_index = index;
    if (value == NULL || json_typeof(value) != link_settings[i].type ||
        json_equal(json_object_get(now, link_settings[i].key), value) ||
        !link_settings[i].put(&request.header, value))
        return 0;
    if (link_settings[i].down)
        rc = set_up(index, false);
    return rc == 0 ? netlink_ask_here(&request, NULL) : rc;
}

static int write_link(const char *name, const json_t *state, struct err *err)
{
    int index = (int)if_nametoindex(name);
    json_t *now = NULL;
    int rc = bind_interface_read(name, &now, err);

    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof link_settings / sizeof link_settings[0] && rc == 0; i++)
        rc = write_setting(index, i, now, state);
    if (rc == 0)
        rc = bind_offloads_write(bind_journal_text(state, "name"),
                                 json_object_get(state, "offloads"));
    if (rc == 0)
        rc = set_up(index, json_is_true(json_object_get(state, "up")));
    json_decref(now);
    if (rc != 0)
        err_set(err, rc, "Interface %s (%s, MAC %s, MTU %d) can't be made as it was: %s.",
                bind_journal_text(state, "name"), name, bind_journal_text(state, "mac"),
                (int)json_integer_value(json_object_get(state, "mtu")), strerror(-rc));
    return rc;
}

/* --- addresses and routes: the kernel's own messages, with the interface's new number --- */

static void renumber_route(struct nlmsghdr *message, int before, int now)
{
    struct rtmsg *route = mnl_nlmsg_get_payload(message);
    struct nlattr *attribute;

    route->rtm_flags &= SAID_FLAGS;
    mnl_attr_for_each(attribute, message, sizeof *route)
    {
        uint16_t type = mnl_attr_get_type(attribute);
        struct rtnexthop *hop = mnl_attr_get_payload(attribute);
        int left = mnl_attr_get_payload_len(attribute);

        if (type == RTA_OIF && (int)netlink_u32(attribute, 0) == before)
            memcpy(mnl_attr_get_payload(attribute), &now, sizeof now);
        /* A next hop object went with the interface; the route has its hops beside it. */
        if (type == RTA_NH_ID)
            attribute->nla_type = RTA_UNSPEC;
        for (; type == RTA_MULTIPATH && RTNH_OK(hop, left);
             left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop)) {
            hop->rtnh_ifindex = hop->rtnh_ifindex == before ? now : hop->rtnh_ifindex;
            hop->rtnh_flags &= SAID_FLAGS;
        }
    }
}

/* Sends a body that the journal keeps in hexadecimal as a new address or route. Routes are
 * appended: another route to the same place may have come meanwhile, or been there all the time, by
 * another interface. -EINVAL: the digits are none. */
static int put_message(const char *digits, bool is_route, int before, int now)
{
    struct netlink_request request;
    size_t bytes = strlen(digits) / 2;
    unsigned char *body;
    int rc;

    if (bytes < (is_route ? sizeof(struct rtmsg) : sizeof(struct ifaddrmsg)) ||
        bytes > NETLINK_REQUEST_BYTES - MNL_NLMSG_HDRLEN ||
        strspn(digits, "0123456789abcdef") != 2 * bytes || digits[2 * bytes] != '\0')
        return -EINVAL;
    body = netlink_begin(&request, is_route ? RTM_NEWROUTE : RTM_NEWADDR,
                         is_route ? NLM_F_CREATE | NLM_F_APPEND : NLM_F_CREATE, bytes);
    for (size_t i = 0; i < bytes; i++)
        (void)sscanf(digits + 2 * i, "%2hhx", &body[i]);
    if (is_route)
        renumber_route(&request.header, before, now);
    else
        ((struct ifaddrmsg *)body)->ifa_index = (uint32_t)now;
    rc = netlink_ask_here(&request, NULL);
    return rc == -EEXIST ? 0 : rc;
}

/* In rounds, because a gateway is reached by a route that must be there before, and an IPv6 address
 * is of no use to a route until duplicate address detection has ended (RFC 4862: a second or so).
 */
static int write_list(const char *name, const json_t *state, const char *key, struct err *err)
{
    bool is_route = strcmp(key, "routes") == 0;
    int before = (int)json_integer_value(json_object_get(state, "index"));
    int now = (int)if_nametoindex(name), rc = 0;
    json_t *left = json_copy(json_object_get(state, key)); /* what is not there yet */
    const char *text = "";

    for (int round = 0; round < ROUNDS && json_array_size(left) > 0; round++) {
        size_t count = json_array_size(left), i = 0;

        while (i < json_array_size(left)) {
            int code = put_message(bind_journal_text(json_array_get(left, i), "message"), is_route,
                                   before, now);

            if (code == 0) {
                (void)json_array_remove(left, i);
                continue;
            }
            rc = code;
            text = bind_journal_text(json_array_get(left, i++), "text");
        }
        if (i > 0 && i == count)
            (void)nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
    }
    if (json_array_size(left) > 0)
        err_set(err, rc, "Interface %s can't get its %s back (%s): %s.", name,
                is_route ? "route" : "address", text, strerror(-rc));
    rc = json_array_size(left) > 0 ? rc : 0;
    json_decref(left);
    return rc;
}

int bind_interface_write(const char *name, const json_t *state, struct err *err)
{
    int rc = write_link(name, state, err);
    int routes;

    if (rc != 0)
        return rc;
    rc = write_list(bind_journal_text(state, "name"), state, "addresses", err);
    routes = write_list(bind_journal_text(state, "name"), state, "routes", err);
    return rc != 0 ? rc : routes;
}
