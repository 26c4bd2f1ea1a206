/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: passes over a burst. Each frame is classified (is it sound, whose is it?); each of
 * ours is accounted by its sequence; where delays are measured a third pass measures those of the
 * delivered; then frames are freed, or handed to the forwarder. With many flows a stream's line
 * lies in no near cache: the first pass asks for it, the second finds it there.
 *
 * A frame counts once: delivered (fresh or reordered), duplicated, late, forged, corrupted,
 * misdelivered, the responder's, or foreign; so the sum is what the driver received.
 *
 * The compiler makes a variant by header kind and by what the phase needs.
 */
#include "rx.h"

#include "classify.h"
#include "forward.h"

#include <rte_ethdev.h>

#define AHEAD 4u /* frames whose first bytes are asked for before they are looked at */

/* Variants. */
enum how {
    ONE_STREAM = 1, /* there is one only */
    TIMED = 2,      /* each delivered frame's delay is measured ... */
    SAMPLED = 4,    /* ... with TIMED: of two sequence numbers of each LANE_SAMPLE_OF only */
    FORWARD = 8,    /* delivered frames are sent on */
};
#define WAYS 16 /* of combining them */

struct burst {
    struct rte_mbuf *frames[PORT_BURST_MAX];
    struct received ours[PORT_BURST_MAX];        /* after the second pass: those delivered */
    struct forward_entry passed[PORT_BURST_MAX]; /* FORWARD: those delivered */
    uint32_t count;
    uint32_t delivered;
    uint32_t kept; /* FORWARD: the first so many of `frames` are freed */
};

static inline struct delay_stats *delay_stats_of(const struct receiver *receiver,
                                                 const struct receiver_stream *stream)
{
    return &receiver->delay_stats[stream - receiver->streams];
}

/* The first two: neighbours, whose delays can be compared. */
static inline bool sampled(uint32_t sequence)
{
    return sequence % LANE_SAMPLE_OF < 2;
}

/* --- classify ----------------------------------------------------------------------------------*/

static __rte_always_inline bool classify_frame(struct dpdk_lane *lane, struct rte_mbuf *buffer,
                                               enum header_kind kind, enum how how,
                                               struct received *ours)
{
    const struct receiver *receiver = &lane->receiver;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    uint32_t length = rte_pktmbuf_data_len(buffer);
    bool one = (how & ONE_STREAM) != 0;

    if (one && begins_as_verified(receiver, frame, length, kind)) {
        ours->stream = receiver->streams;
    } else {
        ours->stream = classify(lane, frame, length, kind);
        if (unlikely(ours->stream == NULL))
            return false;
        if (one)
            classify_keep_start(lane, frame, length);
        else
            rte_prefetch0(ours->stream);
    }
    ours->frame = buffer;
    ours->sequence = be32toh(received_signature(receiver, buffer)->sequence);
    ours->length = length;
    if ((how & TIMED) != 0 && !one && ((how & SAMPLED) == 0 || unlikely(sampled(ours->sequence))))
        rte_prefetch0(delay_stats_of(receiver, ours->stream));
    return true;
}

/* --- account -----------------------------------------------------------------------------------*/

/* One whose number is behind the greatest; returns whether it is delivered. */
static inline bool account_earlier(const struct receiver *receiver, struct receiver_stream *stream,
                                   uint32_t sequence)
{
    size_t place = (size_t)(stream - receiver->streams);
    struct reordered_frame frame = {.number = sequence_unwrap(stream->sequence.next, sequence),
                                    .arrival = stream->frames + 1};
    enum sequence_verdict verdict =
        sequence_judge(&stream->sequence, &receiver->pasts[place], sequence);

    stream->side->duplicated += verdict == SEQUENCE_DUPLICATE;
    stream->side->late += verdict == SEQUENCE_LATE;
    if (verdict != SEQUENCE_REORDERED)
        return false;
    stream->side->reordered++;
    reordering_add(&receiver->reorderings[place], &stream->missing, &frame,
                   &stream->side->reordering);
    return true;
}

/* One that is not the next, or begins a word; returns whether it is delivered. What it touches
 * beside the stream's line lies in no near cache: no branch waits for that where none must. */
