/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the kernel would send packets for an address (rtnetlink(7)): a software RDMA device asks
 * the same routing tables as every socket.
 */
#include "port.h"

#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPV4_AT 12 /* in a mapped GID */

struct question {
    struct nlmsghdr head;
    struct rtmsg route;
    uint8_t attributes[64];
};

static void add_attribute(struct question *question, unsigned short type, const void *data,
                          size_t bytes)
{
    size_t at = NLMSG_ALIGN(question->head.nlmsg_len);
    struct rtattr head = {.rta_len = (unsigned short)RTA_LENGTH(bytes), .rta_type = type};

    memcpy((uint8_t *)question + at, &head, sizeof head);
    memcpy((uint8_t *)question + at + RTA_LENGTH(0), data, bytes);
    question->head.nlmsg_len = (uint32_t)(at + RTA_ALIGN(head.rta_len));
}

static struct question ask_for(const uint8_t gid[VERBS_GID_BYTES], const char *netdev)
{
    bool ipv4 = verbs_gid_is_ipv4(gid);
    size_t bytes = ipv4 ? 4 : 16;
    unsigned index = if_nametoindex(netdev);
    struct question question = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof question.route),
                 .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = ipv4 ? AF_INET : AF_INET6, .rtm_dst_len = (uint8_t)(bytes * 8)},
    };

    add_attribute(&question, RTA_DST, gid + (ipv4 ? IPV4_AT : 0), bytes);
    if (index > 0)
        add_attribute(&question, RTA_OIF, &index, sizeof index);
    return question;
}

bool verbs_route_is_local(const uint8_t gid[VERBS_GID_BYTES], const char *netdev)
{
    struct question question = ask_for(gid, netdev);
    union {
        struct nlmsghdr head;
        uint8_t bytes[4096];
    } answer;
    const struct rtmsg *route = NLMSG_DATA(&answer.head);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t got = -1;

    if (fd >= 0 && send(fd, &question, question.head.nlmsg_len, 0) > 0)
        got = recv(fd, &answer, sizeof answer, 0);
    if (fd >= 0)
        close(fd);
    return got >= (ssize_t)NLMSG_LENGTH(sizeof *route) && answer.head.nlmsg_type == RTM_NEWROUTE &&
           route->rtm_type == RTN_LOCAL;
}
