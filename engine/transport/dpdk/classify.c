/* SPDX-License-Identifier: BSD-3-Clause */
#include "classify.h"

#include "prober.h"

void classify_keep_start(struct dpdk_lane *lane, const uint8_t *frame, uint32_t length)
{
    struct receiver *receiver = &lane->receiver;
    const uint8_t *start = frame + receiver->check.network - 2;

    if (!signature_sound((const struct signature *)(frame + receiver->check.payload)))
        return; /* two errors that make up for each other */
    receiver->verified.length = length;
    receiver->verified.expect = &lane->sizes[lane->size_of_length[length]].expect;
    memcpy(receiver->verified.start, start, frame_start_bytes(lane->shape.kind));
}

void classify_misdelivered(struct port_count *count, const struct signature *signature, bool probe)
{
    struct misdelivered_flow flow = {1, be16toh(signature->src), be16toh(signature->dst)};

    if (probe) {
        count->probes_received++;
        return;
    }
    count->misdelivered++;
    misdelivered_add(&count->misdelivered_flows, &flow);
}

/* The number + 1 of the flow of a frame whose signature is damaged: by rank, else by the sender's
 * address; 0: none. */
static uint32_t flow_of_damaged(const struct receiver *receiver, const uint8_t *frame,
                                uint16_t rank)
{
    uint32_t flow = flow_from(receiver, rank);

    for (uint32_t i = 0; flow == 0 && i < receiver->count; i++)
        if (memcmp(receiver->macs[i], frame + FRAME_MAC, FRAME_MAC) == 0)
            flow = i + 1;
    return flow;
}

static bool probe_sound(const struct dpdk_lane *lane, const uint8_t *frame, uint32_t length)
{
    uint8_t size = length <= FRAME_SIZE_MAX ? lane->size_of_length[length] : LANE_NO_SIZE;

    return size != LANE_NO_SIZE &&
           frame_sound(&lane->receiver.check, &lane->sizes[size].expect, frame, lane->shape.kind);
}

/* A sound signature says what the frame is; a broken one with most of our marks on it is a damaged
 * frame of ours. */
void classify_unexpected(struct dpdk_lane *lane, const struct rte_mbuf *buffer, int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;
    struct port_count *count = lane->lane.request.count;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + receiver->check.payload);
    uint32_t flow;
    bool whole, tagged, here, probe, ours;

    if (queue_handle_control_frame(lane->queue, buffer))
        return;
    if (rte_pktmbuf_data_len(buffer) < receiver->check.payload + SIGNATURE_BYTES) {
        count->foreign++;
        return;
    }
    whole = signature_sound(signature);
    probe = whole ? prober_knows(&lane->prober, signature->tag)
                  : prober_resembles(&lane->prober, signature->tag);
    tagged = signature->tag == receiver->tag || probe;
    here = signature->dst == (probe ? receiver->own : receiver->rank);
    ours = memcmp(frame, lane->port->responder.mac, FRAME_MAC) == 0;
    flow = whole ? flow_from(receiver, be16toh(signature->src))
                 : flow_of_damaged(receiver, frame, be16toh(signature->src));
    if (tagged && whole && !here && signature->src != receiver->own) {
        classify_misdelivered(count, signature, probe);
    } else if (probe && ours && here && probe_sound(lane, frame, rte_pktmbuf_data_len(buffer)) &&
               !prober_take(lane, buffer)) {
        count->foreign++;
    } else if (probe && ours) {
        count->probes_received++; /* a damaged one is missing: lost */
    } else if (flow != 0 && ours && (tagged || (here && !whole))) {
        receiver->streams[(size_t)(flow - 1) * receiver->sources].side->corrupted++;
        lane->lane.arrived_ns = now_ns;
    } else {
        count->foreign++;
    }
}