static __rte_noinline bool account_out_of_order(const struct receiver *receiver,
                                                const struct received *frame, int64_t now_ns)
{
    struct receiver_stream *stream = frame->stream;
    size_t place = (size_t)(stream - receiver->streams);
    uint64_t next = stream->sequence.next;
    int32_t ahead = (int32_t)(frame->sequence - (uint32_t)next);
    int64_t sent_ns;

    if (ahead < 0)
        return account_earlier(receiver, stream, frame->sequence);
    sent_ns = sequence_limit_stamp(&receiver->limit,
                                   signature_ns(received_signature(receiver, frame->frame)),
                                   stream->stamp_ns, now_ns);
    if (ahead > (int32_t)SEQUENCE_WINDOW &&
        !sequence_limit_allows(&receiver->limit, ahead, sent_ns - stream->stamp_ns,
                               stream->frames > 0 ? stream->last_ns : 0, now_ns)) {
        stream->side->forged++;
        return false;
    }
    stream->stamp_ns = sent_ns;
    sequence_mark(&stream->sequence, &receiver->pasts[place], next + (uint32_t)ahead);
    if (ahead > 0) {
        reordering_gap(&receiver->reorderings[place], &stream->missing, &stream->sequence, next,
                       stream->frames + 1);
        stream->side->gap_ns = RTE_MAX(stream->side->gap_ns, sent_ns);
    }
    if (stream->frames == 0 && stream->side->first_ns == 0)
        stream->side->first_ns = now_ns; /* `next` was 0: none came by the short way */
    return true;
}

/* Accounts a frame by its sequence; returns whether it is delivered. */
static __rte_always_inline bool account(const struct receiver *receiver, struct received *frame,
                                        int64_t now_ns, enum how how)
{
    struct receiver_stream *stream = frame->stream;

    if ((how & TIMED) != 0)
        frame->ahead = (int32_t)(frame->sequence - (uint32_t)stream->sequence.next);
    if (!sequence_follows(&stream->sequence, frame->sequence) &&
        !account_out_of_order(receiver, frame, now_ns))
        return false;
    stream->frames++;
    stream->bytes += frame->length;
    stream->last_ns = now_ns;
    return true;
}

bool receiver_judge(const struct receiver *receiver, struct received *frame, int64_t now_ns)
{
    return account(receiver, frame, now_ns, (enum how)0);
}

/* --- passes ------------------------------------------------------------------------------------*/

static __rte_always_inline void keep_for_forwarder(const struct receiver *receiver,
                                                   struct burst *burst, const struct received *one,
                                                   enum how how)
{
    if ((how & TIMED) != 0)
        burst->ours[burst->delivered] = *one;
    burst->passed[burst->delivered++] = (struct forward_entry){
        .frame = one->frame,
        .stream = (uint32_t)(one->stream - receiver->streams),
        .length = one->length,
    };
}

/* First pass; returns how many frames are ours. The few streams that are forwarded are near: they
 * are accounted at once. */
static __rte_always_inline uint32_t classify_burst(struct dpdk_lane *lane, struct burst *burst,
                                                   int64_t now_ns, enum header_kind kind,
                                                   enum how how)
{
    struct rte_mbuf **frames = burst->frames;
    uint32_t ours = 0;

    for (uint32_t i = 0; i < RTE_MIN(burst->count, AHEAD); i++)
        rte_prefetch0(rte_pktmbuf_mtod(frames[i], const void *));
    for (uint32_t i = 0; i < burst->count; i++) {
        struct received one;
        bool is_ours;

        if (i + AHEAD < burst->count)
            rte_prefetch0(rte_pktmbuf_mtod(frames[i + AHEAD], const void *));
        is_ours = likely(classify_frame(lane, frames[i], kind, how, &one));
        if (unlikely(!is_ours))
            classify_unexpected(lane, frames[i], now_ns);
        if ((how & FORWARD) == 0) {
            if (is_ours)
                burst->ours[ours++] = one;
            continue;
        }
        ours += is_ours;
        if (likely(is_ours) && likely(account(&lane->receiver, &one, now_ns, how)))
            keep_for_forwarder(&lane->receiver, burst, &one, how);
        else
            frames[burst->kept++] = frames[i];
    }
    return ours;
}

