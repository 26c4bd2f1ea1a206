/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forwarding in a chain: a delivered frame becomes the next hop's, in the buffer in which it
 * came: headers and signature are written over it, the fill is the same on every hop. Frames are
 * sent on from the phase's start as long as the lane lives, also after the stop, so that none is
 * lost at the end. What the driver does not take waits in a queue, and whatever comes meanwhile
 * behind it; what finds the queue full is a drop in this host.
 */
#include "forward.h"

#include <rte_ethdev.h>

/* Makes frames the next hop's; returns their bytes in memory. */
static __rte_always_inline uint64_t rewrite(struct dpdk_lane *lane,
                                            const struct forward_entry *entries,
                                            struct rte_mbuf **frames, uint32_t count, size_t head,
                                            int64_t now_ns)
{
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    bool sizes = lane->sender.templates != NULL;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct forward_entry *entry = &entries[i];
        struct sender_stream *stream = &lane->sender.streams[entry->stream];
        const struct frame_template *template = &stream->template;

        if (unlikely(sizes))
            template = lane_template(lane, stream, lane->size_of_length[entry->length]);
        frames[i] = entry->frame;
        bytes += entry->length;
        lane_write(lane, rte_pktmbuf_mtod(entry->frame, uint8_t *), stream, template, head, &time);
    }
    return bytes;
}

/* The driver did not take these: their numbers are used again. Returns their bytes. */
static uint64_t take_back(struct dpdk_lane *lane, const struct forward_entry *entries,
                          uint32_t count)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        lane->sender.streams[entries[i].stream].sequence--;
        bytes += entries[i].length;
    }
    lane->lane.request.count->send_refused += count;
    return bytes;
}

static void count_sent(struct dpdk_lane *lane, uint32_t frames, uint64_t bytes, int64_t now_ns)
{
    struct flow_side *side = lane->sender.streams[0].side;

    side->live.frames += frames;
    side->live.frame_bytes += bytes + (uint64_t)frames * FRAME_FCS;
    side->live.payload_bytes += bytes - (uint64_t)frames * lane->shape.payload;
    side->last_ns = now_ns;
    if (side->first_ns == 0)
        side->first_ns = now_ns;
}

/* Sends as many as the driver takes; returns how many. */
static uint32_t send_burst(struct dpdk_lane *lane, const struct forward_entry *entries,
                           uint32_t count, int64_t now_ns)
{
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint64_t bytes;
    uint32_t sent;

    if (lane_short(lane))
        bytes = rewrite(lane, entries, frames, count, LANE_SHORT, now_ns);
    else
        bytes = rewrite(lane, entries, frames, count, FRAME_TEMPLATE, now_ns);
    sent = rte_eth_tx_burst(lane->port->id, lane->queue->pass, frames, (uint16_t)count);
    if (unlikely(sent < count))
        bytes -= take_back(lane, entries + sent, count - sent);
    if (sent > 0) {
        count_sent(lane, sent, bytes, now_ns);
        lane_push_later(lane, now_ns);
    }
    return sent;
}

/* Queues delivered frames; those that find no room are dropped. */
static void enqueue(struct dpdk_lane *lane, const struct forward_entry *entries, uint32_t count)
{
    struct forwarder *forwarder = &lane->forwarder;
    uint32_t room = FORWARD_QUEUE - (forwarder->tail - forwarder->head);

    for (uint32_t i = 0; i < count; i++) {
        if (i < room) {
            forwarder->queue[forwarder->tail++ % FORWARD_QUEUE] = entries[i];
        } else {
            lane->queue->forward_dropped++;
            rte_pktmbuf_free(entries[i].frame);
        }
    }
}

void forwarder_pass(struct dpdk_lane *lane, const struct forward_entry *entries, uint32_t count,
                    int64_t now_ns)
{
    const struct forwarder *forwarder = &lane->forwarder;
    bool sends = lane->send == forwarder_send; /* not before the start: the next hop may not be */
    uint32_t sent = 0;

    lane->sender.streams[0].side->intended += count;
    if (count > 0 && sends && forwarder->head == forwarder->tail)
        sent = send_burst(lane, entries, RTE_MIN(count, lane->burst), now_ns);
    enqueue(lane, entries + sent, count - sent);
}

int64_t forwarder_send(struct dpdk_lane *lane, int64_t now_ns)
{
    struct forwarder *forwarder = &lane->forwarder;
    uint32_t waiting = forwarder->tail - forwarder->head;
    uint32_t head = forwarder->head % FORWARD_QUEUE;
    uint32_t count = RTE_MIN(RTE_MIN(waiting, lane->burst), FORWARD_QUEUE - head);

    if (waiting == 0)
        return CLOCK_NEVER;
    forwarder->head += send_burst(lane, &forwarder->queue[head], count, now_ns);
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
