/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot path of the dpdk transport: frame_hot.h over bursts of mbufs. This file decides whether a
 * received frame is undamaged, and to which stream it belongs. Buffers of the send pool hold the
 * phase's frame before the phase begins, so that sending a frame writes few bytes.
 */
#include "dpdk_lane.h"

#include <rte_lcore.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

typedef struct rte_mbuf *frame_t;

#include "frame_hot.h"

/* --- send --------------------------------------------------------------------------------------*/

/* Return a send buffer's data without reading the mbuf: buffers of this program's pools have no
 * private part and keep their headroom. Received buffers may differ, so pass_data() reads the
 * mbuf. */
static inline uint8_t *tx_data(frame_t frame)
{
    return (uint8_t *)(frame + 1) + RTE_PKTMBUF_HEADROOM;
}

/* Take free buffers from the send pool. rte_mempool_get_bulk() copies pointers one by one and
 * backwards, which is a fifth of the cost of sending a frame through net_null; here the pointers in
 * the core's cache are copied in order. */
static inline int tx_take(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    struct rte_mempool *pool = dpdk_lane_of(lane)->queue->send_pool;
    struct rte_mempool_cache *cache = rte_mempool_default_cache(pool, rte_lcore_id());

    if (unlikely(cache == NULL || cache->len < count))
        return rte_mempool_get_bulk(pool, (void **)frames, count);
    cache->len -= count;
    memcpy(frames, cache->objs + cache->len, count * sizeof *frames);
    return 0;
}

static inline void tx_put_back(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    rte_mempool_put_bulk(dpdk_lane_of(lane)->queue->send_pool, (void **)frames, count);
}

static inline void tx_set(struct frame_lane *lane, frame_t frame,
                          const struct sender_stream *stream, const struct frame_size *size,
                          uint64_t sequence)
{
    const struct dpdk_options *options = dpdk_options(lane->lane.request.phase);
    const struct signature *signature =
        (const struct signature *)(tx_data(frame) + lane->conf.offset);

    (void)stream;
    frame->pkt_len = frame->data_len = size->length;
    if (options->addresses > 1)
        address_write(tx_data(frame), be16toh(signature->dst),
                      options->address_first + (uint32_t)(sequence % options->addresses));
}

static inline uint32_t tx_burst(struct frame_lane *base, frame_t *frames, uint32_t count, bool pass)
{
    struct dpdk_lane *lane = dpdk_lane_of(base);

    return rte_eth_tx_burst(lane->port->id, pass ? lane->queue->pass : lane->queue->send, frames,
                            (uint16_t)count);
}

static inline frame_t pass_frame(struct frame_lane *lane, const struct forward_entry *entry,
                                 uint32_t i, const struct sender_stream *stream)
{
    (void)lane;
    (void)i;
    (void)stream;
    return entry->frame;
}

static inline uint8_t *pass_data(frame_t frame)
{
    return rte_pktmbuf_mtod(frame, uint8_t *);
}

static void fill_buffer(struct rte_mempool *pool, void *context, void *object, unsigned index)
{
    const struct frame_lane *lane = context;
    struct rte_mbuf *buffer = object;
    uint8_t *frame = (uint8_t *)buffer->buf_addr + RTE_PKTMBUF_HEADROOM;
    uint32_t headers = lane->conf.offset + SIGNATURE_BYTES, longest = 0;

    (void)pool;
    (void)index;
    for (uint32_t i = 0; i < lane->size_count; i++)
        longest = RTE_MAX(longest, (uint32_t)lane->sizes[i].length);
    if (longest > headers)
        memcpy(frame + headers, fill_table()->bytes, longest - headers);
    memcpy(frame, &lane->sender.streams[0].template, FRAME_TEMPLATE);
    buffer->data_off = RTE_PKTMBUF_HEADROOM;
    buffer->ol_flags = 0;
    buffer->pkt_len = buffer->data_len = lane->sizes[0].length;
}

