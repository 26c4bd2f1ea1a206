/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A queue's share of one phase. lane.c makes it and keeps its times; tx.c, rx.c and forward.c are
 * its hot paths, each with variants that are chosen once, in prepare.
 */
#ifndef ENGINE_DPDK_LANE_H
#define ENGINE_DPDK_LANE_H

#include "frame.h"
#include "pace.h"
#include "port.h"
#include "sequence.h"
#include "transport.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

/* One of a phase's different sizes. */
struct lane_size {
    uint32_t frame_bytes;   /* with FCS */
    uint32_t payload_bytes; /* behind the headers */
    uint32_t cost;          /* to the pace: bits at layer 1, or 1 when the load is in frames/s */
    uint16_t length;        /* in memory */
};

#define LANE_NO_SIZE 0xff

/* What a flow sends from one UDP source port, with a sequence of its own. */
struct sender_stream {
    uint64_t sequence;                      /* of the next frame */
    const struct frame_template *templates; /* one for each different size */
    struct flow_side *side;
    uint32_t base;   /* signature_base() */
    uint16_t turn;   /* place in the phase's list of sizes */
    uint16_t source; /* UDP source port, from 0 */
};

struct sender {
    struct sender_stream *streams; /* in a seeded random order: the order of sending */
    struct frame_template *templates;
    struct rte_mempool *pool;
    struct pace pace;
    uint64_t left;  /* frames yet to be sent, all streams; UINT64_MAX: until the stop */
    uint32_t count; /* streams */
    uint32_t at;    /* whose turn it is */
    uint32_t cost;  /* mean of a frame */
};

struct receiver_flow {
    uint16_t src; /* as on the wire */
    uint8_t mac[FRAME_MAC];
    struct flow_side *side;
    struct sequence *streams; /* by UDP source port */
};

struct receiver {
    struct frame_check check;
    struct receiver_flow *flows;
    struct sequence *streams;
    uint32_t *slots;  /* open addressing by source rank: index + 1 of a flow, 0: none */
    uint32_t mask;    /* slots - 1, a power of two at least twice as many as flows */
    uint32_t count;   /* flows */
    uint32_t sources; /* UDP source ports a flow */
    uint16_t tag;     /* as on the wire, and so is */
    uint16_t rank;
    uint64_t all;  /* frames that the port's queues get in a transfer; UINT64_MAX: not known ... */
    uint64_t left; /* ... less those that came by this queue */
};

/* What one queue has got of a transfer, for the others: in a cache line of its own. */
struct lane_taken {
    _Atomic uint64_t frames;
} __attribute__((aligned(64)));

/* Frames that wait to be sent on. The queue bridges a full send ring, nothing more. */
#define FORWARD_QUEUE 512u /* a power of two, less than half of the receive pool */
struct forward_entry {
    struct rte_mbuf *frame;
    uint32_t stream;
    uint8_t size;
};
struct forwarder {
    struct forward_entry *queue;
    uint32_t head; /* free-running */
    uint32_t tail;
};

enum lane_state { LANE_WAITS, LANE_SENDS, LANE_LISTENS };

struct dpdk_lane {
    struct lane lane; /* first: the worker's part */
    struct transport_port *port;
    struct port_queue *queue;
    uint16_t send_queue; /* DPDK's, for frames of this lane's pool */
    /* Send what is due and return when more will be; receive a burst and return its length. */
    int64_t (*send)(struct dpdk_lane *lane, int64_t now_ns);
    uint32_t (*receive)(struct dpdk_lane *lane, int64_t now_ns);
    struct frame_shape shape;
    uint32_t burst;         /* sent by one driver call, at most */
    uint32_t receive_burst; /* received by one */
    int64_t start_ns;
    struct sender sender;
    struct receiver receiver;
    struct forwarder forwarder;
    struct lane_size sizes[TRANSPORT_SIZES_MAX]; /* different ones */
    uint32_t size_count;
    uint8_t order[TRANSPORT_SIZES_MAX]; /* the phase's list, as places in `sizes` */
    uint32_t order_count;
    uint8_t size_of_length[FRAME_SIZE_MAX + 1]; /* LANE_NO_SIZE: not a length of this phase */
    struct lane_taken *taken; /* by queue; the leader's. NULL: one queue, or no transfer */
    enum lane_state state;
    int64_t turn_ns; /* when the state may change */
    unsigned pool;   /* of the queue's, which is taken */
    bool built;
    bool announced;
    int64_t asked_ns; /* the gateway, last */
    int64_t settling_ns;
};

/* tx.c: the variant for this lane's streams and sizes; before the start; after the stop. */
int64_t (*sender_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t);
int64_t sender_wait(struct dpdk_lane *lane, int64_t now_ns);
int64_t sender_rest(struct dpdk_lane *lane, int64_t now_ns);
/* Accounts what the load asked for until `end_ns` and was not sent. */
void sender_intended(struct dpdk_lane *lane, int64_t end_ns);

/* rx.c: the variant for this lane's header kind and role. */
uint32_t (*receiver_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t);
/* Makes flows[index] known by its source rank. */
void receiver_add(struct receiver *receiver, uint32_t index);

/* forward.c. */
bool forwarder_take(struct dpdk_lane *lane, const struct forward_entry *entry);
int64_t forwarder_send(struct dpdk_lane *lane, int64_t now_ns);
void forwarder_drop(struct dpdk_lane *lane);

/* lane.c: the functions of the transport's table. */
int lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err);
int lane_settle(struct lane *lane, int64_t now_ns, struct err *err);
void lane_start(struct lane *lane, int64_t now_ns);
int64_t lane_poll(struct lane *lane, int64_t now_ns);
void lane_idle(struct transport_port *port, int64_t now_ns);
unsigned lane_measure(struct lane *lane, const struct lane_flow *flow, struct measure *out,
                      unsigned room);
void lane_finish(struct lane *lane);

/* Accounts one frame sent or first received. */
static inline void lane_count(struct flow_side *side, const struct lane_size *size, int64_t now_ns)
{
    side->live.frames++;
    side->live.frame_bytes += size->frame_bytes;
    side->live.payload_bytes += size->payload_bytes;
    side->last_ns = now_ns;
    if (side->first_ns == 0)
        side->first_ns = now_ns;
}

static inline void lane_uncount(struct flow_side *side, const struct lane_size *size)
{
    side->live.frames--;
    side->live.frame_bytes -= size->frame_bytes;
    side->live.payload_bytes -= size->payload_bytes;
    if (side->live.frames == 0)
        side->first_ns = 0;
}

/* Writes a stream's next frame of a size over a buffer that holds the fill behind its template. */
static inline void lane_write(struct dpdk_lane *lane, uint8_t *frame, struct sender_stream *stream,
                              uint8_t size, const struct signature_time *time)
{
    memcpy(frame, &stream->templates[size], FRAME_TEMPLATE);
    signature_stamp((struct signature *)(frame + lane->shape.payload), (uint32_t)stream->sequence++,
                    time, stream->base + time->sum);
}

#endif
