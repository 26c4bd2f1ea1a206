/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A udp port's share of one phase: a lane of frames (frame_lane.h), each a datagram.
 *
 * lane.c makes it, hot.c moves its datagrams.
 */
#ifndef ENGINE_UDP_LANE_H
#define ENGINE_UDP_LANE_H

#include "frame_lane.h"
#include "port.h"
#include "socket_frame.h"
#include "udp_options.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#define UDP_MESSAGES FRAME_BURST_MAX /* received by one call */
#define UDP_COALESCED 65536u         /* bytes of one of them, at most */

union udp_control {
    struct cmsghdr header;
    uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

struct udp_outbox {
    struct socket_frame frames[FRAME_BURST_MAX];
    struct frame_template heads[FRAME_BURST_MAX];
    struct mmsghdr messages[FRAME_BURST_MAX];
    struct iovec pieces[FRAME_BURST_MAX * 2];
    union udp_control controls[FRAME_BURST_MAX];
};

struct udp_inbox {
    struct socket_frame frames[FRAME_BURST_MAX];
    uint32_t count; /* messages, of which the frames are cut ... */
    uint32_t next;  /* ... up to this one, ... */
    uint32_t at;    /* ... and so many of its bytes */
    struct mmsghdr messages[UDP_MESSAGES];
    struct iovec pieces[UDP_MESSAGES];
    union udp_control controls[UDP_MESSAGES];
    struct sockaddr_storage from[UDP_MESSAGES];
    uint8_t bytes[UDP_MESSAGES][UDP_COALESCED];
};

struct udp_lane {
    struct frame_lane frame; /* first */
    struct transport_port *port;
    bool segments; /* frames of a flow are sent as one message */
    bool announced;
    struct udp_outbox *outbox;
    struct udp_inbox *inbox;
};

/** @brief Return the partner's socket at a place (frame_single). */
static inline struct sockaddr_storage *udp_partner(const struct frame_lane *lane, uint32_t place)
{
    return (struct sockaddr_storage *)lane->partners + place;
}

/* hot.c. */
frame_send udp_choose_send(const struct frame_lane *lane);
frame_receive udp_choose_receive(const struct frame_lane *lane);
bool udp_send_single(struct frame_lane *lane, const struct frame_single *single);
bool udp_is_sound(const struct frame_lane *lane, const struct frame_seen *seen);

static inline socklen_t udp_address_bytes(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

#endif