void dpdk_prefill(struct dpdk_lane *lane)
{
    if (lane->frame.sender.count > 0 && lane->frame.forwarder.queue == NULL)
        rte_mempool_obj_iter(lane->queue->send_pool, fill_buffer, &lane->frame);
}

bool dpdk_send_single(struct frame_lane *base, uint32_t place, struct frame_template *head,
                      uint32_t length)
{
    struct dpdk_lane *lane = dpdk_lane_of(base);
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(lane->queue->receive_pool);
    uint32_t front = base->conf.offset + SIGNATURE_BYTES;
    uint8_t *frame;

    (void)place;
    if (buffer == NULL)
        return false;
    frame = (uint8_t *)rte_pktmbuf_append(buffer, (uint16_t)length);
    memcpy(frame + front, fill_table()->bytes, length - front);
    memcpy(frame, head->bytes, front);
    if (rte_eth_tx_burst(lane->port->id, lane->queue->pass, &buffer, 1) == 0) {
        rte_pktmbuf_free(buffer);
        return false;
    }
    frame_flush_later(base, clock_now());
    return true;
}

/* --- receive -----------------------------------------------------------------------------------*/

static inline uint32_t rx_burst(struct frame_lane *base, frame_t *frames)
{
    struct dpdk_lane *lane = dpdk_lane_of(base);

    return rte_eth_rx_burst(lane->port->id, lane->queue->number, frames,
                            (uint16_t)base->conf.receive_burst);
}

static inline void rx_prefetch(frame_t frame)
{
    rte_prefetch0(rte_pktmbuf_mtod(frame, const void *));
}

/* Free received buffers. rte_pktmbuf_free_bulk() reads the second cache line of each buffer and
 * copies pointers one by one; here buffers of one pool without other owners are returned in one
 * copy. */
static inline void rx_free(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    uint64_t odd = 0;

    (void)lane;
    for (uint32_t i = 0; i < count; i++)
        odd |= (uint64_t)(frames[i]->refcnt ^ 1u) | (uint64_t)(frames[i]->nb_segs ^ 1u) |
               ((uintptr_t)frames[i]->pool ^ (uintptr_t)frames[0]->pool) |
               (frames[i]->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL));
    if (likely(count > 0 && odd == 0))
        rte_mempool_put_bulk(frames[0]->pool, (void **)frames, count);
    else
        rte_pktmbuf_free_bulk(frames, count);
}

static inline void rx_release(void *frame)
{
    rte_pktmbuf_free(frame);
}

static __rte_always_inline uint32_t source_number(const uint8_t *payload, enum header_kind kind)
{
    return kind == HEADER_L2 ? 0
                             : (uint32_t)be16toh(frame_u16(payload - FRAME_UDP)) - FRAME_UDP_SOURCE;
}

/* Return the stream to which a valid frame of this phase belongs; NULL: the frame is damaged, or
 * belongs to no stream of the lane. */
static __rte_always_inline struct receiver_stream *stream_of(const struct dpdk_lane *lane,
                                                             const uint8_t *frame, uint32_t length,
                                                             enum header_kind kind)
{
    const struct receiver *receiver = &lane->frame.receiver;
    const uint8_t *payload = frame + lane->check.payload;
    const struct signature *signature = (const struct signature *)payload;
    uint32_t flow, source;
    uint8_t size;

    if (unlikely(length > FRAME_SIZE_MAX))
        return NULL;
    size = lane->frame.size_of_length[length];
    if (unlikely(size == FRAME_NO_SIZE) ||
        unlikely(((signature->tag ^ receiver->tag) | (signature->dst ^ receiver->rank)) != 0) ||
        unlikely(!frame_sound(&lane->check, &lane->expect[size], frame, kind)))
        return NULL;
    flow = receiver->flow_of[be16toh(signature->src)];
    source = source_number(payload, kind);
    if (unlikely(flow == 0 || source >= receiver->sources))
        return NULL;
    return &receiver->streams[(size_t)(flow - 1) * receiver->sources + source];
}

