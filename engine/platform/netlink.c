/* SPDX-License-Identifier: BSD-3-Clause */
#include "netlink.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_BYTES 32768 /* maximum bytes of one message of the kernel */

int netlink_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return fd < 0 ? -errno : fd;
}

void *netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags,
                    size_t fixed_bytes)
{
    struct nlmsghdr *header = mnl_nlmsg_put_header(request->bytes);

    header->nlmsg_type = type;
    header->nlmsg_flags = flags | NLM_F_REQUEST | NLM_F_ACK;
    request->fixed_bytes = fixed_bytes;
    return mnl_nlmsg_put_extra_header(header, fixed_bytes);
}

/* Check a received netlink message. Return the errno of an end or error message; an answer must
 * have its fixed part, followed by complete attributes. */
static int check(const struct nlmsghdr *message, size_t fixed_bytes)
{
    const struct nlattr *attribute = mnl_nlmsg_get_payload_offset(message, fixed_bytes);
    const char *end = mnl_nlmsg_get_payload_tail(message);
    int code = 0;

    if (message->nlmsg_flags & NLM_F_DUMP_INTR)
        return -EINTR;
    if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE) {
        if (mnl_nlmsg_get_payload_len(message) < sizeof code)
            return message->nlmsg_type == NLMSG_DONE ? 0 : -EPROTO;
        memcpy(&code, mnl_nlmsg_get_payload(message), sizeof code);
        return code < 0 ? code : 0;
    }
    if (message->nlmsg_type < NLMSG_MIN_TYPE)
        return message->nlmsg_type == NLMSG_OVERRUN ? -EPROTO : 0;
    if (mnl_nlmsg_get_payload_len(message) < fixed_bytes)
        return -EPROTO;
    while (mnl_attr_ok(attribute, (int)(end - (const char *)attribute)))
        attribute = mnl_attr_next(attribute);
    return (const char *)attribute >= end ? 0 : -EPROTO;
}

int netlink_ask(int fd, struct netlink_request *request,
                int (*each)(const struct nlmsghdr *answer, void *data), void *data)
{
    static _Atomic uint32_t sequence;
    _Alignas(struct nlmsghdr) uint8_t buffer[ANSWER_BYTES];
    bool ended = false;
    int rc = 0; /* first error */

    request->header.nlmsg_seq = ++sequence;
    if (send(fd, request->bytes, request->header.nlmsg_len, 0) < 0)
        return -errno;
    while (!ended) { /* after an error, too, all is read: the socket is used again */
        const struct nlmsghdr *message = (const void *)buffer;
        ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
        int left = (int)got;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return -errno;
        if (got <= 0 || got > ANSWER_BYTES)
            return -EPROTO;
        for (; !ended && mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
            if (message->nlmsg_seq != request->header.nlmsg_seq)
                continue; /* rest of an earlier answer */
            ended = message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE;
            if (rc == 0)
                rc = check(message, request->fixed_bytes);
            if (rc == 0 && each != NULL && message->nlmsg_type >= NLMSG_MIN_TYPE)
                rc = each(message, data);
        }
        if (!ended && left > 0)
            return -EPROTO;
    }
    return rc;
}

/* --- attributes --- */

const struct nlattr *netlink_find(const struct nlmsghdr *message, size_t fixed_bytes, uint16_t type)
{
    struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, fixed_bytes)
    {
        if (mnl_attr_get_type(attribute) == type)
            return attribute;
    }
    return NULL;
}

const struct nlattr *netlink_find_in(const struct nlattr *outer, uint16_t type)
{
    struct nlattr *attribute;

    if (outer == NULL)
        return NULL;
    mnl_attr_for_each_nested(attribute, outer)
    {
        if (mnl_attr_get_type(attribute) == type)
            return attribute;
    }
    return NULL;
}

bool netlink_copy(const struct nlattr *attribute, void *to, size_t bytes)
{
    if (attribute == NULL || mnl_attr_get_payload_len(attribute) < bytes)
        return false;
    memcpy(to, mnl_attr_get_payload(attribute), bytes);
    return true;
}

uint32_t netlink_u32(const struct nlattr *attribute, uint32_t missing)
{
    (void)netlink_copy(attribute, &missing, sizeof missing);
    return missing;
}

