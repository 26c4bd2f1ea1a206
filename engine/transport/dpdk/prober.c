/* SPDX-License-Identifier: BSD-3-Clause */
#include "prober.h"

#include "partner.h"
#include "probe.h"

#include <assert.h>
#include <errno.h>
#include <rte_ethdev.h>
#include <stdlib.h>

#define FLOWS_MAX 4096u /* whose answers are kept apart, 18 KB each; with more none are probed */

static bool sends_probes(const struct lane_request *request)
{
    return request->phase->latency.probe_fps != 0 && request->port_send_count > 0 &&
           request->port_send_count <= FLOWS_MAX && request->phase->traffic != TRAFFIC_PROBE;
}

static double choose_rate(const struct lane_request *request)
{
    const struct phase *phase = request->phase;
    struct probe_budget budget = {
        .line_rate_bps = request->line_rate_bps,
        .load = phase->load,
        .flows = request->port_send_count + request->receive_count,
    };
    uint64_t bytes = 0;

    if (phase->latency.probe_fps > 0)
        return phase->latency.probe_fps;
    for (uint32_t i = 0; i < phase->size_count; i++)
        bytes += phase->sizes[i];
    assert(phase->size_count > 0); /* lane_prepare refuses others */
    budget.frame_bytes = (uint32_t)(bytes / phase->size_count);
    return probe_rate(&budget);
}

int prober_make(struct dpdk_lane *lane)
{
    struct lane_request *request = &lane->lane.request;
    struct prober *prober = &lane->prober;

    if (request->port_sends == NULL) {
        request->port_sends = request->sends;
        request->port_send_count = request->send_count;
    }
    prober->next_ns = CLOCK_NEVER;
    prober->answers =
        request->phase->latency.probe_fps != 0 && request->phase->traffic != TRAFFIC_PROBE;
    prober->tags[0] = htobe16(probe_tag(lane->shape.tag));
    prober->tags[1] = htobe16(probe_answer_tag(lane->shape.tag));
    if (!sends_probes(request))
        return 0;
    prober->count = request->port_send_count;
    prober->rate_fps = choose_rate(request);
    prober->flows = calloc(prober->count, sizeof *prober->flows);
    prober->flow_of = calloc(PATTERN_RANKS_MAX, sizeof *prober->flow_of);
    if (prober->flows == NULL || prober->flow_of == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < prober->count; i++)
        prober->flow_of[request->port_sends[i].dst] = (uint16_t)(i + 1);
    return 0;
}

void prober_free(struct dpdk_lane *lane)
{
    free(lane->prober.flows);
    free(lane->prober.flow_of);
}

/* In the window; where there is none but the whole phase, while the lane sends. */
void prober_start(struct dpdk_lane *lane, uint64_t seed)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    bool window = phase->traffic == TRAFFIC_STREAM;
    struct prober *prober = &lane->prober;

    if (prober->count == 0 || request->send_count == 0)
        return;
    prober->until_ns = window ? phase->close_ns : CLOCK_NEVER;
    probe_scheduler_begin(&prober->schedule, 1e9 / (prober->rate_fps * request->send_count),
                          window ? phase->open_ns : phase->start_ns, seed);
    prober->next_ns = prober->schedule.next_ns;
}

/* Sends one frame; whether the driver took it. What it takes of the line the load does without. */
static bool send_frame(struct dpdk_lane *lane, const struct probe *probe, uint32_t cost)
{
    struct port_queue *queue = lane->queue;
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(queue->receive_pool);
    uint32_t length = probe->size - FRAME_FCS;
    uint8_t *frame =
        buffer != NULL ? (uint8_t *)rte_pktmbuf_append(buffer, (uint16_t)length) : NULL;

    if (frame != NULL)
        probe_write(probe, frame);
    if (frame == NULL ||
        rte_eth_tx_burst(lane->port->id, queue->send[PORT_POOLS], &buffer, 1) == 0) {
        rte_pktmbuf_free(buffer);
        lane->lane.request.count->send_refused++;
        return false;
    }
    lane->lane.request.count->probes_sent++;
    lane_push_later(lane, clock_now());
    if (lane->state == LANE_SENDS && lane->forwarder.queue == NULL)
        pace_spend(&lane->sender.pace, cost);
    return true;
}

static void send_probe(struct dpdk_lane *lane)
{
    const struct lane_flow *flow = &lane->lane.request.sends[lane->prober.at];
    struct prober_flow *kept = &lane->prober.flows[lane->prober.flow_of[flow->dst] - 1];
    const struct lane_size *size = &lane->sizes[lane->order[kept->sent % lane->order_count]];
    struct probe probe = {
        .shape = &lane->shape,
        .udp_source = (uint16_t)(kept->sent % lane->receiver.sources),
        .tag = probe_tag(lane->shape.tag),
        .size = size->frame_bytes,
        .sequence = kept->sent,
        .stamp_ns = (uint64_t)(clock_now() - lane->start_ns),
    };

    partner_ends(lane, flow, flow->dst, probe.ends);
    if (send_frame(lane, &probe, size->cost)) {
        kept->sent++;
        lane->prober.under_way++;
    }
}

int64_t prober_turn(struct dpdk_lane *lane, int64_t now_ns)
{
    struct prober *prober = &lane->prober;
    bool over = now_ns >= prober->until_ns || now_ns >= lane->lane.stop_ns;

    if (prober->until_ns == CLOCK_NEVER)
        over = over || lane->state != LANE_SENDS;
    if (over || now_ns < prober->next_ns) {
        prober->next_ns = over ? CLOCK_NEVER : prober->next_ns;
        return prober->next_ns;
    }
    send_probe(lane);
    prober->at = prober->at + 1 < lane->lane.request.send_count ? prober->at + 1 : 0;
    probe_scheduler_step(&prober->schedule, now_ns);
    prober->next_ns = prober->schedule.next_ns;
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

static void measure(struct dpdk_lane *lane, const struct rte_mbuf *buffer,
                    const struct signature *signature)
{
    struct prober *prober = &lane->prober;
    uint32_t flow = prober->count > 0 ? prober->flow_of[be16toh(signature->src)] : 0;
    int64_t took_ns = arrival_ns(&lane->port->arrival, buffer) - lane->start_ns -
                      (int64_t)signature_ns(signature);
    struct prober_flow *kept;
    enum sequence_verdict verdict;

    if (flow == 0)
        return;
    kept = &prober->flows[flow - 1];
    verdict = sequence_judge(&kept->sequence, &kept->past, be32toh(signature->sequence));
    if (verdict != SEQUENCE_FRESH && verdict != SEQUENCE_REORDERED)
        return;
    histogram_add(&kept->histogram, took_ns > 0 ? (uint64_t)took_ns : 0);
    prober->under_way--;
}

bool prober_waits(const struct dpdk_lane *lane)
{
    return lane->port->queue_count == 1 && lane->prober.under_way > 0;
}

void prober_take(struct dpdk_lane *lane, const struct rte_mbuf *buffer)
{
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);

    if (signature->tag == lane->prober.tags[0])
        answer(lane, frame, rte_pktmbuf_data_len(buffer));
    else
        measure(lane, buffer, signature);
}

bool prober_sum(const struct dpdk_lane *lane, const struct lane_flow *flow, struct latency *sum)
{
    const struct prober *prober = &lane->prober;
    uint32_t index = prober->count > 0 ? prober->flow_of[flow->dst] : 0;

    if (index == 0)
        return false;
    histogram_merge(&sum->histogram, &prober->flows[index - 1].histogram);
    sum->sent += prober->flows[index - 1].sent;
    return true;
}
