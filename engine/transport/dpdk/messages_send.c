/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of messages, answers and end marks. Those of one message leave one behind the other, in
 * bursts, at the port's line rate (as fast as the driver takes them where that is not known); a
 * burst is shared by all channels that have something to send.
 */
#include "messages_send.h"

#include <rte_ethdev.h>

/* One frame of a burst: kept apart, because the buffer is the driver's once it has it. */
struct entry {
    struct peer_channel *channel;
    uint32_t segment;
    uint32_t length; /* in memory */
};

struct burst {
    struct rte_mbuf *frames[PORT_BURST_MAX];
    struct entry entries[PORT_BURST_MAX];
    uint32_t count;
};

static bool all_sent(const struct tx_message *out)
{
    return out->next == out->segments;
}

/* Whether a frame of it can go now: of a message, else a mark or its end mark. */
static bool has_more(const struct peer_channel *channel)
{
    return !all_sent(&channel->out) || channel->out.mark || channel->out.end;
}

static const struct frame_template *header_of(const struct dpdk_lane *lane,
                                              struct peer_channel *channel, uint32_t length)
{
    struct frame_shape shape = lane->shape;

    if (length == channel->full.length)
        return &channel->full.template;
    if (length != channel->last.length) {
        shape.tag = be16toh(channel->tags[0]);
        frame_template(&channel->last.template, &shape, channel->ends, 0, length + FRAME_FCS);
        channel->last.length = length;
    }
    return &channel->last.template;
}

/* Takes the channel's next frame out of it. */
static struct entry next_entry(struct peer_channel *channel)
{
    struct tx_message *out = &channel->out;

    if (!all_sent(out))
        return (struct entry){channel, out->next,
                              message_length(&channel->segmentation, out->bytes, out->next++)};
    if (out->mark) {
        out->mark = false;
        return (struct entry){channel, SEGMENT_MARK, channel->segmentation.least};
    }
    out->end = false;
    return (struct entry){channel, SEGMENT_END, channel->segmentation.least};
}

/* Puts it back: the driver did not take it. */
static void take_back(const struct entry *entry)
{
    if (entry->segment == SEGMENT_END)
        entry->channel->out.end = true;
    else if (entry->segment == SEGMENT_MARK)
        entry->channel->out.mark = true;
    else
        entry->channel->out.next--;
}

static void write_frame(const struct dpdk_lane *lane, const struct entry *entry,
                        struct rte_mbuf *buffer, const struct signature_time *time)
{
    struct peer_channel *channel = entry->channel;
    const struct tx_message *out = &channel->out;
    bool marks = entry->segment >= SEGMENT_BARRIER;
    uint8_t *frame = rte_pktmbuf_mtod(buffer, uint8_t *);
    uint8_t *signature = frame + lane->shape.payload;

    memcpy(frame, header_of(lane, channel, entry->length), FRAME_TEMPLATE);
    signature_stamp((struct signature *)signature,
                    (uint32_t)(entry->segment == SEGMENT_MARK ? out->next_number : out->number),
                    time, channel->base + time->sum);
    segment_write((struct segment *)(signature + SIGNATURE_BYTES),
                  out->says != 0 && !marks ? out->says : entry->segment);
    buffer->data_len = (uint16_t)entry->length;
    buffer->pkt_len = entry->length;
}

/* A destination that has answered the end mark expects nothing more of the flow. */
static void end_sent(struct dpdk_lane *lane, struct peer_channel *channel)
{
    if (channel->source || channel->ended)
        return;
    channel->ended = true;
    lane->receiver.left--;
}

static void count_segment(const struct entry *entry, int64_t now_ns)
{
    const struct peer_channel *channel = entry->channel;
    struct flow_side *side = channel->sent;

    side->live.frames++;
    side->live.frame_bytes += entry->length + FRAME_FCS;
    side->live.payload_bytes +=
        message_part(&channel->segmentation, channel->out.bytes, entry->segment);
    side->live.messages += entry->segment + 1 == channel->out.segments;
    side->intended = side->live.frames;
    side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
    side->last_ns = now_ns;
}

static void count_frame(struct dpdk_lane *lane, const struct entry *entry, int64_t now_ns)
{
    struct peer_channel *channel = entry->channel;
    bool load = entry->segment < SEGMENT_BARRIER && channel->out.says == 0;

    channel->sent_ns = now_ns;
    if (!channel->source || !load)
        lane->lane.request.count->probes_sent++;
    if (load)
        count_segment(entry, now_ns);
    if (entry->segment == SEGMENT_END)
        end_sent(lane, channel);
    else if (lane->messages->schedule != NULL && entry->segment + 1 == channel->out.segments)
        lane->messages->schedule->message_sent(lane, channel);
}

