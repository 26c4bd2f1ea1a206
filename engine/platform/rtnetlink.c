/* SPDX-License-Identifier: BSD-3-Clause */
#include "rtnetlink.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

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
    /* The statistics grow with the kernel; these come first. */
    netlink_copy(netlink_find(answer, sizeof *info, IFLA_STATS64), &link->stats,
                 offsetof(struct rtnl_link_stats64, rx_compressed));
    return 0;
}

int link_read(int fd, int ifindex, struct link_state *link)
{
    const struct netlink_reader reader = {.each = read_link, .data = link};
    struct netlink_request request;
    struct ifinfomsg *info = netlink_begin(&request, RTM_GETLINK, 0, sizeof *info);

    memset(link, 0, sizeof *link);
    info->ifi_index = ifindex;
    return netlink_ask(fd, &request, &reader);
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
    const struct netlink_reader reader = {.each = read_drops, .data = &drops};
    struct netlink_request request;
    struct tcmsg *body = netlink_begin(&request, RTM_GETQDISC, 0, sizeof *body);

    body->tcm_ifindex = ifindex;
    body->tcm_parent = TC_H_ROOT;
    return netlink_ask(fd, &request, &reader) == 0 ? drops : -1;
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
    const struct netlink_reader reader = {.each = read_type, .data = &local};
    struct netlink_request request;

    route_begin(&request, family, address);
    if (by > 0)
        mnl_attr_put_u32(&request.header, RTA_OIF, by);
    return netlink_ask(fd, &request, &reader) == 0 && local;
}
