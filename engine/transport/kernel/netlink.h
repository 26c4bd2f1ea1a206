/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the kernel says of a link and of a route, by rtnetlink. A netlink socket stays in the
 * namespace where it was made, so no call here has to visit it again. Nothing blocks: the kernel
 * answers inside the request. No privilege needed.
 */
#ifndef ENGINE_KERNEL_NETLINK_H
#define ENGINE_KERNEL_NETLINK_H

#include <linux/if_link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct kernel_link {
    bool up; /* administratively, and with a carrier */
    bool loopback;
    uint32_t mtu;
    uint8_t mac[6];
    struct rtnl_link_stats64 stats;
};

/* Returns the socket or a negative errno. */
int kernel_netlink_open(void);

int kernel_netlink_link(int fd, int ifindex, struct kernel_link *link);

/* Packets that the link's root queueing discipline dropped; -1: it does not say. */
int64_t kernel_netlink_queue_drops(int fd, int ifindex);

/* Whether packets to this address never leave the namespace. */
bool kernel_netlink_is_local(int fd, const struct sockaddr_storage *address);

#endif