/* Counts what the driver took, and puts back the rest. */
static void settle_burst(struct dpdk_lane *lane, const struct burst *burst, uint32_t sent,
                         int64_t now_ns)
{
    uint64_t cost = 0;

    for (uint32_t i = 0; i < sent; i++) {
        cost += 8 * (uint64_t)(burst->entries[i].length + FRAME_FCS + FRAME_OVERHEAD_L1);
        count_frame(lane, &burst->entries[i], now_ns);
    }
    for (uint32_t i = burst->count; i-- > sent;) {
        take_back(&burst->entries[i]);
        messages_enqueue(lane, burst->entries[i].channel);
    }
    pace_spend(&lane->sender.pace, cost);
    lane->lane.request.count->send_refused += burst->count - sent;
    if (sent > 0)
        lane->lane.arrived_ns = now_ns; /* whoever answers is not silent */
}

static void dequeue(struct messages *messages)
{
    messages->queue[messages->head]->queued = false;
    messages->head = (messages->head + 1) % messages->count;
    messages->queued--;
}

/* The channels in turn, each with as much as it has: a message's frames are not spread out by
 * others that begin meanwhile. */
static void fill_burst(struct dpdk_lane *lane, struct burst *burst, uint32_t most, int64_t now_ns)
{
    struct messages *messages = lane->messages;
    struct signature_time time = signature_time(now_ns - lane->start_ns);

    while (burst->count < most && messages->queued > 0) {
        struct peer_channel *channel = messages->queue[messages->head];

        for (; burst->count < most && has_more(channel); burst->count++) {
            struct entry *entry = &burst->entries[burst->count];

            *entry = next_entry(channel);
            write_frame(lane, entry, burst->frames[burst->count], &time);
        }
        dequeue(messages);
        if (has_more(channel))
            messages_enqueue(lane, channel);
    }
}

/* Frames that wait to be sent, `most` at most. */
static uint32_t waiting(const struct messages *messages, uint32_t most)
{
    uint32_t frames = 0;

    for (uint32_t i = 0; i < messages->queued && frames < most; i++) {
        const struct peer_channel *channel =
            messages->queue[(messages->head + i) % messages->count];

        frames += channel->out.segments - channel->out.next + channel->out.mark + channel->out.end;
    }
    return RTE_MIN(frames, most);
}

static int64_t send_burst(struct dpdk_lane *lane, int64_t now_ns)
{
    uint32_t cost = 8 * (lane->messages->channels[0].full.length + FRAME_FCS + FRAME_OVERHEAD_L1);
    struct pace *pace = &lane->sender.pace;
    uint32_t due = waiting(lane->messages, pace_allow(pace, now_ns, cost, lane->burst));
    struct burst burst = {.count = 0};
    uint32_t sent;

    if (due == 0 || rte_mempool_get_bulk(lane->sender.pool, (void **)burst.frames, due) != 0)
        return RTE_MAX(pace_wake(pace, cost), now_ns);
    fill_burst(lane, &burst, due, now_ns);
    rte_mempool_put_bulk(lane->sender.pool, (void **)(burst.frames + burst.count),
                         due - burst.count);
    sent = rte_eth_tx_burst(lane->port->id, lane->send_queue, burst.frames, (uint16_t)burst.count);
    settle_burst(lane, &burst, sent, now_ns);
    lane_push_later(lane, now_ns);
    rte_mempool_put_bulk(lane->sender.pool, (void **)(burst.frames + sent), burst.count - sent);
    return lane->messages->queued > 0 ? RTE_MAX(pace_wake(pace, cost), now_ns) : CLOCK_NEVER;
}

int64_t messages_flush(struct dpdk_lane *lane, int64_t now_ns)
{
    struct messages *messages = lane->messages;

    while (messages->queued > 0 && !has_more(messages->queue[messages->head]))
        dequeue(messages); /* it was given up */
    return messages->queued > 0 ? send_burst(lane, now_ns) : CLOCK_NEVER;
}

int64_t messages_send(struct dpdk_lane *lane, int64_t now_ns)
{
    int64_t look_ns = messages_look(lane, now_ns);
    int64_t send_ns = messages_flush(lane, now_ns);

    return send_ns < look_ns ? send_ns : look_ns;
}
