/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's share of one phase: lane.c makes it and keeps its times, send.c, receive.c and prober.c
 * move its datagrams.
 */
#ifndef ENGINE_UDP_LANE_H
#define ENGINE_UDP_LANE_H

#include "clock.h"
#include "delay_stats.h"
#include "frame_pingpong.h"
#include "frame_prober.h"
#include "pacer.h"
#include "port.h"
#include "probe_frames.h"
#include "reordering.h"
#include "sequence_limit.h"
#include "signature.h"
#include "transport.h"
#include "turns.h"
#include "udp_options.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#define UDP_BURST_MAX 128u
#define UDP_MESSAGES 32u     /* received by one call */
#define UDP_COALESCED 65536u /* bytes of one of them, at most */
#define UDP_SEGMENTS_MAX 64u /* frames of one that is sent; the kernel's limit before Linux 6.9 */
#define UDP_FRAME_LEAST 64u
#define UDP_FORWARD_QUEUE 512u /* a power of two */

/* One of a phase's different sizes. */
struct udp_size {
    uint32_t frame_bytes; /* with FCS */
    uint32_t payload;     /* of the datagram */
    uint32_t cost;        /* to the pace: bits at layer 1, or 1 when the load is in frames/s */
};

/* A flow that is sent. */
struct udp_stream {
    struct sockaddr_storage to;
    struct flow_side *side;
    struct signature signature; /* of its frames, but for what differs from one to the next */
    uint64_t sequence;          /* of the next frame */
    uint64_t left;              /* frames yet to be sent; UINT64_MAX: until the stop */
    uint16_t turn;              /* place in the phase's list of sizes */
};

/* A flow that is received. */
struct udp_source {
    struct reordering reordering;
    struct delay_stats delay_stats;
    struct flow_side *side;
    int64_t stamp_ns; /* of the first frame of the last 64 numbers, or behind the last gap */
    struct sequence sequence;
    struct sockaddr_storage from;
    struct sequence_past past;
    uint32_t missing;                 /* numbers, in its gaps */
    struct gap gaps[REORDERING_GAPS]; /* reordering's: touched where many frames are missing */
};

/* What one call sends: messages of one or more frames of a flow, each of signature and fill. */
struct udp_batch {
    struct mmsghdr messages[UDP_BURST_MAX];
    struct {
        struct udp_stream *stream;
        uint32_t frames;
        uint32_t payload; /* of each frame */
    } of[UDP_BURST_MAX];
    struct signature signatures[UDP_BURST_MAX];
    struct iovec pieces[UDP_BURST_MAX * 2];
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
    } controls[UDP_BURST_MAX];
    uint32_t count; /* messages */
    uint32_t frames;
};

struct udp_inbox {
    struct mmsghdr messages[UDP_MESSAGES];
    struct iovec pieces[UDP_MESSAGES];
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(int))];
    } controls[UDP_MESSAGES];
    struct sockaddr_storage from[UDP_MESSAGES];
    uint8_t bytes[UDP_MESSAGES][UDP_COALESCED];
};

enum udp_state { UDP_WAITS, UDP_SENDS, UDP_LISTENS };

struct udp_lane {
    struct lane lane; /* first: the worker's part */
    struct transport_port *port;
    enum udp_state state;
    bool segments; /* frames of a flow are sent as one message */
    bool forwards;
    bool timing;
    bool plays; /* ping-pong */
    bool announced;
    int64_t start_ns;
    struct udp_size sizes[TRANSPORT_SIZES_MAX]; /* different ones */
    uint32_t size_count;
    uint8_t order[TRANSPORT_SIZES_MAX]; /* the phase's list, as places in `sizes` */
    uint32_t order_count;
    /* Sending. */
    struct udp_stream *streams; /* as the request's sends */
    struct udp_batch *batch;
    struct pace pace;
    uint32_t burst;
    uint32_t cost;      /* mean of a frame */
    struct turns turns; /* of flows with unequal shares; else none */
    uint32_t at;        /* whose turn it is: a stream, or a place in `turns` */
    uint8_t *queue;     /* places of sizes, of frames that wait to be sent on */
    uint32_t head;      /* free-running */
    uint32_t tail;
    /* Receiving. */
    struct udp_source *sources; /* as the request's receives */
    struct udp_inbox *inbox;
    struct sequence_limit limit;         /* of the senders */
    struct delay_stats_buckets *buckets; /* by source; NULL: times are not measured */
    uint16_t *source_of; /* by rank: place in `sources` + 1; 0: none. And of destinations: */
    uint16_t *stream_of;
    uint64_t left; /* frames of a transfer that have yet to come; UINT64_MAX: not known */
    struct frame_pingpong game; /* where it `plays` */
    struct frame_prober prober;
};

/* send.c. Sends what is due, or a forwarder's queue; returns when more will be. */
int64_t udp_send(struct udp_lane *lane, int64_t now_ns);
/* One frame beside the load; whether the kernel took it. */
bool udp_send_one(struct udp_lane *lane, const struct sockaddr_storage *to,
                  const struct signature *signature, const struct udp_size *size);
/* The signature of such a frame, with the ranks of another. */
struct signature udp_sign(uint16_t tag, const struct signature *like, uint32_t sequence,
                          int64_t stamp_ns);
/* Accounts what the load asked for until `end_ns` and was not sent. */
void udp_send_intended(struct udp_lane *lane, int64_t end_ns);

/* receive.c. Returns how many messages came. */
uint32_t udp_receive(struct udp_lane *lane, int64_t now_ns);
/* Counts a datagram by its sequence number and its stamp; whether it is delivered. */
bool udp_judge(const struct udp_lane *lane, struct udp_source *source,
               const struct signature *signature, int64_t now_ns);

/* pingpong.c. In prepare; a datagram that came. */
int udp_pingpong_make(struct udp_lane *lane);
void udp_pingpong_take(struct udp_lane *lane, const uint8_t *datagram, uint32_t length,
                       int64_t now_ns);

/* prober.c. Sends the probe that is due; returns when the next one is. */
int64_t udp_prober_turn(struct udp_lane *lane, int64_t now_ns);
/* A sound probe or answer for this rank. False: a forged answer. */
bool udp_prober_take(struct udp_lane *lane, const struct signature *signature,
                     const struct udp_size *size);

/* lane.c: the functions of the transport's table. */
int udp_lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err);
int udp_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
void udp_lane_start(struct lane *lane, int64_t now_ns);
int64_t udp_lane_poll(struct lane *lane, int64_t now_ns);
unsigned udp_lane_flow_metrics(struct lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room);
bool udp_lane_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                      struct latency *sum);
void udp_lane_destroy(struct lane *lane);

static inline socklen_t udp_address_bytes(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

#endif
