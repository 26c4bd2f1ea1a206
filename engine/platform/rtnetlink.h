/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What several parts ask rtnetlink(7): the state of a link, and where packets to an address go.
 * `fd` is a socket of netlink_open; answers are about its namespace. No privilege needed.
 */
#ifndef ENGINE_RTNETLINK_H
#define ENGINE_RTNETLINK_H

#include "netlink.h"

#include <linux/if_link.h>
#include <stdbool.h>
#include <stdint.h>

struct link_state {
    unsigned flags; /* IFF_* */
    uint16_t type;  /* ARPHRD_* */
    uint32_t mtu;
    uint8_t mac[6];
    uint32_t carrier_downs; /* times that the carrier was lost */
    struct rtnl_link_stats64 stats;
};

/* Frames that a link did not send, since link_drops_begin. The kernel counts in tx_dropped both
 * what the host dropped and what it had no carrier for (noop_qdisc, __dev_direct_xmit), and none of
 * the latter in tx_carrier_errors. So all of tx_dropped between two readings is the cable's if the
 * carrier was away at one of them or was lost between them. */
struct link_drops {
    uint64_t host;
    uint64_t no_carrier;
    uint64_t last_dropped; /* as last read, as the two below */
    uint32_t last_downs;
    bool last_running;
};

/* 0, or a negative errno (-ENODEV: there is no such link). */
int link_read(int fd, int ifindex, struct link_state *link);

/* Up administratively, and with a carrier. */
bool link_is_running(const struct link_state *link);

void link_drops_begin(struct link_drops *drops, const struct link_state *now);
void link_drops_update(struct link_drops *drops, const struct link_state *now);

/* Packets that the link's root queueing discipline dropped; -1: it does not say. */
int64_t link_queue_drops(int fd, int ifindex);

/* Begins the request for the route to an address (4 bytes of AF_INET, 16 of AF_INET6); its fixed
 * part is a struct rtmsg. */
struct rtmsg *route_begin(struct netlink_request *request, int family, const void *address);

/* Does the kernel deliver packets to this address within the namespace? By the interface of index
 * `by`; 0: by any. */
bool route_is_local(int fd, int family, const void *address, unsigned by);

#endif
