/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a lane, a queue's share of one phase, keeps: plain data and helpers that its hot paths
 * share. lane.c makes it and keeps its times; tx.c, rx.c and forward.c are the hot paths, each with
 * variants that are chosen once, in prepare.
 */
#ifndef ENGINE_DPDK_LANE_STATE_H
#define ENGINE_DPDK_LANE_STATE_H

#include "delay_stats.h"
#include "frame.h"
#include "frame_prober.h"
#include "pacer.h"
#include "port_queue.h"
#include "reordering.h"
#include "sequence_limit.h"
#include "transport.h"
#include "turns.h"

#include <assert.h>
#include <rte_cycles.h>
#include <stddef.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

/* One of a phase's different sizes. */
struct lane_size {
    uint32_t frame_bytes;   /* with FCS */
    uint32_t payload_bytes; /* behind the headers */
    uint32_t cost;          /* to the pace: bits at layer 1, or 1 when the load is in frames/s */
    uint16_t length;        /* in memory */
    struct frame_expect expect;
};

#define LANE_NO_SIZE 0xff

/* What a flow sends from one UDP source port, with a sequence of its own: two cache lines that hold
 * all that its next frame needs. Frames and bytes are not counted: they follow from the sequence.
 */
struct sender_stream {
    struct frame_template template; /* of the phase's first size */
    uint64_t sequence;              /* of the next frame */
    int64_t last_ns;                /* when its last frame was sent */
    struct flow_side *side;
    uint32_t place; /* flow as asked for, times UDP source ports, plus source port: never moves */
    uint16_t turn;  /* place in the phase's list of sizes */
    uint16_t base;  /* signature_base() */
} __attribute__((aligned(64)));
static_assert(sizeof(struct sender_stream) == 128, "a stream is two cache lines");

/* Whose turn it is: a stream, or where there are `turns` a place among them, and the first of the
 * streams that this round is of (each is of another UDP source port). */
struct sender_turn {
    uint32_t at;
    uint32_t round;
};

/* A port's addresses are made known, one frame each. */
struct learning {
    struct pace pace;
    uint32_t next;
    int64_t until_ns; /* 0: it has not begun */
};

/* What of a stream is in its flow's counts, and behind how many ends of the window. Streams are
 * accounted a few at a time between bursts: a walk over thousands would let a ring overflow. Until
 * all are behind an end, those of each burst are accounted before they change. */
struct accounted {
    uint64_t frames;
    uint64_t bytes;   /* receiver */
    uint64_t numbers; /* receiver */
    uint32_t marks;
};
struct accounting {
    struct accounted *streams;
    uint32_t next;  /* to be accounted; 0: all are */
    uint32_t marks; /* ends of the window that are past */
    bool marked;    /* there is a stream that is not behind the last of them */
};
#define ACCOUNT_SOME 64u /* streams that are accounted at once */

struct sender {
    struct accounting accounting;
    struct sender_stream *streams;    /* in the order of sending; as a rule a seeded random one */
    struct turns turns;               /* of flows with unequal shares; else none */
    struct frame_template *templates; /* of all sizes, by stream's place; NULL: there is one size */
    struct pace pace;
    uint64_t left;        /* frames yet to be sent, all streams; UINT64_MAX: until the stop ... */
    uint64_t burst;       /* ... and of each burst; 0: there are none */
    uint64_t bursts_left; /* behind the present one; UINT64_MAX: until the stop */
    uint64_t late_frames; /* of a burst: the most that were due at once beside the first */
    uint32_t count;       /* streams */
    struct sender_turn next;
    uint32_t cost; /* mean of a frame */
};

/* What came of one of a flow's streams: the one cache line that a frame in order touches. */
struct receiver_stream {
    struct sequence sequence;
    uint64_t frames;  /* delivered */
    uint64_t bytes;   /* theirs, in memory */
    uint32_t missing; /* numbers, in the stream's gaps */
    int64_t last_ns;
    int64_t stamp_ns; /* of the first frame of the last 64 numbers, or behind the last gap */
    struct flow_side *side;
} __attribute__((aligned(64)));
static_assert(sizeof(struct receiver_stream) == 64, "a stream is one cache line");

/* Where one stream is received: how the last frame began that was verified in full. One of the same
 * length that begins so, too, is of that stream, and only signature and fill are left to verify. */
struct receiver_verified {
    uint32_t length; /* in memory; 0: none came yet */
    const struct frame_expect *expect;
    uint8_t start[FRAME_START_MAX];
};

struct receiver {
    struct accounting accounting;
    struct frame_check check;
    struct receiver_verified verified;
    struct sequence_limit limit;     /* of its senders */
    struct receiver_stream *streams; /* by flow, and UDP source port within it */
    struct sequence_past *pasts;     /* the streams' */
    struct reordering *reorderings;  /* theirs, too ... */
    struct gap *gaps;                /* ... whose pages are touched where many frames are missing */
    struct delay_stats *delay_stats; /* the streams'; NULL: they are not measured */
    struct delay_stats_buckets *buckets; /* the flows' */
    bool sampled;                        /* two frames of LANE_SAMPLE_OF are measured, not all */
    uint8_t (*macs)[FRAME_MAC];          /* the flows' sources */
    /* By source rank, of all that there may be: number of a flow + 1; 0: none. Its pages are
     * touched as flows need them, so that few flows cost little. */
    uint16_t *flow_of;
    uint32_t count;   /* flows */
    uint32_t sources; /* UDP source ports a flow */
    uint16_t tag;     /* as on the wire, and so are */
    uint16_t rank;    /* the frames', FRAME_RANK_ALL where they go to all, ... */
    uint16_t own;     /* ... and the port's */
    uint64_t all;  /* frames that the port's queues get in a transfer; UINT64_MAX: not known ... */
    uint64_t left; /* ... less those that came by this queue */
};

