/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that came, where messages go there and back: each is verified whole as any other of ours,
 * and marked in its message; the last one makes the message whole, wherever in it it belongs.
 *
 * A frame counts once: delivered (fresh or reordered), duplicated, late, corrupted, misdelivered,
 * the responder's, or foreign. Those of answers count by themselves (struct peer_channel).
 */
#include "messages_receive.h"

#include "classify.h"

#include <rte_ethdev.h>

static struct peer_channel *find(const struct messages *messages, const uint32_t *places,
                                 uint16_t rank)
{
    uint32_t place = places[be16toh(rank)];

    return place > 0 ? &messages->channels[place - 1] : NULL;
}

/* Whose frame it is, by its tag and who sent it. NULL: nobody's. */
static struct peer_channel *channel_of(const struct dpdk_lane *lane,
                                       const struct signature *signature)
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
static struct peer_channel *guess(const struct dpdk_lane *lane, const struct signature *signature,
                                  const uint8_t *frame)
{
    struct peer_channel *channel = channel_of(lane, signature);

    if (channel != NULL)
        return channel;
    for (uint32_t i = 0; i < lane->messages->count; i++)
        if (memcmp(lane->messages->channels[i].ends[1].mac, frame + FRAME_MAC, FRAME_MAC) == 0)
            return &lane->messages->channels[i];
    return NULL;
}

static void count_damaged(struct dpdk_lane *lane, struct peer_channel *channel)
{
    channel->got->corrupted++;
    if (channel->source)
        lane->lane.request.count->probes_received++;
}

/* Not a frame of ours as it was sent. */
static __rte_noinline void classify_unexpected_segment(struct dpdk_lane *lane,
                                                       const struct rte_mbuf *buffer)
{
    struct port_count *count = lane->lane.request.count;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);
    bool mine = memcmp(frame, lane->port->responder.mac, FRAME_MAC) == 0;
    uint16_t rank = htobe16((uint16_t)lane->lane.request.rank);
    struct peer_channel *channel;
    bool tagged, answer;

    if (queue_handle_control_frame(lane->queue, buffer))
        return;
    if (rte_pktmbuf_data_len(buffer) < lane->shape.payload + SIGNATURE_BYTES) {
        count->foreign++;
        return;
    }
    answer = be16toh(signature->tag) == message_answer_tag(lane->shape.tag);
    tagged = be16toh(signature->tag) == lane->shape.tag || answer;
    channel =
        signature_sound(signature) ? channel_of(lane, signature) : guess(lane, signature, frame);
    if (tagged && signature_sound(signature) && signature->dst != rank && signature->src != rank)
        classify_misdelivered(count, signature, answer);
    else if (mine && channel != NULL && (tagged || signature->dst == rank))
        count_damaged(lane, channel);
    else
        count->foreign++;
}

static const struct frame_expect *expect(const struct dpdk_lane *lane, struct peer_channel *channel,
                                         uint32_t length)
{
    if (length == channel->full_in.length)
        return &channel->full_in.expect;
    if (length != channel->last_in.length) {
        frame_expect(&channel->last_in.expect, &lane->shape, length);
        channel->last_in.length = length;
    }
    return &channel->last_in.expect;
}

/* Everything from the EtherType to the last byte is as it was sent, but for what switches and
 * routers may change. */
static bool is_sound(const struct dpdk_lane *lane, struct peer_channel *channel,
                     const uint8_t *frame, uint32_t length)
{
    const struct frame_check *check = &lane->receiver.check;
    const struct frame_expect *expected = expect(lane, channel, length);
    const uint8_t *segment = frame + check->payload + SIGNATURE_BYTES;

    return lane->messages->headers_sound(check, expected, frame) &&
           signature_sound((const struct signature *)(frame + check->payload)) &&
           segment_sound((const struct segment *)segment) &&
           memcmp(segment + SEGMENT_BYTES, check->fill->bytes + SEGMENT_BYTES,
                  expected->fill - SEGMENT_BYTES) == 0;
}

/* The channel of a frame that is ours and sound; NULL: it is not. */
static struct peer_channel *recognise(const struct dpdk_lane *lane, const uint8_t *frame,
                                      uint32_t length)
{
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);
    struct peer_channel *channel;

    if (length < lane->shape.payload + SIGNATURE_BYTES + SEGMENT_BYTES || length > FRAME_SIZE_MAX ||
        be16toh(signature->dst) != lane->lane.request.rank)
        return NULL;
    channel = channel_of(lane, signature);
    return channel != NULL && is_sound(lane, channel, frame, length) ? channel : NULL;
}

