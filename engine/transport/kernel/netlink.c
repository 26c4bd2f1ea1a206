/* SPDX-License-Identifier: BSD-3-Clause */
#include "netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Room for the largest answer: a link with its statistics and per-family attributes. */
#define ANSWER_BYTES 32768
#define REQUEST_BYTES 128

/* A request and what becomes of its answer. */
struct question {
    union {
        struct nlmsghdr header;
        uint8_t bytes[REQUEST_BYTES];
    };
    uint16_t answer_type;
    void (*take)(const struct nlmsghdr *answer, void *into);
    void *into;
    bool answered;
};

int kernel_netlink_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return fd < 0 ? -errno : fd;
}

/* Asks for an acknowledgement too: some requests are answered by silence (a link without a
 * queueing discipline), and the acknowledgement comes last. Returns the message's body. */
static void *compose(struct question *question, uint16_t type, size_t body_bytes)
{
    struct nlmsghdr *header = mnl_nlmsg_put_header(question->bytes);

    header->nlmsg_type = type;
    header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    return mnl_nlmsg_put_extra_header(header, body_bytes);
}

static int ask(int fd, struct question *question)
{
    _Alignas(struct nlmsghdr) uint8_t buffer[ANSWER_BYTES];
    ssize_t got;

    if (send(fd, question->bytes, question->header.nlmsg_len, 0) < 0)
        return -errno;
    while ((got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
        const struct nlmsghdr *message = (const void *)buffer;

        for (int left = (int)got; mnl_nlmsg_ok(message, left);
             message = mnl_nlmsg_next(message, &left)) {
            if (message->nlmsg_type == NLMSG_ERROR)
                return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(message))->error;
            if (message->nlmsg_type == question->answer_type) {
                question->take(message, question->into);
                question->answered = true;
            }
        }
    }
    return got < 0 ? -errno : -EPROTO;
}

/* --- links --- */

/* Copies an attribute of at least `bytes`. */
static void copy(const struct nlattr *attribute, void *to, size_t bytes)
{
    if (mnl_attr_get_payload_len(attribute) >= bytes)
        memcpy(to, mnl_attr_get_payload(attribute), bytes);
}

static void take_link(const struct nlmsghdr *answer, void *into)
{
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(answer);
    struct nlattr *attribute;
    struct kernel_link *link = into;

    link->up = (info->ifi_flags & IFF_UP) && (info->ifi_flags & IFF_RUNNING);
    link->loopback = info->ifi_flags & IFF_LOOPBACK;
    mnl_attr_for_each(attribute, answer, sizeof *info)
    {
        uint16_t type = mnl_attr_get_type(attribute);

        if (type == IFLA_MTU)
            copy(attribute, &link->mtu, sizeof link->mtu);
        else if (type == IFLA_ADDRESS)
            copy(attribute, link->mac, sizeof link->mac);
        else if (type == IFLA_STATS64) /* grows with the kernel; these come first */
            copy(attribute, &link->stats, offsetof(struct rtnl_link_stats64, rx_compressed));
    }
}

int kernel_netlink_link(int fd, int ifindex, struct kernel_link *link)
{
    struct question question = {.answer_type = RTM_NEWLINK, .take = take_link, .into = link};
    struct ifinfomsg *body = compose(&question, RTM_GETLINK, sizeof *body);
    int rc;

    memset(link, 0, sizeof *link);
    body->ifi_index = ifindex;
    rc = ask(fd, &question);
    return rc ? rc : question.answered ? 0 : -ENODEV;
}

/* --- queues --- */

static void take_queue(const struct nlmsghdr *answer, void *into)
{
    struct nlattr *outer;
    struct nlattr *inner;
    struct gnet_stats_queue queue;

    mnl_attr_for_each(outer, answer, sizeof(struct tcmsg))
    {
        if (mnl_attr_get_type(outer) != TCA_STATS2)
            continue;
        mnl_attr_for_each_nested(inner, outer)
        {
            if (mnl_attr_get_type(inner) != TCA_STATS_QUEUE ||
                mnl_attr_get_payload_len(inner) < sizeof queue)
                continue;
            memcpy(&queue, mnl_attr_get_payload(inner), sizeof queue);
            *(int64_t *)into = queue.drops;
        }
    }
}

int64_t kernel_netlink_queue_drops(int fd, int ifindex)
{
    int64_t drops = -1;
    struct question question = {.answer_type = RTM_NEWQDISC, .take = take_queue, .into = &drops};
    struct tcmsg *body = compose(&question, RTM_GETQDISC, sizeof *body);

    body->tcm_ifindex = ifindex;
    body->tcm_parent = TC_H_ROOT;
    return ask(fd, &question) ? -1 : drops;
}

/* --- routes --- */

static void take_route(const struct nlmsghdr *answer, void *into)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(answer);

    *(bool *)into = route->rtm_type == RTN_LOCAL;
}

bool kernel_netlink_is_local(int fd, const struct sockaddr_storage *address)
{
    bool local = false;
    struct question question = {.answer_type = RTM_NEWROUTE, .take = take_route, .into = &local};
    struct rtmsg *body = compose(&question, RTM_GETROUTE, sizeof *body);
    bool v6 = address->ss_family == AF_INET6;
    const void *bytes = v6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                           : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    size_t size = v6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);

    body->rtm_family = (uint8_t)address->ss_family;
    body->rtm_dst_len = (uint8_t)(8 * size);
    mnl_attr_put(&question.header, RTA_DST, size, bytes);
    return ask(fd, &question) == 0 && local;
}