void netlink_text(const struct nlattr *attribute, char *to, size_t size)
{
    size_t length = attribute != NULL ? mnl_attr_get_payload_len(attribute) : 0;

    length = length < size ? length : size - 1;
    if (attribute != NULL)
        memcpy(to, mnl_attr_get_payload(attribute), length);
    to[length] = '\0';
}

/* --- links and routes --- */

static int read_link(const struct nlmsghdr *answer, void *into)
{
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(answer);
    struct link_state *link = into;

    link->flags = info->ifi_flags;
    link->type = info->ifi_type;
    link->mtu = netlink_u32(netlink_find(answer, sizeof *info, IFLA_MTU), 0);
    link->carrier_downs =
        netlink_u32(netlink_find(answer, sizeof *info, IFLA_CARRIER_DOWN_COUNT), 0);
    netlink_copy(netlink_find(answer, sizeof *info, IFLA_ADDRESS), link->mac, sizeof link->mac);
    /* The statistics grow with the kernel; the first ones are read. */
    netlink_copy(netlink_find(answer, sizeof *info, IFLA_STATS64), &link->stats,
                 offsetof(struct rtnl_link_stats64, rx_compressed));
    return 0;
}

int link_read(int fd, int ifindex, struct link_state *link)
{
    struct netlink_request request;
    struct ifinfomsg *info = netlink_begin(&request, RTM_GETLINK, 0, sizeof *info);

    memset(link, 0, sizeof *link);
    info->ifi_index = ifindex;
    return netlink_ask(fd, &request, read_link, link);
}

bool link_is_running(const struct link_state *link)
{
    return (link->flags & IFF_UP) && (link->flags & IFF_RUNNING);
}

void link_drops_begin(struct link_drops *drops, const struct link_state *now)
{
    *drops = (struct link_drops){.last_dropped = now->stats.tx_dropped,
                                 .last_downs = now->carrier_downs,
                                 .last_running = link_is_running(now)};
}

void link_drops_update(struct link_drops *drops, const struct link_state *now)
{
    uint64_t more = now->stats.tx_dropped - drops->last_dropped;
    bool running = link_is_running(now);

    if (running && drops->last_running && now->carrier_downs == drops->last_downs)
        drops->host += more;
    else
        drops->no_carrier += more;
    drops->last_dropped = now->stats.tx_dropped;
    drops->last_downs = now->carrier_downs;
    drops->last_running = running;
}

static int read_drops(const struct nlmsghdr *answer, void *into)
{
    const struct nlattr *statistics = netlink_find(answer, sizeof(struct tcmsg), TCA_STATS2);
    struct gnet_stats_queue queue;

    if (netlink_copy(netlink_find_in(statistics, TCA_STATS_QUEUE), &queue, sizeof queue))
        *(int64_t *)into = queue.drops;
    return 0;
}

int64_t link_queue_drops(int fd, int ifindex)
{
    int64_t drops = -1;
    struct netlink_request request;
    struct tcmsg *body = netlink_begin(&request, RTM_GETQDISC, 0, sizeof *body);

    body->tcm_ifindex = ifindex;
    body->tcm_parent = TC_H_ROOT;
    return netlink_ask(fd, &request, read_drops, &drops) == 0 ? drops : -1;
}

struct rtmsg *route_begin(struct netlink_request *request, int family, const void *address)
{
    struct rtmsg *route = netlink_begin(request, RTM_GETROUTE, 0, sizeof *route);
    size_t bytes = family == AF_INET6 ? 16 : 4;

    route->rtm_family = (unsigned char)family;
    route->rtm_dst_len = (unsigned char)(8 * bytes);
    mnl_attr_put(&request->header, RTA_DST, bytes, address);
    return route;
}

static int read_type(const struct nlmsghdr *answer, void *into)
{
    *(bool *)into = ((const struct rtmsg *)mnl_nlmsg_get_payload(answer))->rtm_type == RTN_LOCAL;
    return 0;
}

bool route_is_local(int fd, int family, const void *address, unsigned by)
{
    bool local = false;
    struct netlink_request request;

    route_begin(&request, family, address);
    if (by > 0)
        mnl_attr_put_u32(&request.header, RTA_OIF, by);
    return netlink_ask(fd, &request, read_type, &local) == 0 && local;
}
