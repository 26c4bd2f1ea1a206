/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of a control endpoint share: its socket and barriers (endpoint.c) and its clock
 * (endpoint_clock.c). For no one else.
 */
#ifndef ENGINE_ENDPOINT_STATE_H
#define ENGINE_ENDPOINT_STATE_H

#include "blob_store.h"
#include "datagram.h"
#include "kernel_sync_status.h"
#include "membership.h"
#include "run_clock.h"

#include <netinet/in.h>

/* As sockaddr_storage, but 28 bytes: there is one for each of up to 65,536 nodes. */
union address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* What came in last: its answer echoes its time stamps. */
struct incoming {
    uint32_t sender;
    int64_t transmit_ns;
    int64_t arrive_ns;
};

struct control {
    int fd;
    int family;
    int64_t timeout_ns;
    struct clock_conf clock_conf;
    bool joined;
    bool clocks_known;
    union address *addresses;
    struct membership membership;
    struct blob_store blob_store;
    struct run_clock clock;
    struct kernel_sync_status kernel; /* ptp */
    uint32_t pings;
    int64_t ping_ns; /* when the next is due */
    bool asks_again; /* once the answer is there */
    struct incoming incoming;
    int64_t beat_ns;      /* when the last heartbeat came */
    int64_t beat_said_ns; /* and when node 0 sent it: the next must be later */
    int64_t active_ns;    /* when a partner last needed us: it asked, or we passed */
    uint64_t dropped;
    int send_errno; /* the last error that was logged */
};

/* endpoint.c: a datagram that carries nothing but its time stamps. */
void endpoint_send(struct control *control, enum datagram_type type, uint32_t recipient);

/* endpoint_clock.c. */

/* What makes CLOCK_MONOTONIC one clock, above 0: the boot, and the time namespace's offsets. */
int64_t endpoint_boot_id(const uint8_t key[DATAGRAM_KEY_BYTES]);
/* Once, after the first barrier: whose clocks are ours. */
void endpoint_learn_clocks(struct control *control, int64_t now_ns);
/* A datagram of a neighbour that was newer than all before: its time stamps. */
void endpoint_hear_clock(struct control *control, const struct datagram *datagram, int64_t now_ns);
/* Asks the parent, when that is due; and again when it has answered. */
void endpoint_ping(struct control *control, int64_t now_ns);
void endpoint_pong(struct control *control);

#endif