/* Return whether a frame has the same first bytes as the last fully verified frame, and a valid
 * signature and fill; the headers of such a frame need no verification. Used for lanes with one
 * stream. */
static __rte_always_inline bool begins_as_verified(const struct dpdk_lane *lane,
                                                   const uint8_t *frame, uint32_t length,
                                                   enum header_kind kind)
{
    const struct verified_start *verified = &lane->verified;
    const struct frame_check *check = &lane->check;

    return likely(length == verified->length) &&
           likely(frame_starts(check, verified->start, frame, kind)) &&
           likely(signature_sound((const struct signature *)(frame + check->payload))) &&
           likely(frame_filled(check, verified->expect, frame));
}

/* Store the first bytes of a fully verified frame, for begins_as_verified(). */
static __rte_noinline void keep_start(struct dpdk_lane *lane, const uint8_t *frame, uint32_t length)
{
    if (!signature_sound((const struct signature *)(frame + lane->check.payload)))
        return; /* two errors that cancel out */
    lane->verified.length = length;
    lane->verified.expect = &lane->expect[lane->frame.size_of_length[length]];
    memcpy(lane->verified.start, frame + lane->check.network - 2,
           frame_start_bytes(lane->shape.kind));
}

HOT_INLINE bool rx_classify(struct frame_lane *base, frame_t buffer, unsigned kind,
                            enum hot_receive how, struct received *ours)
{
    struct dpdk_lane *lane = dpdk_lane_of(base);
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    uint32_t length = rte_pktmbuf_data_len(buffer);
    bool one = (how & HOT_ONE_STREAM) != 0;

    if (one && begins_as_verified(lane, frame, length, (enum header_kind)kind)) {
        ours->stream = base->receiver.streams;
    } else {
        ours->stream = stream_of(lane, frame, length, (enum header_kind)kind);
        if (unlikely(ours->stream == NULL))
            return false;
        if (one)
            keep_start(lane, frame, length);
        else
            rte_prefetch0(ours->stream);
    }
    ours->signature = (const struct signature *)(frame + lane->check.payload);
    ours->length = length;
    return true;
}

bool dpdk_is_sound(const struct frame_lane *base, const struct frame_seen *seen)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    struct frame_expect expect;

    frame_expect(&expect, &lane->shape, seen->length);
    return frame_sound(&lane->check, &expect, (const uint8_t *)seen->signature - base->conf.offset,
                       lane->shape.kind);
}

/* Return whether a frame has the phase's protocol. Frames of other protocols have other data in
 * place of the signature, such as the header that an ICMP message quotes; these data may resemble a
 * damaged signature, but not a valid one. */
static bool is_of_protocol(const uint8_t *network, enum header_kind kind)
{
    uint16_t type = be16toh(frame_u16(network - 2));

    switch (kind) {
    case HEADER_L2:
        return type == FRAME_TYPE_L2;
    case HEADER_IPV4_UDP:
        return type == FRAME_TYPE_IPV4 && network[9] == IPPROTO_UDP;
    default:
        return type == FRAME_TYPE_IPV6 && network[6] == IPPROTO_UDP;
    }
}

static bool rx_see(const struct frame_lane *base, frame_t buffer, struct frame_seen *seen)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);

    *seen = (struct frame_seen){
        .signature = (const struct signature *)(frame + base->conf.offset),
        .length = rte_pktmbuf_data_len(buffer),
        .mac = frame + FRAME_MAC,
    };
    if (seen->length < base->conf.offset + SIGNATURE_BYTES)
        return false;
    seen->ours = memcmp(frame, lane->port->responder.mac, FRAME_MAC) == 0 &&
                 (is_of_protocol(frame + lane->check.network, lane->shape.kind) ||
                  signature_sound(seen->signature));
    seen->source = (uint16_t)source_number((const uint8_t *)seen->signature, lane->shape.kind);
    return true;
}

