/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending, run to completion: as many frames as are due, a burst at most, taken from a pool whose
 * buffers all hold the phase's frame already. One body, of which the compiler makes three
 * variants:
 *
 *     one    one stream of one size: 12 bytes are written a frame
 *     many   several streams of one size: and their headers
 *     mixed  several sizes: and the buffer's length
 *
 * A frame that the driver does not take never was: its sequence number is used again.
 */
#include "lane.h"

#include <rte_ethdev.h>
#include <rte_mempool.h>

enum variant { ONE, MANY, MIXED };

/* Buffers of our pools have no private part and keep their headroom. */
static inline uint8_t *data_of(struct rte_mbuf *frame)
{
    return (uint8_t *)(frame + 1) + RTE_PKTMBUF_HEADROOM;
}

static inline uint8_t size_at(const struct dpdk_lane *lane, uint32_t turn, enum variant variant)
{
    return variant == MIXED ? lane->order[turn] : 0;
}

/* Writes the frames of the stream whose turn it is, and of those that follow; returns their cost
 * to the pace. */
static __rte_always_inline uint64_t fill_many(struct dpdk_lane *lane, struct rte_mbuf **frames,
                                              uint32_t count, int64_t now_ns, enum variant variant)
{
    struct sender *sender = &lane->sender;
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    uint64_t cost = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct sender_stream *stream = &sender->streams[sender->at];
        uint8_t which = size_at(lane, stream->turn, variant);
        const struct lane_size *size = &lane->sizes[which];

        lane_write(lane, data_of(frames[i]), stream, which, &time);
        lane_count(stream->side, size, now_ns);
        cost += size->cost;
        if (variant == MIXED) {
            frames[i]->pkt_len = frames[i]->data_len = size->length;
            stream->turn = (uint16_t)(stream->turn + 1u < lane->order_count ? stream->turn + 1 : 0);
        }
        sender->at = sender->at + 1 < sender->count ? sender->at + 1 : 0;
    }
    return cost;
}

/* Undoes fill_many for the last `count` frames; returns their cost. */
static uint64_t unfill_many(struct dpdk_lane *lane, uint32_t count, enum variant variant)
{
    struct sender *sender = &lane->sender;
    uint64_t cost = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct sender_stream *stream;
        const struct lane_size *size;

        sender->at = (sender->at > 0 ? sender->at : sender->count) - 1;
        stream = &sender->streams[sender->at];
        if (variant == MIXED)
            stream->turn = (uint16_t)((stream->turn > 0 ? stream->turn : lane->order_count) - 1);
        size = &lane->sizes[size_at(lane, stream->turn, variant)];
        stream->sequence--;
        lane_uncount(stream->side, size);
        cost += size->cost;
    }
    return cost;
}

static inline void fill_one(struct dpdk_lane *lane, struct rte_mbuf **frames, uint32_t count,
                            int64_t now_ns)
{
    struct sender_stream *stream = lane->sender.streams;
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    uint32_t sequence = (uint32_t)stream->sequence;
    uint32_t base = stream->base + time.sum;
    uint32_t offset = lane->shape.payload;

    for (uint32_t i = 0; i < count; i++)
        signature_stamp((struct signature *)(data_of(frames[i]) + offset), sequence++, &time, base);
}

/* Accounts `count` frames of the only stream and size; returns their cost. */
static inline uint64_t count_one(struct dpdk_lane *lane, uint32_t count, int64_t now_ns)
{
    struct sender_stream *stream = lane->sender.streams;
    struct flow_side *side = stream->side;

    stream->sequence += count;
    side->live.frames += count;
    side->live.frame_bytes += (uint64_t)count * lane->sizes[0].frame_bytes;
    side->live.payload_bytes += (uint64_t)count * lane->sizes[0].payload_bytes;
    if (count > 0)
        side->last_ns = now_ns;
    if (side->first_ns == 0)
        side->first_ns = side->last_ns;
    return (uint64_t)count * lane->sizes[0].cost;
}

static __rte_always_inline int64_t send_due(struct dpdk_lane *lane, int64_t now_ns,
                                            enum variant variant)
{
    struct sender *sender = &lane->sender;
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint32_t due = pace_allow(&sender->pace, now_ns, sender->cost, lane->burst);
    uint64_t cost = 0;
    uint32_t sent;

    if (due > sender->left)
        due = (uint32_t)sender->left;
    if (due == 0 || rte_mempool_get_bulk(sender->pool, (void **)frames, due) != 0)
        return pace_wake(&sender->pace, sender->cost);
    if (variant == ONE)
        fill_one(lane, frames, due, now_ns);
    else
        cost = fill_many(lane, frames, due, now_ns, variant);
    sent = rte_eth_tx_burst(lane->port->id, lane->send_queue, frames, (uint16_t)due);
    if (unlikely(sent < due)) {
        rte_mempool_put_bulk(sender->pool, (void **)(frames + sent), due - sent);
        lane->lane.request.count->send_refused += due - sent;
        if (variant != ONE)
            cost -= unfill_many(lane, due - sent, variant);
    }
    if (variant == ONE)
        cost = count_one(lane, sent, now_ns);
    sender->left -= sender->left != UINT64_MAX ? sent : 0;
    pace_spend(&sender->pace, cost);
    return pace_wake(&sender->pace, sender->cost);
}

static int64_t send_one(struct dpdk_lane *lane, int64_t now_ns)
{
    return send_due(lane, now_ns, ONE);
}

static int64_t send_many(struct dpdk_lane *lane, int64_t now_ns)
{
    return send_due(lane, now_ns, MANY);
}

static int64_t send_mixed(struct dpdk_lane *lane, int64_t now_ns)
{
    return send_due(lane, now_ns, MIXED);
}

int64_t (*sender_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t)
{
    if (lane->size_count > 1)
        return send_mixed;
    /* Whoever received our buffer itself may have rewritten its headers (a forwarder). */
    return lane->sender.count > 1 || lane->port->by_reference ? send_many : send_one;
}

int64_t sender_wait(struct dpdk_lane *lane, int64_t now_ns)
{
    (void)now_ns;
    return lane->start_ns;
}

int64_t sender_rest(struct dpdk_lane *lane, int64_t now_ns)
{
    (void)lane;
    (void)now_ns;
    return CLOCK_NEVER;
}

void sender_intended(struct dpdk_lane *lane, int64_t end_ns)
{
    struct sender *sender = &lane->sender;
    uint64_t missing = sender->pace.given_up + pace_due(&sender->pace, end_ns - 1, sender->cost);

    if (lane->lane.request.phase->traffic != TRAFFIC_STREAM)
        missing = sender->left;
    for (uint32_t i = 0; i < sender->count; i++)
        sender->streams[i].side->intended = sender->streams[i].side->live.frames;
    /* In turn, as they would have been sent. */
    for (uint32_t i = 0; i < sender->count; i++) {
        struct sender_stream *stream = &sender->streams[(sender->at + i) % sender->count];

        stream->side->intended += missing / sender->count + (i < missing % sender->count);
    }
}
