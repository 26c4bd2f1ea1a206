/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Single frames that are answered: latency probes in addition to the load, and ping-pong messages,
 * each of which is one frame of headers, signature and the message's bytes. The destination returns
 * each frame as an answer with another tag. Nothing is retransmitted: a frame without an answer in
 * time is lost. This is no hot path.
 */
#include "frame_lane.h"

void frame_write_head(const struct frame_lane *lane, const struct frame_single *single,
                      struct frame_template *head)
{
    struct signature_time time = signature_time(single->stamp_ns);
    struct signature *signature = (struct signature *)(head->bytes + lane->conf.offset);
    uint16_t rank = (uint16_t)frame_partner_rank(lane, single->place);

    lane->conf.ops->write_headers(lane, single, head);
    signature->tag = htobe16(single->tag);
    signature->src = lane->receiver.own;
    signature->dst = single->to_all ? UINT16_MAX : htobe16(rank);
    signature_stamp(signature, single->sequence, &time, signature_base(signature) + time.sum);
}

/* Send one frame; return false if the device had no room. */
static bool send(struct frame_lane *lane, const struct frame_single *single)
{
    struct frame_template head;

    frame_write_head(lane, single, &head);
    if (lane->conf.ops->send_single(lane, single->place, &head,
                                    single->frame_bytes - lane->conf.outside))
        return true;
    lane->lane.request.count->send_refused++;
    return false;
}

/* Send a probe or an answer and count it. If the line has no room for both, the load sends less by
 * the cost of this frame. */
static bool send_probe(struct frame_lane *lane, const struct frame_single *single)
{
    if (!send(lane, single))
        return false;
    lane->lane.request.count->probes_sent++;
    if (lane->displaces && lane->state == FRAME_SENDS && lane->forwarder.queue == NULL)
        pace_spend(&lane->sender.pace, frame_cost(lane->lane.request.phase, single->frame_bytes));
    return true;
}

/* --- the source's end --- */

int64_t frame_probe(struct frame_lane *lane, int64_t now_ns)
{
    struct prober *prober = &lane->prober;
    struct frame_single single = {.place = prober->at,
                                  .tag = lane->lane.request.phase->tag ^ SIGNATURE_PROBE};
    uint32_t flow;

    if (!prober_due(prober, lane->state == FRAME_SENDS, now_ns))
        return prober->next_ns;
    flow = prober_place(prober, &lane->lane.request.flows[prober->at]);
    single.sequence = (uint32_t)prober_left(prober, flow);
    single.stamp_ns = clock_now() - lane->start_ns;
    single.source = (uint16_t)(single.sequence % lane->receiver.sources);
    single.frame_bytes = lane->sizes[lane->order[single.sequence % lane->order_count]].frame_bytes;
    prober_leaves(prober, flow, single.stamp_ns);
    if (!send_probe(lane, &single))
        prober_stays(prober, flow);
    prober_step(prober, now_ns);
    return prober->next_ns;
}

static void count(struct flow_side *side, uint32_t frame_bytes, uint32_t bytes)
{
    side->live.frames++;
    side->live.frame_bytes += frame_bytes;
    side->live.payload_bytes += bytes;
    side->live.messages++;
}

static bool is_message_size(const struct frame_lane *lane, const struct frame_seen *seen,
                            uint32_t bytes)
{
    return seen->length + lane->conf.outside == frame_message_size(lane, bytes);
}

static void send_message(struct lane *base, uint32_t flow)
{
    struct frame_lane *lane = (struct frame_lane *)base;
    struct lane_flow *sent = &base->request.flows[flow];
    uint64_t number = prober_left(&lane->prober, flow) - 1;
    uint32_t bytes = prober_bytes(base->request.phase, number);
    const struct frame_single single = {
        .place = flow,
        .tag = base->request.phase->tag,
        .frame_bytes = frame_message_size(lane, bytes),
        .sequence = (uint32_t)number,
        .stamp_ns = (int64_t)prober_stamp(&lane->prober, flow, number),
    };

    if (send(lane, &single))
        count(&sent->side, single.frame_bytes, bytes);
    sent->side.intended = sent->side.live.frames;
}

