/* SPDX-License-Identifier: BSD-3-Clause */
#include "netlink.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Room for the largest answer: a link with its statistics and per-family attributes. */
#define ANSWER_BYTES 32768

struct request {
    struct nlmsghdr header;
    union {
        struct ifinfomsg link;
        struct rtmsg route;
        struct tcmsg queue;
    };
    uint8_t attributes[64];
};

/* Called with the one message that answers. */
typedef void answer_fn(const struct nlmsghdr *message, void *into);

struct answer {
    uint16_t type;
    answer_fn *take;
    void *into;
    bool taken;
};

int tcp_netlink_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return fd < 0 ? -errno : fd;
}

static size_t body_bytes(uint16_t type)
{
    switch (type) {
    case RTM_GETLINK:
        return sizeof(struct ifinfomsg);
    case RTM_GETROUTE:
        return sizeof(struct rtmsg);
    default:
        return sizeof(struct tcmsg);
    }
}

/* Asks for an acknowledgement too: some requests are answered by silence (a link without a
 * queueing discipline), and the acknowledgement comes last. */
static int ask(int fd, struct request *request, struct answer *answer)
{
    _Alignas(struct nlmsghdr) uint8_t buffer[ANSWER_BYTES];
    ssize_t got;

    request->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    if (request->header.nlmsg_len == 0)
        request->header.nlmsg_len = (uint32_t)NLMSG_LENGTH(body_bytes(request->header.nlmsg_type));
    if (send(fd, request, request->header.nlmsg_len, 0) < 0)
        return -errno;
    while ((got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
        unsigned left = (unsigned)got;

        for (const struct nlmsghdr *m = (const void *)buffer; NLMSG_OK(m, left);
             m = NLMSG_NEXT(m, left)) {
            if (m->nlmsg_type == NLMSG_ERROR)
                return ((const struct nlmsgerr *)NLMSG_DATA(m))->error;
            if (m->nlmsg_type == answer->type) {
                answer->take(m, answer->into);
                answer->taken = true;
            }
        }
    }
    return got < 0 ? -errno : -EPROTO;
}

/* Finds one attribute behind a message's body; NULL: absent. */
static const struct rtattr *find(const struct nlmsghdr *message, size_t body, uint16_t type)
{
    const struct rtattr *a =
        (const void *)((const uint8_t *)NLMSG_DATA(message) + NLMSG_ALIGN(body));
    int left = (int)(message->nlmsg_len - NLMSG_LENGTH(NLMSG_ALIGN(body)));

    for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == type)
            return a;
    return NULL;
}

/* Copies an attribute of at least `bytes`; leaves the target alone when there is none. */
static void copy(const struct nlmsghdr *message, uint16_t type, void *to, size_t bytes)
{
    const struct rtattr *a = find(message, sizeof(struct ifinfomsg), type);

    if (a && RTA_PAYLOAD(a) >= bytes)
        memcpy(to, RTA_DATA(a), bytes);
}

static void take_link(const struct nlmsghdr *message, void *into)
{
    const struct ifinfomsg *info = NLMSG_DATA(message);
    struct tcp_link *link = into;

    link->up = (info->ifi_flags & IFF_UP) && (info->ifi_flags & IFF_RUNNING);
    link->loopback = info->ifi_flags & IFF_LOOPBACK;
    copy(message, IFLA_MTU, &link->mtu, sizeof link->mtu);
    copy(message, IFLA_ADDRESS, link->mac, sizeof link->mac);
    /* The structure grows with the kernel; these come first. */
    copy(message, IFLA_STATS64, &link->stats, offsetof(struct rtnl_link_stats64, rx_compressed));
}

int tcp_netlink_link(int fd, int ifindex, struct tcp_link *link)
{
    struct request request = {.header = {.nlmsg_type = RTM_GETLINK}};
    struct answer answer = {.type = RTM_NEWLINK, .take = take_link, .into = link};
    int rc;

    memset(link, 0, sizeof *link);
    request.link.ifi_index = ifindex;
    rc = ask(fd, &request, &answer);
    return rc ? rc : answer.taken ? 0 : -ENODEV;
}

static void take_queue(const struct nlmsghdr *message, void *into)
{
    const struct rtattr *stats = find(message, sizeof(struct tcmsg), TCA_STATS2);
    const struct rtattr *a;
    int left;

    if (!stats)
        return;
    left = (int)RTA_PAYLOAD(stats);
    for (a = RTA_DATA(stats); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        struct gnet_stats_queue queue;

        if (a->rta_type != TCA_STATS_QUEUE || RTA_PAYLOAD(a) < sizeof queue)
            continue;
        memcpy(&queue, RTA_DATA(a), sizeof queue);
        *(int64_t *)into = queue.drops;
    }
}

int64_t tcp_netlink_queue_drops(int fd, int ifindex)
{
    struct request request = {.header = {.nlmsg_type = RTM_GETQDISC}};
    int64_t drops = -1;
    struct answer answer = {.type = RTM_NEWQDISC, .take = take_queue, .into = &drops};

    request.queue.tcm_ifindex = ifindex;
    request.queue.tcm_parent = TC_H_ROOT;
    return ask(fd, &request, &answer) ? -1 : drops;
}

static void take_route(const struct nlmsghdr *message, void *into)
{
    const struct rtmsg *route = NLMSG_DATA(message);

    *(bool *)into = route->rtm_type == RTN_LOCAL;
}

bool tcp_netlink_is_local(int fd, const struct sockaddr_storage *address)
{
    struct request request = {.header = {.nlmsg_type = RTM_GETROUTE}};
    bool local = false;
    struct answer answer = {.type = RTM_NEWROUTE, .take = take_route, .into = &local};
    struct rtattr *to =
        (struct rtattr *)(void *)((uint8_t *)&request + NLMSG_LENGTH(sizeof request.route));
    bool v6 = address->ss_family == AF_INET6;
    const void *bytes = v6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                           : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    size_t size = v6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);

    request.route.rtm_family = (uint8_t)address->ss_family;
    request.route.rtm_dst_len = (uint8_t)(8 * size);
    to->rta_type = RTA_DST;
    to->rta_len = (uint16_t)RTA_LENGTH(size);
    memcpy(RTA_DATA(to), bytes, size);
    request.header.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof request.route) + RTA_LENGTH(size));
    return ask(fd, &request, &answer) == 0 && local;
}
