/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forwarding in a chain: a delivered frame becomes the next hop's, in the buffer in which it
 * came: headers and signature are written over it, the fill is the same on every hop. Frames are
 * sent on as long as the lane lives, also after the phase's stop, so that none is lost at the end;
 * what finds the queue full (the send ring takes no more) is a drop in this host.
 */
#include "lane.h"

#include <rte_ethdev.h>

/* Makes the queue's first `count` frames the next hop's. */
static __rte_always_inline void rewrite(struct dpdk_lane *lane, struct rte_mbuf **frames,
                                        uint32_t count, size_t head, int64_t now_ns)
{
    struct forwarder *forwarder = &lane->forwarder;
    struct signature_time time = signature_time(now_ns - lane->start_ns);

    for (uint32_t i = 0; i < count; i++) {
        struct forward_entry *entry = &forwarder->queue[(forwarder->head + i) % FORWARD_QUEUE];
        struct sender_stream *stream = &lane->sender.streams[entry->stream];

        frames[i] = entry->frame;
        lane_write(lane, rte_pktmbuf_mtod(entry->frame, uint8_t *), stream,
                   lane_template(lane, stream, entry->size), head, &time);
    }
}

/* Takes `sent` of `count` rewritten frames off the queue; the others' numbers are used again. */
static void account(struct dpdk_lane *lane, uint32_t sent, uint32_t count, int64_t now_ns)
{
    struct forwarder *forwarder = &lane->forwarder;
    struct flow_side *side = lane->sender.streams[0].side;

    for (uint32_t i = 0; i < count; i++) {
        struct forward_entry *entry = &forwarder->queue[(forwarder->head + i) % FORWARD_QUEUE];

        if (i >= sent) {
            lane->sender.streams[entry->stream].sequence--;
            continue;
        }
        side->live.frame_bytes += lane->sizes[entry->size].frame_bytes;
        side->live.payload_bytes += lane->sizes[entry->size].payload_bytes;
    }
    forwarder->head += sent;
    lane->lane.request.count->send_refused += count - sent;
    if (sent == 0)
        return;
    side->live.frames += sent;
    side->last_ns = now_ns;
    if (side->first_ns == 0)
        side->first_ns = now_ns;
}

int64_t forwarder_send(struct dpdk_lane *lane, int64_t now_ns)
{
    struct forwarder *forwarder = &lane->forwarder;
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint32_t count = RTE_MIN(forwarder->tail - forwarder->head, lane->burst);

    if (count == 0)
        return CLOCK_NEVER;
    if (lane_short(lane))
        rewrite(lane, frames, count, LANE_SHORT, now_ns);
    else
        rewrite(lane, frames, count, FRAME_TEMPLATE, now_ns);
    account(lane, rte_eth_tx_burst(lane->port->id, lane->send_queue, frames, (uint16_t)count),
            count, now_ns);
    return forwarder->head == forwarder->tail ? CLOCK_NEVER : now_ns;
}

void forwarder_drop(struct dpdk_lane *lane)
{
    struct forwarder *forwarder = &lane->forwarder;

    for (; forwarder->head != forwarder->tail; forwarder->head++) {
        rte_pktmbuf_free(forwarder->queue[forwarder->head % FORWARD_QUEUE].frame);
        lane->queue->forward_dropped++;
    }
}
