/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: a burst is taken, each frame judged, accounted and let go (or handed to the
 * forwarder). A frame counts once: delivered (fresh or reordered), duplicated, late, corrupted,
 * misdelivered, the guest's, or foreign; so the sum is what the driver received.
 *
 * One body, of which the compiler makes a variant by header kind and role.
 */
#include "lane.h"

#include <rte_ethdev.h>
#include <rte_prefetch.h>

static inline uint32_t slot_of(const struct receiver *receiver, uint16_t src)
{
    return (src * UINT32_C(0x9e3779b1)) >> 8 & receiver->mask;
}

/* The flow that comes from a rank (as on the wire); NULL: none. */
static inline struct receiver_flow *find(const struct receiver *receiver, uint16_t src)
{
    for (uint32_t at = slot_of(receiver, src);; at = (at + 1) & receiver->mask) {
        uint32_t index = receiver->slots[at];

        if (index == 0)
            return NULL;
        if (receiver->flows[index - 1].src == src)
            return &receiver->flows[index - 1];
    }
}

void receiver_add(struct receiver *receiver, uint32_t index)
{
    uint32_t at = slot_of(receiver, receiver->flows[index].src);

    while (receiver->slots[at] != 0)
        at = (at + 1) & receiver->mask;
    receiver->slots[at] = index + 1;
}

/* Whose frame one with a damaged signature was: by rank, else by the sender's address. */
static struct receiver_flow *guess(const struct receiver *receiver, const uint8_t *frame,
                                   uint16_t src)
{
    struct receiver_flow *flow = find(receiver, src);

    for (uint32_t i = 0; flow == NULL && i < receiver->count; i++)
        if (memcmp(receiver->flows[i].mac, frame + FRAME_MAC, FRAME_MAC) == 0)
            flow = &receiver->flows[i];
    return flow;
}

/* A frame that is not as our flows send them. A sound signature says what it is; a broken one
 * with most of our marks on it is a damaged frame of ours. */
static void stray(struct dpdk_lane *lane, const struct rte_mbuf *buffer, int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;
    struct port_count *count = lane->lane.request.count;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + receiver->check.payload);
    struct receiver_flow *flow;
    bool whole, tagged, here;

    if (port_hear(lane->queue, buffer))
        return;
    if (rte_pktmbuf_data_len(buffer) < receiver->check.payload + SIGNATURE_BYTES) {
        count->foreign++;
        return;
    }
    whole = signature_sound(signature);
    tagged = signature->tag == receiver->tag;
    here = signature->dst == receiver->rank;
    flow = whole ? find(receiver, signature->src) : guess(receiver, frame, signature->src);
    if (tagged && whole && !here && signature->src != receiver->rank) {
        count->misdelivered++;
    } else if (flow != NULL && memcmp(frame, lane->port->guest.mac, FRAME_MAC) == 0 &&
               (tagged || (here && !whole))) {
        flow->side->corrupted++;
        lane->lane.arrived_ns = now_ns;
    } else {
        count->foreign++;
    }
}

static __rte_always_inline bool sound(const struct receiver *receiver, const uint8_t *frame,
                                      uint32_t length, enum header_kind kind)
{
    switch (kind) {
    case HEADER_L2:
        return frame_sound_l2(&receiver->check, frame, length);
    case HEADER_IPV4_UDP:
        return frame_sound_ipv4(&receiver->check, frame, length);
    default:
        return frame_sound_ipv6(&receiver->check, frame, length);
    }
}

static __rte_always_inline uint32_t stream_of(const struct receiver *receiver, const uint8_t *frame,
                                              enum header_kind kind)
{
    const uint8_t *udp = frame + receiver->check.payload - FRAME_UDP;

    return kind == HEADER_L2 ? 0 : (uint32_t)be16toh(frame_u16(udp)) - FRAME_UDP_SOURCE;
}

/* Accounts a sound frame by its sequence; returns whether it is delivered. */
static inline bool account(struct receiver *receiver, struct receiver_flow *flow, uint32_t stream,
                           const struct signature *signature)
{
    switch (sequence_judge(&flow->streams[stream], be32toh(signature->sequence))) {
    case SEQUENCE_DUPLICATE:
        flow->side->duplicated++;
        return false;
    case SEQUENCE_LATE:
        flow->side->late++;
        return false;
    case SEQUENCE_REORDERED:
        flow->side->reordered++;
        break;
    default:
        break;
    }
    receiver->left -= receiver->left != UINT64_MAX && receiver->left > 0;
    return true;
}

static __rte_always_inline uint32_t receive(struct dpdk_lane *lane, int64_t now_ns,
                                            enum header_kind kind, bool forwards)
{
    struct receiver *receiver = &lane->receiver;
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint16_t count = rte_eth_rx_burst(lane->port->id, lane->queue->number, frames,
                                      (uint16_t)lane->receive_burst);
    uint32_t keep = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *frame = rte_pktmbuf_mtod(frames[i], const uint8_t *);
        const struct signature *signature =
            (const struct signature *)(frame + receiver->check.payload);
        uint32_t length = rte_pktmbuf_data_len(frames[i]);
        uint8_t size = lane->size_of_length[RTE_MIN(length, FRAME_SIZE_MAX)];
        struct receiver_flow *flow = NULL;
        struct forward_entry entry = {frames[i], 0, size};

        if (i + 1u < count)
            rte_prefetch0(rte_pktmbuf_mtod(frames[i + 1], const void *));
        if (size != LANE_NO_SIZE && signature->tag == receiver->tag &&
            signature->dst == receiver->rank)
            flow = find(receiver, signature->src);
        if (flow == NULL || !sound(receiver, frame, length, kind) ||
            (entry.stream = stream_of(receiver, frame, kind)) >= receiver->sources) {
            stray(lane, frames[i], now_ns);
        } else {
            lane->lane.arrived_ns = now_ns;
            if (account(receiver, flow, entry.stream, signature)) {
                lane_count(flow->side, &lane->sizes[size], now_ns);
                if (forwards && forwarder_take(lane, &entry))
                    continue;
            }
        }
        frames[keep++] = frames[i];
    }
    rte_pktmbuf_free_bulk(frames, keep);
    return count;
}

#define VARIANT(name, kind, forwards)                                                              \
    static uint32_t name(struct dpdk_lane *lane, int64_t now_ns)                                   \
    {                                                                                              \
        return receive(lane, now_ns, kind, forwards);                                              \
    }
VARIANT(receive_l2, HEADER_L2, false)
VARIANT(receive_ipv4, HEADER_IPV4_UDP, false)
VARIANT(receive_ipv6, HEADER_IPV6_UDP, false)
VARIANT(forward_l2, HEADER_L2, true)
VARIANT(forward_ipv4, HEADER_IPV4_UDP, true)
VARIANT(forward_ipv6, HEADER_IPV6_UDP, true)

uint32_t (*receiver_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t)
{
    static uint32_t (*const variants[][2])(struct dpdk_lane *, int64_t) = {
        [HEADER_L2] = {receive_l2, forward_l2},
        [HEADER_IPV4_UDP] = {receive_ipv4, forward_ipv4},
        [HEADER_IPV6_UDP] = {receive_ipv6, forward_ipv6},
    };

    return variants[lane->shape.kind][lane->forwarder.queue != NULL];
}