static __rte_noinline void rx_unexpected(struct frame_lane *lane, frame_t buffer, int64_t now_ns)
{
    struct frame_seen seen;

    if (queue_handle_control_frame(dpdk_lane_of(lane)->queue, buffer))
        return;
    if (rx_see(lane, buffer, &seen))
        frame_lane_unexpected(lane, &seen, now_ns);
    else
        lane->lane.request.count->foreign++;
}

/* --- variants ----------------------------------------------------------------------------------*/

#define SENDS(name, variant)                                                                       \
    static int64_t name(struct frame_lane *lane, int64_t now_ns)                                   \
    {                                                                                              \
        return hot_send(lane, now_ns, variant);                                                    \
    }
SENDS(send_one, HOT_ONE)
SENDS(send_many, HOT_MANY)
SENDS(send_mixed, HOT_MIXED)

frame_send dpdk_choose_send(const struct frame_lane *lane, const char **name)
{
    if (lane->forwarder.queue != NULL) {
        *name = "received ones";
        return hot_forward;
    }
    if (lane->size_count > 1 || sender_has_turns(&lane->sender) ||
        dpdk_options(lane->lane.request.phase)->addresses > 1) {
        *name = "mixed";
        return send_mixed;
    }
    /* A receiver of the buffer itself, such as a forwarder, may have rewritten its headers. */
    if (lane->sender.count == 1 && !((const struct dpdk_lane *)lane)->port->by_reference) {
        *name = "one";
        return send_one;
    }
    *name = "many";
    return send_many;
}

#define RECEIVES(name, kind, bits)                                                                 \
    static uint32_t name(struct frame_lane *lane, int64_t now_ns)                                  \
    {                                                                                              \
        return hot_receive(lane, now_ns, kind, (enum hot_receive)(bits));                          \
    }
#define VARIANTS(name, kind, ends)                                                                 \
    RECEIVES(name, kind, ends)                                                                     \
    RECEIVES(name##_one, kind, HOT_ONE_STREAM | (ends))                                            \
    RECEIVES(name##_timed, kind, HOT_TIMED | (ends))                                               \
    RECEIVES(name##_one_timed, kind, HOT_ONE_STREAM | HOT_TIMED | (ends))                          \
    RECEIVES(name##_sampled, kind, HOT_TIMED | HOT_SAMPLED | (ends))
#define ROWS(name, ends)                                                                           \
    [ends] = (name), [HOT_ONE_STREAM | (ends)] = name##_one, [HOT_TIMED | (ends)] = name##_timed,  \
    [HOT_ONE_STREAM | HOT_TIMED | (ends)] = name##_one_timed,                                      \
    [HOT_TIMED | HOT_SAMPLED | (ends)] = name##_sampled
VARIANTS(receive_l2, HEADER_L2, 0)
VARIANTS(receive_ipv4, HEADER_IPV4_UDP, 0)
VARIANTS(receive_ipv6, HEADER_IPV6_UDP, 0)
VARIANTS(forward_l2, HEADER_L2, HOT_FORWARD)
VARIANTS(forward_ipv4, HEADER_IPV4_UDP, HOT_FORWARD)
VARIANTS(forward_ipv6, HEADER_IPV6_UDP, HOT_FORWARD)

frame_receive dpdk_choose_receive(const struct frame_lane *lane)
{
    static const frame_receive variants[][HOT_RECEIVE_WAYS] = {
        [HEADER_L2] = {ROWS(receive_l2, 0), ROWS(forward_l2, HOT_FORWARD)},
        [HEADER_IPV4_UDP] = {ROWS(receive_ipv4, 0), ROWS(forward_ipv4, HOT_FORWARD)},
        [HEADER_IPV6_UDP] = {ROWS(receive_ipv6, 0), ROWS(forward_ipv6, HOT_FORWARD)},
    };

    if (lane->prober.pingpong)
        return hot_receive_pingpong;
    return variants[((const struct dpdk_lane *)lane)->shape.kind][hot_receive_way(lane)];
}
