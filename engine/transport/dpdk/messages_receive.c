/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that came, where messages go there and back: each is verified whole as any other of ours,
 * and marked in its message; the last one makes the message whole, wherever in it it belongs.
 *
 * A frame counts once: delivered (fresh or reordered), duplicated, late, corrupted, misdelivered,
 * the guest's, or foreign. Those of answers count by themselves (struct exchange).
 */
#include "messages_receive.h"

#include "rx.h"

#include <rte_ethdev.h>

static struct exchange *find(const struct messages *messages, const uint32_t *places, uint16_t rank)
{
    uint32_t place = places[be16toh(rank)];

    return place > 0 ? &messages->exchanges[place - 1] : NULL;
}

/* Whose frame it is, by its tag and who sent it. NULL: nobody's. */
static struct exchange *exchange_of(const struct dpdk_lane *lane, const struct signature *signature)
{
    uint16_t tag = be16toh(signature->tag);

    if (tag == lane->shape.tag)
        return find(lane->messages, lane->messages->destination_of, signature->src);
    if (tag == message_answer_tag(lane->shape.tag))
        return find(lane->messages, lane->messages->source_of, signature->src);
    return NULL;
}

/* Whose a frame with a damaged signature may be: by what is left of it, else by the sender's
 * address. */
static struct exchange *guess(const struct dpdk_lane *lane, const struct signature *signature,
                              const uint8_t *frame)
{
    struct exchange *exchange = exchange_of(lane, signature);

    if (exchange != NULL)
        return exchange;
    for (uint32_t i = 0; i < lane->messages->count; i++)
        if (memcmp(lane->messages->exchanges[i].ends[1].mac, frame + FRAME_MAC, FRAME_MAC) == 0)
            return &lane->messages->exchanges[i];
    return NULL;
}

static void count_damaged(struct dpdk_lane *lane, struct exchange *exchange)
{
    exchange->got->corrupted++;
    if (exchange->source)
        lane->lane.request.count->probes_received++;
}

/* Not a frame of ours as it was sent. */
static __rte_noinline void stray(struct dpdk_lane *lane, const struct rte_mbuf *buffer)
{
    struct port_count *count = lane->lane.request.count;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);
    bool mine = memcmp(frame, lane->port->guest.mac, FRAME_MAC) == 0;
    uint16_t rank = htobe16((uint16_t)lane->lane.request.rank);
    struct exchange *exchange;
    bool tagged, answer;

    if (port_hear(lane->queue, buffer))
        return;
    if (rte_pktmbuf_data_len(buffer) < lane->shape.payload + SIGNATURE_BYTES) {
        count->foreign++;
        return;
    }
    answer = be16toh(signature->tag) == message_answer_tag(lane->shape.tag);
    tagged = be16toh(signature->tag) == lane->shape.tag || answer;
    exchange =
        signature_sound(signature) ? exchange_of(lane, signature) : guess(lane, signature, frame);
    if (tagged && signature_sound(signature) && signature->dst != rank && signature->src != rank)
        receiver_astray(count, signature, answer);
    else if (mine && exchange != NULL && (tagged || signature->dst == rank))
        count_damaged(lane, exchange);
    else
        count->foreign++;
}

static const struct frame_expect *expect(const struct dpdk_lane *lane, struct exchange *exchange,
                                         uint32_t length)
{
    if (length == exchange->full_in.length)
        return &exchange->full_in.expect;
    if (length != exchange->last_in.length) {
        frame_expect(&exchange->last_in.expect, &lane->shape, length);
        exchange->last_in.length = length;
    }
    return &exchange->last_in.expect;
}

/* Everything from the EtherType to the last byte is as it was sent, but for what switches and
 * routers may change. */
static bool is_sound(const struct dpdk_lane *lane, struct exchange *exchange, const uint8_t *frame,
                     uint32_t length)
{
    const struct frame_check *check = &lane->receiver.check;
    const struct frame_expect *expected = expect(lane, exchange, length);
    const uint8_t *segment = frame + check->payload + SIGNATURE_BYTES;

    return lane->messages->headers_sound(check, expected, frame) &&
           signature_sound((const struct signature *)(frame + check->payload)) &&
           segment_sound((const struct segment *)segment) &&
           memcmp(segment + SEGMENT_BYTES, check->fill->bytes + SEGMENT_BYTES,
                  expected->fill - SEGMENT_BYTES) == 0;
}

/* The exchange of a frame that is ours and sound; NULL: it is not. */
static struct exchange *recognise(const struct dpdk_lane *lane, const uint8_t *frame,
                                  uint32_t length)
{
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);
    struct exchange *exchange;

    if (length < lane->shape.payload + SIGNATURE_BYTES + SEGMENT_BYTES || length > FRAME_SIZE_MAX ||
        be16toh(signature->dst) != lane->lane.request.rank)
        return NULL;
    exchange = exchange_of(lane, signature);
    return exchange != NULL && is_sound(lane, exchange, frame, length) ? exchange : NULL;
}