/* Second pass; the delivered are kept where the next one needs them. */
static __rte_always_inline void account_burst(const struct receiver *receiver, struct burst *burst,
                                              uint32_t count, int64_t now_ns, enum how how)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!account(receiver, &burst->ours[i], now_ns, how))
            continue;
        if ((how & TIMED) != 0 && unlikely(burst->delivered < i))
            burst->ours[burst->delivered] = burst->ours[i];
        burst->delivered++;
    }
}

/* How many frames of the only stream, from the first on, are in order and came with one stamp: a
 * burst of the sender's is mostly a burst here, too. */
static inline uint32_t sent_together(const struct receiver *receiver, const struct received *frames,
                                     uint32_t count)
{
    uint64_t stamp_ns = signature_ns(received_signature(receiver, frames->frame));
    uint32_t together = 1;

    while (frames->ahead >= 0 && together < count && frames[together].ahead == 0 &&
           signature_ns(received_signature(receiver, frames[together].frame)) == stamp_ns)
        together++;
    return together;
}

/* Third pass, over the delivered. Of many flows, whose times lie in no near cache, two neighbours
 * say how delays vary; the first is not compared with the one before. */
static __rte_always_inline void measure_burst(const struct receiver *receiver,
                                              const struct received *frames, uint32_t count,
                                              int64_t came_ns, enum how how)
{
    for (uint32_t i = 0, together = 1; i < count; i += together) {
        struct delay_stats *stats = delay_stats_of(receiver, frames[i].stream);
        uint64_t delay_ns;

        if ((how & SAMPLED) != 0 && likely(!sampled(frames[i].sequence)))
            continue;
        if ((how & SAMPLED) != 0 && frames[i].sequence % LANE_SAMPLE_OF == 0)
            delay_stats_restart(stats, receiver->buckets);
        delay_ns =
            delay_stats_delay(came_ns, signature_ns(received_signature(receiver, frames[i].frame)));
        delay_stats_add(stats, receiver->buckets, delay_ns, frames[i].ahead);
        if ((how & ONE_STREAM) == 0)
            continue;
        together = sent_together(receiver, &frames[i], count - i);
        if (together > 1)
            delay_stats_follow(stats, receiver->buckets, delay_ns, together - 1);
    }
}

/* --- burst -------------------------------------------------------------------------------------*/

/* Streams that are not yet behind the last end of the window are accounted before they change. */
static __rte_noinline void account_before(struct dpdk_lane *lane, const struct received *frames,
                                          uint32_t count)
{
    const struct receiver *receiver = &lane->receiver;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (uint32_t)(frames[i].stream - receiver->streams);

        if (receiver->accounting.streams[number].marks != receiver->accounting.marks)
            receiver_account_stream(lane, number);
    }
}

static __rte_always_inline uint32_t receive(struct dpdk_lane *lane, int64_t now_ns,
                                            enum header_kind kind, enum how how)
{
    struct receiver *receiver = &lane->receiver;
    struct burst burst;
    uint32_t ours;
    int64_t came_ns = 0;

    burst.delivered = burst.kept = 0;
    burst.count = rte_eth_rx_burst(lane->port->id, lane->queue->number, burst.frames,
                                   (uint16_t)lane->receive_burst);
    if (burst.count == 0)
        return 0;
    if ((how & TIMED) != 0)
        came_ns = clock_now() - lane->start_ns;
    ours = classify_burst(lane, &burst, now_ns, kind, how);
    if ((how & FORWARD) == 0 && unlikely(receiver->accounting.marked))
        account_before(lane, burst.ours, ours);
    if ((how & FORWARD) == 0)
        account_burst(receiver, &burst, ours, now_ns, how);
    if ((how & TIMED) != 0)
        measure_burst(receiver, burst.ours, burst.delivered, came_ns, how);
    if (ours > 0)
        lane->lane.arrived_ns = now_ns;
    if (receiver->left != UINT64_MAX)
        receiver->left -= RTE_MIN(receiver->left, burst.delivered);
    rte_pktmbuf_free_bulk(burst.frames, (how & FORWARD) != 0 ? burst.kept : burst.count);
    if ((how & FORWARD) != 0)
        forwarder_pass(lane, burst.passed, burst.delivered, now_ns);
    return burst.count;
}

#define VARIANT(name, kind, bits)                                                                  \
    static uint32_t name(struct dpdk_lane *lane, int64_t now_ns)                                   \
    {                                                                                              \
        return receive(lane, now_ns, kind, (enum how)(bits));                                      \
    }
