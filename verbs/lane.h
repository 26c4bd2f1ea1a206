/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A verbs lane inside: the streams of one queue's flows in one phase. The main thread makes it
 * (lane_options.c, lane_streams.c) and connects its queue pairs (lane_connect.c), a worker moves
 * the messages (lane_streams.c). How it sends, and whether its messages are answered, is its
 * traffic's.
 */
#ifndef VERBS_LANE_H
#define VERBS_LANE_H

#include "flow_rate.h"
#include "mode.h"
#include "receiver.h"
#include "sender.h"

struct verbs_lane;

/* One kind of traffic: stream_transport.c, pingpong_transport.c, schedule_transport.c,
 * latency_probes.c. */
struct verbs_traffic {
    bool has_replies;      /* each flow has a reply stream */
    bool may_rest;         /* silence does not mean that all is over */
    bool polls_to_the_end; /* `send` is called even when all is sent */
    uint32_t slots;        /* places of a receiver's ring; 0: two depths */
    uint16_t first_stream; /* on the wire: probes differ from their load */

    /* Refuses what it can't do. NULL: it can do all. */
    int (*check)(const struct verbs_lane *lane, struct err *err);
    /* Makes what it needs beside the streams, before they are made. -ENOMEM, or another refusal
     * with its sentence. NULL: nothing. */
    int (*make)(struct verbs_lane *lane, struct err *err);
    void (*free)(struct verbs_lane *lane);
    /* Bytes of the largest message. NULL: that of the lane's sizes. */
    uint32_t (*largest)(const struct verbs_lane *lane);
    /* Worker: the phase's times are known. NULL: nothing. */
    void (*start)(struct verbs_lane *lane);
    /* Worker: sends what is due; returns when the next is. */
    int64_t (*send)(struct verbs_lane *lane, int64_t now_ns);
};

extern const struct verbs_traffic verbs_traffic_stream, verbs_traffic_pingpong,
    verbs_traffic_schedule;

/* One flow that this lane sends. */
struct verbs_flow {
    struct lane_flow *flow;
    struct verbs_sender *senders; /* one per stream */
    struct pace pace;             /* in bytes of payload */
    unsigned turn;                /* the stream that begins the next round */
    bool unpaced;
};

struct verbs_lane {
    struct lane lane;
    struct stream_context context;
    const struct verbs_traffic *traffic;
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    unsigned streams; /* per flow */
    uint16_t mtu;     /* path MTU, max */
    bool forwards;
    bool events;
    bool armed; /* a completion makes the port's channel readable */
    struct verbs_flow *flows;
    struct verbs_sender *senders;     /* of what it sends, then the replies to what it receives */
    struct verbs_receiver *receivers; /* of what it receives, then the replies to what it sends */
    unsigned sender_count;
    unsigned receiver_count;
    struct lane_flow *replies;       /* to what it sends, then to what it receives, ... */
    struct flow_side *reply_sides;   /* ... with counts of their own; NULL: there are none */
    struct pingpong *pingpong;       /* the traffic's; NULL: another traffic */
    struct verbs_schedule *schedule; /* the same */
    struct verbs_probes *probes;     /* the same */
    struct verbs_lane *probe_lane;   /* beside it (verbs.c); NULL: none */
    size_t keep_max;                 /* queue pairs that the port keeps when it is destroyed */
    unsigned ready;                  /* endpoints that are connected */
    unsigned connected_count;        /* endpoints before this one are */
    int64_t connecting_since_ns;
    int64_t poll_gap_ns;
    int64_t opens_ns; /* nothing is sent before */
};

/* The lane's endpoints: of its senders, then of its receivers. */
static inline struct verbs_endpoint *verbs_lane_endpoint(const struct verbs_lane *lane,
                                                         unsigned index)
{
    return index < lane->sender_count ? &lane->senders[index].base
                                      : &lane->receivers[index - lane->sender_count].base;
}

static inline unsigned verbs_lane_endpoints(const struct verbs_lane *lane)
{
    return lane->sender_count + lane->receiver_count;
}

#endif