/* --- what it says --- */

/* The message that a new number begins. At a source none is new: it has begun them itself. */
static void begin_message(struct exchange *exchange, uint64_t number, uint32_t bytes)
{
    assembly_begin(&exchange->in, number, message_segments(&exchange->cut, bytes));
    exchange->out.next = exchange->out.segments; /* nobody waits for the last one's answer */
}

void messages_delivered(const struct rx_segment *rx, uint32_t bytes)
{
    struct flow_side *side = rx->exchange->got;

    side->live.frames++;
    side->live.frame_bytes += rx->length + FRAME_FCS;
    side->live.payload_bytes += message_part(&rx->exchange->cut, bytes, rx->segment);
    side->first_ns = side->first_ns > 0 ? side->first_ns : rx->at_ns;
    side->last_ns = rx->at_ns;
}

static void answer(struct dpdk_lane *lane, struct exchange *exchange, uint64_t number,
                   uint32_t bytes)
{
    exchange->out =
        (struct outgoing){.number = number, .bytes = bytes, .segments = exchange->in.segments};
    messages_enqueue(lane, exchange);
}

static void end_message(struct dpdk_lane *lane, struct exchange *exchange, uint64_t number,
                        uint32_t bytes)
{
    exchange->got->live.messages++;
    if (exchange->source)
        messages_back(lane, exchange, clock_now());
    else
        answer(lane, exchange, number, bytes);
}

static void take_end(struct dpdk_lane *lane, struct exchange *exchange, int64_t now_ns)
{
    if (exchange->source) {
        messages_ended(lane, exchange);
        return;
    }
    if (lane->messages->schedule != NULL)
        lane->messages->schedule->partner_ended(lane, exchange, now_ns);
    exchange->out.next = exchange->out.segments;
    exchange->out.end = true;
    messages_enqueue(lane, exchange);
}

/* Whether the message has such a segment, and its frame is so long. */
static bool fits(const struct exchange *exchange, const struct rx_segment *rx, uint32_t bytes)
{
    return rx->segment < message_segments(&exchange->cut, bytes) &&
           rx->length == message_length(&exchange->cut, bytes, rx->segment);
}

static void take_segment(struct dpdk_lane *lane, const struct rx_segment *rx)
{
    struct exchange *exchange = rx->exchange;
    struct flow_side *side = exchange->got;
    uint64_t number = assembly_number(&exchange->in, rx->wire);
    bool fresh = assembly_is_new(&exchange->in, rx->wire);
    enum sequence_verdict verdict;
    uint32_t bytes;

    if (!fresh && (number + 1 != exchange->in.next || exchange->in.segments == 0)) {
        side->late++;
        return;
    }
    bytes = pingpong_size(lane->lane.request.phase, &exchange->drawn, number);
    if (!fits(exchange, rx, bytes) || (fresh && exchange->source)) {
        side->corrupted++;
        return;
    }
    if (fresh)
        begin_message(exchange, number, bytes);
    verdict = assembly_take(&exchange->in, number, rx->segment);
    side->duplicated += verdict == SEQUENCE_DUPLICATE;
    side->reordered += verdict == SEQUENCE_REORDERED;
    if (verdict == SEQUENCE_DUPLICATE)
        return;
    messages_delivered(rx, bytes);
    if (assembly_whole(&exchange->in))
        end_message(lane, exchange, number, bytes);
}

static void take(struct dpdk_lane *lane, const struct rte_mbuf *buffer, int64_t now_ns)
{
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    uint32_t length = rte_pktmbuf_data_len(buffer);
    const uint8_t *signature = frame + lane->shape.payload;
    struct rx_segment rx = {
        .exchange = recognise(lane, frame, length), .length = length, .at_ns = now_ns};

    if (rx.exchange == NULL) {
        stray(lane, buffer);
        return;
    }
    rx.wire = be32toh(((const struct signature *)signature)->sequence);
    rx.segment = be32toh(((const struct segment *)(signature + SIGNATURE_BYTES))->number);
    if (rx.exchange->source || rx.segment >= SEGMENT_MEETING)
        lane->lane.request.count->probes_received++;
    if (rx.segment == SEGMENT_END)
        take_end(lane, rx.exchange, now_ns);
    else if (lane->messages->schedule != NULL)
        lane->messages->schedule->receive(lane, &rx);
    else
        take_segment(lane, &rx);
    lane->lane.arrived_ns = now_ns;
}

uint32_t messages_receive(struct dpdk_lane *lane, int64_t now_ns)
{
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint32_t count = rte_eth_rx_burst(lane->port->id, lane->queue->number, frames,
                                      (uint16_t)lane->receive_burst);

    for (uint32_t i = 0; i < count; i++)
        take(lane, frames[i], now_ns);
    if (count > 0)
        rte_pktmbuf_free_bulk(frames, count);
    lane->messages->coming = count > 0;
    return count;
}