/* A sound frame of ours. */
struct received {
    struct rte_mbuf *frame;
    struct receiver_stream *stream;
    uint32_t sequence;
    int32_t ahead;   /* of the number that was expected next; set where delays are measured */
    uint32_t length; /* in memory */
};

/* What one queue has got of a transfer, for the others: in a cache line of its own. */
struct queue_received {
    _Atomic uint64_t frames;
} __attribute__((aligned(64)));

/* Frames that wait to be sent on. The queue bridges a full send ring, nothing more. */
#define FORWARD_QUEUE 512u /* a power of two; port_device.c has buffers for it */
struct forward_entry {
    struct rte_mbuf *frame;
    uint32_t stream;
    uint32_t length; /* in memory */
};
struct forwarder {
    struct forward_entry *queue;
    uint32_t head; /* free-running */
    uint32_t tail;
};

enum lane_state { LANE_WAITS, LANE_SENDS, LANE_LISTENS, LANE_PLAYS /* ping-pong */ };

/* Where flows are so many that their times lie in no near cache, only two neighbours of each so
 * many frames are measured. */
#define LANE_SAMPLE_OF 128

struct dpdk_lane {
    struct lane lane; /* first: the worker's part */
    struct transport_port *port;
    struct port_queue *queue;
    /* Send what is due and return when more will be; receive a burst and return its length. */
    int64_t (*send)(struct dpdk_lane *lane, int64_t now_ns);
    uint32_t (*receive)(struct dpdk_lane *lane, int64_t now_ns);
    bool timing;   /* the window is open: frames are measured as they are received */
    bool responds; /* what is received may be a reason to send at once */
    struct frame_shape shape;
    uint32_t burst;         /* sent by one driver call, at most */
    uint32_t receive_burst; /* received by one */
    int64_t start_ns;
    struct sender sender;
    struct receiver receiver;
    struct forwarder forwarder;
    struct learning learning;
    struct frame_prober prober;
    struct pingpong_lane *pingpong; /* pingpong_lane.h; NULL: it plays none */
    int64_t look_gap_ns; /* its, where nothing tells that a frame has come: adaptive_poll.h */
    struct lane_size sizes[TRANSPORT_SIZES_MAX]; /* different ones */
    uint32_t size_count;
    uint8_t order[TRANSPORT_SIZES_MAX]; /* the phase's list, as places in `sizes` */
    uint32_t order_count;
    uint8_t size_of_length[FRAME_SIZE_MAX + 1]; /* LANE_NO_SIZE: not a length of this phase */
    struct queue_received *queues_received; /* queue 0's lane's. NULL: one queue, or no transfer */
    enum lane_state state;
    int64_t turn_ns; /* when the state may change */
    int64_t push_ns; /* when a kernel socket's ring is to be emptied; CLOCK_NEVER: it is */
    bool announced;
    bool started;     /* its worker polls it */
    int64_t asked_ns; /* the gateway, last */
    int64_t connecting_ns;
    uint64_t missing; /* frames that the load asked for and that were not sent */
};

/* Adds a stream's totals to the ends of the window that it has yet to pass. */
static inline void accounting_pass(const struct accounting *accounting, struct accounted *stream,
                                   struct flow_side *side, const struct flow_count *total)
{
    for (; stream->marks < accounting->marks; stream->marks++)
        flow_count_add(stream->marks == 0 ? &side->window.open : &side->window.close, total);
}

static inline void accounting_mark(struct accounting *accounting)
{
    accounting->marks++;
    accounting->marked = true;
    accounting->next = 0;
}

static inline bool prober_knows(const struct frame_prober *prober, uint16_t tag)
{
    return prober->answers && (tag == prober->tags[0] || tag == prober->tags[1]);
}

/* The same of a damaged frame, whose tag may have lost a bit: the load's tag differs in eight. */
static inline bool prober_resembles(const struct frame_prober *prober, uint16_t tag)
{
    return prober->answers && (__builtin_popcount(tag ^ prober->tags[0]) <= 1 ||
                               __builtin_popcount(tag ^ prober->tags[1]) <= 1);
}

/* What was sent just now may be the last for a while, and wait in a kernel socket's ring until the
 * next is sent: it is looked after. */
#define LANE_PUSH_NS NS_PER_MS
static inline void lane_push_later(struct dpdk_lane *lane, int64_t now_ns)
{
    if (lane->port->iface.ring_count > 0)
        lane->push_ns = now_ns + LANE_PUSH_NS;
}

/* The template of a stream's frames of one of several sizes. */
static inline const struct frame_template *
lane_template(const struct dpdk_lane *lane, const struct sender_stream *stream, uint8_t size)
{
    return lane->sender.templates == NULL
               ? &stream->template
               : &lane->sender.templates[(size_t)stream->place * lane->size_count + size];
}

/* Whether headers and what of the signature differs by flow end within LANE_SHORT bytes: all but
 * IPv6's do. */
#define LANE_SHORT 64u
static inline bool lane_short(const struct dpdk_lane *lane)
{
    return lane->shape.payload + offsetof(struct signature, sequence) <= LANE_SHORT;
}

/* Writes a stream's next frame over a buffer that holds the fill behind the first `head` bytes of
 * its template. */
static __rte_always_inline void lane_write(const struct dpdk_lane *lane, uint8_t *frame,
                                           struct sender_stream *stream,
                                           const struct frame_template *template, size_t head,
                                           const struct signature_time *time)
{
    memcpy(frame, template, head);
    signature_stamp((struct signature *)(frame + lane->shape.payload), (uint32_t)stream->sequence++,
                    time, stream->base + time->sum);
}

#endif