int64_t frame_pingpong(struct frame_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;
    int64_t opens_ns = base->request.phase->start_ns, next_ns;

    if (now_ns < opens_ns && base->stop_ns > now_ns)
        return opens_ns;
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    next_ns = prober_pingpong(&lane->prober, true, send_message);
    if (lane->prober.ended && base->stopped_ns == 0)
        base->stopped_ns = now_ns;
    return next_ns;
}

/* Measure the round trip of the answer to a probe or message; return false if the answer is forged
 * or has another size than its message. */
static bool take_answer(struct frame_lane *lane, const struct frame_seen *seen)
{
    struct prober *prober = &lane->prober;
    const struct signature *signature = seen->signature;
    uint32_t flow = prober->count > 0 ? prober->flow_of[be16toh(signature->src)] : 0;
    uint64_t number;

    if (flow-- == 0)
        return false;
    number = sequence_unwrap(prober_left(prober, flow), be32toh(signature->sequence));
    return (!prober->pingpong ||
            is_message_size(lane, seen, prober_bytes(lane->lane.request.phase, number))) &&
           prober_back(prober, flow, (uint32_t)number, signature_ns(signature), clock_now());
}

/* --- the destination's end --- */

/* Send a received frame of a flow back to the flow's source as an answer. */
static void answer(struct frame_lane *lane, uint32_t flow, const struct frame_seen *seen)
{
    const struct frame_single single = {
        .place = lane->lane.request.send_count + flow,
        .tag = lane->lane.request.phase->tag ^ SIGNATURE_ANSWER,
        .source = seen->source,
        .frame_bytes = seen->length + lane->conf.outside,
        .sequence = be32toh(seen->signature->sequence),
        .stamp_ns = (int64_t)signature_ns(seen->signature),
    };

    (void)send_probe(lane, &single);
}

/* Classify a received ping-pong message by its sequence number, like a frame of a load; answer and
 * count it if it is delivered. */
static void take_message(struct frame_lane *lane, uint32_t flow, const struct frame_seen *seen,
                         int64_t now_ns)
{
    struct received frame = {.signature = seen->signature,
                             .stream = &lane->receiver.streams[flow],
                             .sequence = be32toh(seen->signature->sequence),
                             .length = seen->length};
    struct flow_side *side = frame.stream->side;
    uint32_t bytes = prober_bytes(lane->lane.request.phase,
                                  sequence_unwrap(frame.stream->sequence.next, frame.sequence));

    lane->lane.arrived_ns = now_ns;
    if (!is_message_size(lane, seen, bytes)) {
        side->corrupted++;
    } else if (frame_judge(&lane->receiver, &frame, now_ns)) {
        answer(lane, flow, seen);
        count(side, seen->length + lane->conf.outside, bytes);
        flow_side_time(side, now_ns);
    }
}

bool frame_single_take(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns)
{
    const struct receiver *receiver = &lane->receiver;
    const struct signature *signature = seen->signature;
    struct port_count *count = lane->lane.request.count;
    uint32_t flow = receiver->flow_of[be16toh(signature->src)];
    const struct prober *prober = &lane->prober;
    bool message = prober->pingpong && signature->tag == receiver->tag;
    bool probe = prober->answers && signature->tag == lane->tags[0];
    bool answered = (prober->pingpong || prober->answers) && signature->tag == lane->tags[1];
    bool sized = seen->length <= FILL_BYTES &&
                 (prober->pingpong || lane->size_of_length[seen->length] != FRAME_NO_SIZE);

    if (!(probe || answered || (message && flow > 0)) || !sized || !seen->ours ||
        signature->dst != receiver->own || !lane->conf.ops->is_sound(lane, seen))
        return false;
    if (message)
        take_message(lane, flow - 1, seen, now_ns);
    else if (answered && !take_answer(lane, seen))
        count->foreign++;
    else
        count->probes_received++;
    /* Only a flow's own source is answered, at the address that it published. */
    if (probe && flow > 0)
        answer(lane, flow - 1, seen);
    return true;
}
