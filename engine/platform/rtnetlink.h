/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What several parts ask rtnetlink(7): the state of a link, and where packets to an address
 * go.
 *
 * `fd` is a socket of netlink_open; answers are about its namespace. No privilege needed.
 */
#ifndef ENGINE_RTNETLINK_H
#define ENGINE_RTNETLINK_H

#include "netlink.h"

#include <linux/if_link.h>
#include <stdbool.h>
#include <stdint.h>

struct link_state {
    unsigned flags; /**< IFF_* */
    uint16_t type;  /**< ARPHRD_* */
    uint32_t mtu;
    uint8_t mac[6];
    uint32_t carrier_downs; /**< times that the carrier was lost */
    struct rtnl_link_stats64 stats;
};

/**
 * @brief Frames that a link did not send, since link_drops_begin.
 *
 * The kernel counts in tx_dropped both what the host dropped and what it had no carrier for
 * (noop_qdisc, __dev_direct_xmit), and none of the latter in tx_carrier_errors. So all of
 * tx_dropped between two readings is the cable's if the carrier was away at one of them or was lost
 * between them.
 */
struct link_drops {
    uint64_t host;
    uint64_t no_carrier;
    uint64_t last_dropped; /**< as last read, as the two below */
    uint32_t last_downs;
    bool last_running;
};

/**
 * @brief Read the state of a link.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param ifindex Index of the interface.
 * @param link Takes the state.
 * @return 0; -ENODEV: there is no such link; or another negative errno.
 */
int link_read(int fd, int ifindex, struct link_state *link);

/**
 * @brief Return whether a link is up and has a carrier.
 *
 * @param link State of the link.
 * @return True: it is.
 */
bool link_is_running(const struct link_state *link);

/**
 * @brief Begin to count what a link does not send.
 *
 * @param drops Counts.
 * @param now Present state.
 */
void link_drops_begin(struct link_drops *drops, const struct link_state *now);
/**
 * @brief Add what the link has not sent since the last call.
 *
 * @param drops Counts.
 * @param now Present state.
 */
void link_drops_update(struct link_drops *drops, const struct link_state *now);

/**
 * @brief Return the packets that the link's root queueing discipline dropped.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param ifindex Index of the interface.
 * @return Packets; -1: it does not say.
 */
int64_t link_queue_drops(int fd, int ifindex);

/**
 * @brief Begin the request for the route to an address (4 bytes of AF_INET, 16 of AF_INET6).
 *
 * @param request Takes the request.
 * @param family AF_INET or AF_INET6.
 * @param address Socket address or address bytes.
 * @return The fixed part, inside of `request`.
 */
struct rtmsg *route_begin(struct netlink_request *request, int family, const void *address);

/**
 * @brief Return whether the kernel delivers packets to an address within the namespace.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param family AF_INET or AF_INET6.
 * @param address Socket address or address bytes.
 * @param by Index of the interface by which packets come; 0: any.
 * @return True: it does.
 */
bool route_is_local(int fd, int family, const void *address, unsigned by);

#endif
