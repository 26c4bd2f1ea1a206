/* SPDX-License-Identifier: BSD-3-Clause */
#include "prober.h"

#include "partner.h"

#include <rte_ethdev.h>

bool prober_send(struct dpdk_lane *lane, const struct probe *probe)
{
    struct port_queue *queue = lane->queue;
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(queue->receive_pool);
    uint32_t length = probe->size - FRAME_FCS;
    uint8_t *frame =
        buffer != NULL ? (uint8_t *)rte_pktmbuf_append(buffer, (uint16_t)length) : NULL;

    if (frame != NULL)
        probe_write(probe, frame);
    if (frame == NULL || rte_eth_tx_burst(lane->port->id, queue->pass, &buffer, 1) == 0) {
        rte_pktmbuf_free(buffer);
        lane->lane.request.count->send_refused++;
        return false;
    }
    lane_push_later(lane, clock_now());
    return true;
}

static bool send_frame(struct dpdk_lane *lane, const struct probe *probe, uint32_t cost)
{
    if (!prober_send(lane, probe))
        return false;
    lane->lane.request.count->probes_sent++;
    if (lane->state == LANE_SENDS && lane->forwarder.queue == NULL)
        pace_spend(&lane->sender.pace, frame_prober_displaced(&lane->prober, cost));
    return true;
}

static void send_probe(struct dpdk_lane *lane)
{
    const struct lane_flow *flow = &lane->lane.request.sends[lane->prober.at];
    uint32_t number = frame_prober_number(&lane->prober, flow);
    const struct lane_size *size = &lane->sizes[lane->order[number % lane->order_count]];
    int64_t stamp_ns = clock_now() - lane->start_ns;
    struct probe probe = {
        .shape = &lane->shape,
        .udp_source = (uint16_t)(number % lane->receiver.sources),
        .tag = probe_tag(lane->shape.tag),
        .size = size->frame_bytes,
        .sequence = number,
        .stamp_ns = (uint64_t)stamp_ns,
    };

    partner_ends(lane, flow, flow->dst, probe.ends);
    frame_prober_leaves(&lane->prober, flow, stamp_ns);
    if (!send_frame(lane, &probe, size->cost))
        frame_prober_stays(&lane->prober, flow);
}

int64_t prober_turn(struct dpdk_lane *lane, int64_t now_ns)
{
    struct frame_prober *prober = &lane->prober;

    if (frame_prober_is_due(prober, &lane->lane, lane->state == LANE_SENDS, now_ns)) {
        send_probe(lane);
        frame_prober_next(prober, &lane->lane, now_ns);
    }
    return prober->next_ns;
}

/* Only a flow's own source is answered, at the address that it has told. */
static void answer(struct dpdk_lane *lane, const uint8_t *frame, uint32_t length)
{
    const struct lane_request *request = &lane->lane.request;
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);
    uint32_t flow = lane->receiver.flow_of[be16toh(signature->src)];
    const struct lane_size *size = &lane->sizes[lane->size_of_length[length]];
    struct probe probe = {
        .shape = &lane->shape,
        .tag = probe_answer_tag(lane->shape.tag),
        .size = size->frame_bytes,
        .sequence = be32toh(signature->sequence),
        .stamp_ns = signature_ns(signature),
    };

    if (flow == 0)
        return;
    if (lane->shape.kind != HEADER_L2)
        probe.udp_source = (uint16_t)(be16toh(frame_u16(frame + lane->shape.payload - FRAME_UDP)) -
                                      FRAME_UDP_SOURCE);
    partner_ends(lane, &request->receives[flow - 1], request->receives[flow - 1].src, probe.ends);
    (void)send_frame(lane, &probe, size->cost);
}

bool prober_waits(const struct dpdk_lane *lane)
{
    return lane->port->queue_count == 1 && lane->prober.in_flight > 0;
}

bool prober_take(struct dpdk_lane *lane, const struct rte_mbuf *buffer)
{
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);

    if (lane->pingpong != NULL)
        return false; /* an answer that is sound was taken before */
    if (signature->tag == lane->prober.tags[1])
        return frame_prober_measure(&lane->prober, signature,
                                    arrival_ns(&lane->port->arrival, buffer) - lane->start_ns);
    answer(lane, frame, rte_pktmbuf_data_len(buffer));
    return true;
}
