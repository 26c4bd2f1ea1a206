/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of messages, answers and end marks. Those of one message leave one behind the other, in
 * bursts, at the port's line rate (as fast as the driver takes them where that is not known); a
 * burst is shared by all exchanges that have something to send.
 */
#include "messages_send.h"

#include <rte_ethdev.h>

/* One frame of a burst: kept apart, because the buffer is the driver's once it has it. */
struct entry {
    struct exchange *exchange;
    uint32_t segment;
    uint32_t length; /* in memory */
};

struct burst {
    struct rte_mbuf *frames[PORT_BURST_MAX];
    struct entry entries[PORT_BURST_MAX];
    uint32_t count;
};

static bool all_sent(const struct outgoing *out)
{
    return out->next == out->segments;
}

/* Whether a frame of it can go now: of a message, else a mark or its end mark. */
static bool has_more(const struct exchange *exchange)
{
    return !all_sent(&exchange->out) || exchange->out.mark || exchange->out.end;
}

static const struct frame_template *heading_of(const struct dpdk_lane *lane,
                                               struct exchange *exchange, uint32_t length)
{
    struct frame_shape shape = lane->shape;

    if (length == exchange->full.length)
        return &exchange->full.template;
    if (length != exchange->last.length) {
        shape.tag = be16toh(exchange->tags[0]);
        frame_template(&exchange->last.template, &shape, exchange->ends, 0, length + FRAME_FCS);
        exchange->last.length = length;
    }
    return &exchange->last.template;
}

/* Takes the exchange's next frame out of it. */
static struct entry next_entry(struct exchange *exchange)
{
    struct outgoing *out = &exchange->out;

    if (!all_sent(out))
        return (struct entry){exchange, out->next,
                              message_length(&exchange->cut, out->bytes, out->next++)};
    if (out->mark) {
        out->mark = false;
        return (struct entry){exchange, SEGMENT_MARK, exchange->cut.least};
    }
    out->end = false;
    return (struct entry){exchange, SEGMENT_END, exchange->cut.least};
}

/* Puts it back: the driver did not take it. */
static void take_back(const struct entry *entry)
{
    if (entry->segment == SEGMENT_END)
        entry->exchange->out.end = true;
    else if (entry->segment == SEGMENT_MARK)
        entry->exchange->out.mark = true;
    else
        entry->exchange->out.next--;
}

static void write_frame(const struct dpdk_lane *lane, const struct entry *entry,
                        struct rte_mbuf *buffer, const struct signature_time *time)
{
    struct exchange *exchange = entry->exchange;
    const struct outgoing *out = &exchange->out;
    bool marks = entry->segment >= SEGMENT_MEETING;
    uint8_t *frame = rte_pktmbuf_mtod(buffer, uint8_t *);
    uint8_t *signature = frame + lane->shape.payload;

    memcpy(frame, heading_of(lane, exchange, entry->length), FRAME_TEMPLATE);
    signature_stamp((struct signature *)signature,
                    (uint32_t)(entry->segment == SEGMENT_MARK ? out->next_number : out->number),
                    time, exchange->base + time->sum);
    segment_write((struct segment *)(signature + SIGNATURE_BYTES),
                  out->says != 0 && !marks ? out->says : entry->segment);
    buffer->data_len = (uint16_t)entry->length;
    buffer->pkt_len = entry->length;
}

/* A destination that has answered the end mark expects nothing more of the flow. */
static void end_sent(struct dpdk_lane *lane, struct exchange *exchange)
{
    if (exchange->source || exchange->ended)
        return;
    exchange->ended = true;
    lane->receiver.left--;
}

static void count_segment(const struct entry *entry, int64_t now_ns)
{
    const struct exchange *exchange = entry->exchange;
    struct flow_side *side = exchange->sent;

    side->live.frames++;
    side->live.frame_bytes += entry->length + FRAME_FCS;
    side->live.payload_bytes += message_part(&exchange->cut, exchange->out.bytes, entry->segment);
    side->live.messages += entry->segment + 1 == exchange->out.segments;
    side->intended = side->live.frames;
    side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
    side->last_ns = now_ns;
}

static void count_frame(struct dpdk_lane *lane, const struct entry *entry, int64_t now_ns)
{
    struct exchange *exchange = entry->exchange;
    bool load = entry->segment < SEGMENT_MEETING && exchange->out.says == 0;

    exchange->sent_ns = now_ns;
    if (!exchange->source || !load)
        lane->lane.request.count->probes_sent++;
    if (load)
        count_segment(entry, now_ns);
    if (entry->segment == SEGMENT_END)
        end_sent(lane, exchange);
    else if (lane->messages->schedule != NULL && entry->segment + 1 == exchange->out.segments)
        lane->messages->schedule->message_sent(lane, exchange);
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
        messages_enqueue(lane, burst->entries[i].exchange);
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

/* The exchanges in turn, each with as much as it has: a message's frames are not spread out by
 * others that begin meanwhile. */
static void fill_burst(struct dpdk_lane *lane, struct burst *burst, uint32_t most, int64_t now_ns)
{
    struct messages *messages = lane->messages;
    struct signature_time time = signature_time(now_ns - lane->start_ns);

    while (burst->count < most && messages->queued > 0) {
        struct exchange *exchange = messages->queue[messages->head];

        for (; burst->count < most && has_more(exchange); burst->count++) {
            struct entry *entry = &burst->entries[burst->count];

            *entry = next_entry(exchange);
            write_frame(lane, entry, burst->frames[burst->count], &time);
        }
        dequeue(messages);
        if (has_more(exchange))
            messages_enqueue(lane, exchange);
    }
}

/* Frames that wait to be sent, `most` at most. */
static uint32_t waiting(const struct messages *messages, uint32_t most)
{
    uint32_t frames = 0;

    for (uint32_t i = 0; i < messages->queued && frames < most; i++) {
        const struct exchange *exchange = messages->queue[(messages->head + i) % messages->count];

        frames +=
            exchange->out.segments - exchange->out.next + exchange->out.mark + exchange->out.end;
    }
    return RTE_MIN(frames, most);
}

static int64_t send_burst(struct dpdk_lane *lane, int64_t now_ns)
{
    uint32_t cost = 8 * (lane->messages->exchanges[0].full.length + FRAME_FCS + FRAME_OVERHEAD_L1);
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
