/* SPDX-License-Identifier: BSD-3-Clause */
#include "local_route.h"

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPV4_AT 12 /* in a mapped GID */
#define REPLY_BYTES 4096

bool verbs_route_is_local(const uint8_t gid[VERBS_GID_BYTES], const char *netdev)
{
    _Alignas(struct nlmsghdr) uint8_t buffer[REPLY_BYTES];
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
    struct rtmsg *route = mnl_nlmsg_put_extra_header(message, sizeof *route);
    bool ipv4 = verbs_gid_is_ipv4(gid);
    size_t bytes = ipv4 ? 4 : 16;
    unsigned index = if_nametoindex(netdev);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t got = -1;

    message->nlmsg_type = RTM_GETROUTE;
    message->nlmsg_flags = NLM_F_REQUEST;
    route->rtm_family = ipv4 ? AF_INET : AF_INET6;
    route->rtm_dst_len = (uint8_t)(bytes * 8);
    mnl_attr_put(message, RTA_DST, bytes, gid + (ipv4 ? IPV4_AT : 0));
    if (index > 0)
        mnl_attr_put_u32(message, RTA_OIF, index);
    if (fd >= 0 && send(fd, message, message->nlmsg_len, 0) > 0)
        got = recv(fd, buffer, sizeof buffer, 0);
    if (fd >= 0)
        close(fd);
    return got >= (ssize_t)(MNL_NLMSG_HDRLEN + sizeof *route) &&
           message->nlmsg_type == RTM_NEWROUTE && route->rtm_type == RTN_LOCAL;
}