#define VARIANTS(name, kind, ends)                                                                 \
    VARIANT(name, kind, ends)                                                                      \
    VARIANT(name##_one, kind, ONE_STREAM | (ends))                                                 \
    VARIANT(name##_timed, kind, TIMED | (ends))                                                    \
    VARIANT(name##_one_timed, kind, ONE_STREAM | TIMED | (ends))                                   \
    VARIANT(name##_sampled, kind, TIMED | SAMPLED | (ends))
#define ROWS(name, ends)                                                                           \
    [ends] = (name), [ONE_STREAM | (ends)] = name##_one, [TIMED | (ends)] = name##_timed,          \
    [ONE_STREAM | TIMED | (ends)] = name##_one_timed, [TIMED | SAMPLED | (ends)] = name##_sampled
VARIANTS(receive_l2, HEADER_L2, 0)
VARIANTS(receive_ipv4, HEADER_IPV4_UDP, 0)
VARIANTS(receive_ipv6, HEADER_IPV6_UDP, 0)
VARIANTS(forward_l2, HEADER_L2, FORWARD)
VARIANTS(forward_ipv4, HEADER_IPV4_UDP, FORWARD)
VARIANTS(forward_ipv6, HEADER_IPV6_UDP, FORWARD)

uint32_t (*receiver_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t)
{
    static uint32_t (*const variants[][WAYS])(struct dpdk_lane *, int64_t) = {
        [HEADER_L2] = {ROWS(receive_l2, 0), ROWS(forward_l2, FORWARD)},
        [HEADER_IPV4_UDP] = {ROWS(receive_ipv4, 0), ROWS(forward_ipv4, FORWARD)},
        [HEADER_IPV6_UDP] = {ROWS(receive_ipv6, 0), ROWS(forward_ipv6, FORWARD)},
    };
    unsigned how = lane->timing ? TIMED : 0;

    if (lane->receiver.count == 1 && lane->receiver.sources == 1)
        how |= ONE_STREAM;
    else if (lane->timing && lane->receiver.sampled)
        how |= SAMPLED;
    if (lane->forwarder.queue != NULL)
        how |= FORWARD;
    return variants[lane->shape.kind][how];
}

void receiver_account_stream(struct dpdk_lane *lane, uint32_t number)
{
    struct receiver *receiver = &lane->receiver;
    const struct receiver_stream *stream = &receiver->streams[number];
    struct accounted *before = &receiver->accounting.streams[number];
    struct flow_side *side = stream->side;
    uint32_t payload = receiver->check.payload;
    uint64_t frames = stream->frames - before->frames, bytes = stream->bytes - before->bytes;
    const struct flow_count total = {
        .frames = stream->frames,
        .frame_bytes = stream->bytes + stream->frames * FRAME_FCS,
        .payload_bytes = stream->bytes - stream->frames * payload,
    };

    side->numbers += stream->sequence.next - before->numbers;
    side->live.frames += frames;
    side->live.frame_bytes += bytes + frames * FRAME_FCS;
    side->live.payload_bytes += bytes - frames * payload;
    lane->lane.delivered += bytes - frames * payload;
    lane->lane.line_bytes += bytes + frames * (FRAME_FCS + FRAME_OVERHEAD_L1);
    if (stream->last_ns > side->last_ns)
        side->last_ns = stream->last_ns;
    before->frames = stream->frames;
    before->bytes = stream->bytes;
    before->numbers = stream->sequence.next;
    accounting_pass(&receiver->accounting, before, side, &total);
}

unsigned receiver_flow_metrics(const struct dpdk_lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room)
{
    const struct flow_metric of_fall[] = {
        {"numbers", (double)flow->side->numbers},
        {"gap_ns", (double)flow->side->gap_ns},
    };
    const struct flow_metric of_learning = {"learning_late", (double)lane->learning.pace.given_up};
    const struct lane_request *request = &lane->lane.request;

    if (flow->dst != request->rank || room < RTE_DIM(of_fall))
        return 0;
    if (dpdk_options(request->phase)->falls_to > 0) {
        memcpy(out, of_fall, sizeof of_fall);
        return RTE_DIM(of_fall);
    }
    out[0] = of_learning;
    return dpdk_options(request->phase)->addresses > 1;
}
