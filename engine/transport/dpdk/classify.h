/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose is a received frame, and is it sound? The first of three passes over a burst (rx.c). A
 * frame that is one of ours and sound has a stream; any other is counted here, and done with.
 */
#ifndef ENGINE_DPDK_CLASSIFY_H
#define ENGINE_DPDK_CLASSIFY_H

#include "lane_state.h"

#include <rte_prefetch.h>

static inline const struct signature *received_signature(const struct receiver *receiver,
                                                         const struct rte_mbuf *frame)
{
    return rte_pktmbuf_mtod_offset(frame, const struct signature *, receiver->check.payload);
}

/* The number + 1 of the flow that comes from a rank; 0: none. */
static inline uint32_t flow_from(const struct receiver *receiver, uint16_t rank)
{
    return receiver->flow_of[rank];
}

static __rte_always_inline bool frame_sound(const struct frame_check *check,
                                            const struct frame_expect *expect, const uint8_t *frame,
                                            enum header_kind kind)
{
    switch (kind) {
    case HEADER_L2:
        return frame_sound_l2(check, expect, frame);
    case HEADER_IPV4_UDP:
        return frame_sound_ipv4(check, expect, frame);
    default:
        return frame_sound_ipv6(check, expect, frame);
    }
}

/* Which of its flow's streams: by UDP source port. */
static __rte_always_inline uint32_t stream_number(const struct receiver *receiver,
                                                  const uint8_t *frame, enum header_kind kind)
{
    const uint8_t *udp = frame + receiver->check.payload - FRAME_UDP;

    return kind == HEADER_L2 ? 0 : (uint32_t)be16toh(frame_u16(udp)) - FRAME_UDP_SOURCE;
}

/* The stream of a frame that is one of ours and sound; NULL: it is not. */
static __rte_always_inline struct receiver_stream *
classify(const struct dpdk_lane *lane, const uint8_t *frame, uint32_t length, enum header_kind kind)
{
    const struct receiver *receiver = &lane->receiver;
    const struct signature *signature = (const struct signature *)(frame + receiver->check.payload);
    uint32_t flow, stream;
    uint8_t size;

    if (unlikely(length > FRAME_SIZE_MAX))
        return NULL;
    size = lane->size_of_length[length];
    if (unlikely(size == LANE_NO_SIZE) ||
        unlikely(((signature->tag ^ receiver->tag) | (signature->dst ^ receiver->rank)) != 0) ||
        unlikely(!frame_sound(&receiver->check, &lane->sizes[size].expect, frame, kind)))
        return NULL;
    flow = flow_from(receiver, be16toh(signature->src));
    stream = stream_number(receiver, frame, kind);
    if (unlikely(flow == 0 || stream >= receiver->sources))
        return NULL;
    return &receiver->streams[(size_t)(flow - 1) * receiver->sources + stream];
}

/* Where there is one stream only: whether the frame begins as the last one that was verified in
 * full, and is sound behind that. Its headers need not be summed again. */
static __rte_always_inline bool begins_as_verified(const struct receiver *receiver,
                                                   const uint8_t *frame, uint32_t length,
                                                   enum header_kind kind)
{
    const struct receiver_verified *verified = &receiver->verified;
    const struct frame_check *check = &receiver->check;

    return likely(length == verified->length) &&
           likely(frame_starts(check, verified->start, frame, kind)) &&
           likely(signature_sound((const struct signature *)(frame + check->payload))) &&
           likely(frame_filled(check, verified->expect, frame));
}

/* Keeps how a frame that was verified in full begins. */
void classify_keep_start(struct dpdk_lane *lane, const uint8_t *frame, uint32_t length);

/* Counts a frame that is not as our flows send them: a control frame, a probe, damaged,
 * misdelivered or foreign. */
void classify_unexpected(struct dpdk_lane *lane, const struct rte_mbuf *buffer, int64_t now_ns);

/* Counts a frame of this phase for another rank. `probe`: it is no load (a probe, an answer), and
 * is missed, and lost, elsewhere. */
void classify_misdelivered(struct port_count *count, const struct signature *signature, bool probe);

#endif
