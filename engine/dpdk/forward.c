/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forwarding in a chain: a delivered frame becomes the next hop's, in the buffer in which it
 * came: headers and signature are written over it, the fill is the same on every hop. Frames are
 * sent on as long as the lane lives, also after the phase's stop, so that none is lost at the end;
 * what finds the queue full (the send ring takes no more) is a drop in this host.
 */
#include "lane.h"

#include <rte_ethdev.h>

bool forwarder_take(struct dpdk_lane *lane, const struct forward_entry *entry)
{
    struct forwarder *forwarder = &lane->forwarder;

    lane->sender.streams[entry->stream].side->intended++;
    if (forwarder->tail - forwarder->head == FORWARD_QUEUE) {
        lane->queue->forward_dropped++;
        return false;
    }
    forwarder->queue[forwarder->tail++ % FORWARD_QUEUE] = *entry;
    return true;
}

int64_t forwarder_send(struct dpdk_lane *lane, int64_t now_ns)
{
    struct forwarder *forwarder = &lane->forwarder;
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint32_t count = RTE_MIN(forwarder->tail - forwarder->head, lane->burst);
    uint32_t sent;

    if (count == 0)
        return CLOCK_NEVER;
    for (uint32_t i = 0; i < count; i++) {
        struct forward_entry *entry = &forwarder->queue[(forwarder->head + i) % FORWARD_QUEUE];

        frames[i] = entry->frame;
        lane_write(lane, rte_pktmbuf_mtod(entry->frame, uint8_t *),
                   &lane->sender.streams[entry->stream], entry->size, &time);
    }
    sent = rte_eth_tx_burst(lane->port->id, lane->send_queue, frames, (uint16_t)count);
    for (uint32_t i = 0; i < count; i++) {
        struct forward_entry *entry = &forwarder->queue[(forwarder->head + i) % FORWARD_QUEUE];
        struct sender_stream *stream = &lane->sender.streams[entry->stream];

        if (i < sent)
            lane_count(stream->side, &lane->sizes[entry->size], now_ns);
        else
            stream->sequence--;
    }
    forwarder->head += sent;
    lane->lane.request.count->send_refused += count - sent;
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