/* --- what it says --- */

/* The message that a new number begins. At a source none is new: it has begun them itself. */
static void begin_message(struct peer_channel *channel, uint64_t number, uint32_t bytes)
{
    reassembly_begin(&channel->in, number, message_segments(&channel->segmentation, bytes));
    channel->out.next = channel->out.segments; /* nobody waits for the last one's answer */
}

void messages_delivered(const struct rx_segment *rx, uint32_t bytes)
{
    struct flow_side *side = rx->channel->got;

    side->live.frames++;
    side->live.frame_bytes += rx->length + FRAME_FCS;
    side->live.payload_bytes += message_part(&rx->channel->segmentation, bytes, rx->segment);
    side->first_ns = side->first_ns > 0 ? side->first_ns : rx->at_ns;
    side->last_ns = rx->at_ns;
}

static void answer(struct dpdk_lane *lane, struct peer_channel *channel, uint64_t number,
                   uint32_t bytes)
{
    channel->out =
        (struct tx_message){.number = number, .bytes = bytes, .segments = channel->in.segments};
    messages_enqueue(lane, channel);
}

static void end_message(struct dpdk_lane *lane, struct peer_channel *channel, uint64_t number,
                        uint32_t bytes)
{
    channel->got->live.messages++;
    if (channel->source)
        messages_back(lane, channel, clock_now());
    else
        answer(lane, channel, number, bytes);
}

static void take_end(struct dpdk_lane *lane, struct peer_channel *channel, int64_t now_ns)
{
    if (channel->source) {
        messages_ended(lane, channel);
        return;
    }
    if (lane->messages->schedule != NULL)
        lane->messages->schedule->partner_ended(lane, channel, now_ns);
    channel->out.next = channel->out.segments;
    channel->out.end = true;
    messages_enqueue(lane, channel);
}

/* Whether the message has such a segment, and its frame is so long. */
static bool fits(const struct peer_channel *channel, const struct rx_segment *rx, uint32_t bytes)
{
    return rx->segment < message_segments(&channel->segmentation, bytes) &&
           rx->length == message_length(&channel->segmentation, bytes, rx->segment);
}

static void take_segment(struct dpdk_lane *lane, const struct rx_segment *rx)
{
    struct peer_channel *channel = rx->channel;
    struct flow_side *side = channel->got;
    uint64_t number = reassembly_number(&channel->in, rx->wire);
    bool fresh = reassembly_is_new(&channel->in, rx->wire);
    enum sequence_verdict verdict;
    uint32_t bytes;

    if (!fresh && (number + 1 != channel->in.next || channel->in.segments == 0)) {
        side->late++;
        return;
    }
    bytes = pingpong_size(lane->lane.request.phase, &channel->drawn, number);
    if (!fits(channel, rx, bytes) || (fresh && channel->source)) {
        side->corrupted++;
        return;
    }
    if (fresh)
        begin_message(channel, number, bytes);
    verdict = reassembly_take(&channel->in, number, rx->segment);
    side->duplicated += verdict == SEQUENCE_DUPLICATE;
    side->reordered += verdict == SEQUENCE_REORDERED;
    if (verdict == SEQUENCE_DUPLICATE)
        return;
    messages_delivered(rx, bytes);
    if (reassembly_whole(&channel->in))
        end_message(lane, channel, number, bytes);
}

static void take(struct dpdk_lane *lane, const struct rte_mbuf *buffer, int64_t now_ns)
{
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    uint32_t length = rte_pktmbuf_data_len(buffer);
    const uint8_t *signature = frame + lane->shape.payload;
    struct rx_segment rx = {
        .channel = recognise(lane, frame, length), .length = length, .at_ns = now_ns};

    if (rx.channel == NULL) {
        classify_unexpected_segment(lane, buffer);
        return;
    }
    rx.wire = be32toh(((const struct signature *)signature)->sequence);
    rx.segment = be32toh(((const struct segment *)(signature + SIGNATURE_BYTES))->number);
    if (rx.channel->source || rx.segment >= SEGMENT_BARRIER)
        lane->lane.request.count->probes_received++;
    if (rx.segment == SEGMENT_END)
        take_end(lane, rx.channel, now_ns);
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
