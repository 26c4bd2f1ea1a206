/* SPDX-License-Identifier: BSD-3-Clause */
#include "pingpong_lane.h"

#include "classify.h"
#include "frame_pingpong.h"
#include "partner.h"
#include "prober.h"
#include "rx.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdlib.h>

struct pingpong_lane {
    struct frame_pingpong game;
    struct frame_end (*ends)[2]; /* from and to; of the flows that the lane sends, then receives */
};

/* --- send --- */

static bool send_frame(struct lane *base, const struct pingpong_frame *frame)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    const struct frame_pingpong *game = &lane->pingpong->game;
    struct probe probe = {
        .shape = &lane->shape,
        .tag = frame->back ? probe_answer_tag(lane->shape.tag) : lane->shape.tag,
        .size = frame_pingpong_size(game->around, game->least, frame->bytes),
        .sequence = frame->number,
        .stamp_ns = (uint64_t)frame->stamp_ns,
    };
    uint32_t place = frame->place + (frame->back ? base->request.send_count : 0);

    memcpy(probe.ends, lane->pingpong->ends[place], sizeof probe.ends);
    return prober_send(lane, &probe);
}

int64_t pingpong_lane_send(struct dpdk_lane *lane, int64_t now_ns)
{
    return frame_pingpong_poll(&lane->pingpong->game, now_ns);
}

/* --- receive --- */

static bool is_sound(const struct dpdk_lane *lane, const uint8_t *frame, uint32_t length)
{
    struct frame_expect expect;

    frame_expect(&expect, &lane->shape, length);
    return frame_sound(&lane->receiver.check, &expect, frame, lane->shape.kind);
}

/* A message or an answer for this rank, as it was sent. False: it is none. */
static bool take(struct dpdk_lane *lane, struct rte_mbuf *buffer, int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;
    struct frame_pingpong *game = &lane->pingpong->game;
    const struct signature *signature = received_signature(receiver, buffer);
    uint32_t length = rte_pktmbuf_data_len(buffer), flow;
    struct received frame = {.frame = buffer, .length = length};
    uint64_t number;

    if (length < (uint32_t)receiver->check.payload + SIGNATURE_BYTES || length > FRAME_SIZE_MAX ||
        signature->dst != receiver->own ||
        !is_sound(lane, rte_pktmbuf_mtod(buffer, const uint8_t *), length))
        return false;
    if (signature->tag == lane->prober.tags[1]) {
        frame_pingpong_take_answer(game, signature, length + FRAME_FCS);
        return true;
    }
    flow = flow_from(receiver, be16toh(signature->src));
    if (signature->tag != receiver->tag || flow == 0)
        return false;
    frame.stream = &receiver->streams[flow - 1];
    frame.sequence = be32toh(signature->sequence);
    number = sequence_unwrap(frame.stream->sequence.next, frame.sequence);
    lane->lane.arrived_ns = now_ns;
    if (!frame_pingpong_fits(game, flow - 1, number, length + FRAME_FCS))
        frame.stream->side->corrupted++;
    else if (receiver_judge(receiver, &frame, now_ns))
        frame_pingpong_reply(game, flow - 1, number, signature, now_ns);
    return true;
}

static uint32_t receive(struct dpdk_lane *lane, int64_t now_ns)
{
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint32_t count = rte_eth_rx_burst(lane->port->id, lane->queue->number, frames,
                                      (uint16_t)lane->receive_burst);

    for (uint32_t i = 0; i < count; i++)
        if (!take(lane, frames[i], now_ns))
            classify_unexpected(lane, frames[i], now_ns);
    rte_pktmbuf_free_bulk(frames, count);
    return count;
}

/* --- life --- */

int pingpong_lane_make(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    struct pingpong_lane *pingpong;

    if (lane->port->queue_count > 1)
        return err_set(err, -EINVAL,
                       "%s: a ping-pong uses one queue, and the port has %u: set queues: 1",
                       lane->port->conf->name, lane->port->queue_count);
    pingpong = lane->pingpong = calloc(1, sizeof *pingpong);
    if (pingpong == NULL)
        return -ENOMEM;
    pingpong->game.send = send_frame;
    pingpong->game.around = lane->shape.payload + SIGNATURE_BYTES + FRAME_FCS;
    pingpong->game.least = frame_least(&lane->shape);
    pingpong->ends =
        calloc((size_t)request->send_count + request->receive_count + 1, sizeof *pingpong->ends);
    lane->receive = receive;
    lane->responds = true;
    /* Answers are no load, and are told from it by their tag alone. */
    lane->prober.answers = true;
    lane->prober.tags[0] = lane->prober.tags[1] = htobe16(probe_answer_tag(lane->shape.tag));
    lane->prober.next_ns = CLOCK_NEVER;
    snprintf(lane->lane.variant, sizeof lane->lane.variant, "one %s frame at a time",
             frame_kind_name(lane->shape.kind));
    return pingpong->ends != NULL ? frame_pingpong_make(&pingpong->game, &lane->lane) : -ENOMEM;
}

void pingpong_lane_build(struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct frame_end(*ends)[2] = lane->pingpong->ends;

    for (uint32_t i = 0; i < request->send_count; i++)
        partner_ends(lane, &request->sends[i], request->sends[i].dst, *ends++);
    for (uint32_t i = 0; i < request->receive_count; i++)
        partner_ends(lane, &request->receives[i], request->receives[i].src, *ends++);
}

void pingpong_lane_free(struct dpdk_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    frame_pingpong_free(&lane->pingpong->game);
    free(lane->pingpong->ends);
    free(lane->pingpong);
}

bool pingpong_lane_latency(const struct dpdk_lane *lane, const struct lane_flow *flow,
                           struct latency *sum)
{
    return pingpong_latency(&lane->pingpong->game.game, flow, sum);
}
