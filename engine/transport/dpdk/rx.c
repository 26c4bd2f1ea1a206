/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: a burst is taken, each frame recognised (is it sound, whose is it?), then each judged
 * by its sequence, accounted and let go (or handed to the forwarder). Two passes, because with many
 * flows a stream's line lies in no near cache: the first asks for it, the second finds it there.
 *
 * A frame counts once: delivered (fresh or reordered), duplicated, late, forged, corrupted,
 * misdelivered, the responder's, or foreign; so the sum is what the driver received.
 *
 * Two bodies, receive and forward, of which the compiler makes variants by header kind, and for one
 * stream: its frames all begin alike, so the headers of one that begins like one that was verified
 * need not be summed again.
 */
#include "rx.h"

#include "forward.h"
#include "prober.h"

#include <rte_ethdev.h>
#include <rte_prefetch.h>

#define AHEAD 4u /* frames whose first bytes are asked for before they are looked at */

/* A sound frame of ours, between the two passes. */
struct arrival {
    struct rte_mbuf *frame;
    struct receiver_stream *stream;
    uint32_t sequence;
    uint32_t length;
    uint64_t stamp_ns; /* timed only; where SAMPLED, read when one is */
};

/* Variants. */
enum how {
    ONE_STREAM = 1, /* there is one only */
    TIMED = 2,      /* each delivered frame's delay is measured */
    SAMPLED = 4,    /* with TIMED: of two sequence numbers of each LANE_SAMPLE_OF only */
};
#define PLAIN ((enum how)0)

static inline struct times *times_of(const struct receiver *receiver,
                                     const struct receiver_stream *stream)
{
    return &receiver->times[stream - receiver->streams];
}

/* The first two: neighbours, whose delays can be compared. */
static inline bool sampled(uint32_t sequence)
{
    return sequence % LANE_SAMPLE_OF < 2;
}

/* The number + 1 of the flow that comes from a rank; 0: none. */
static inline uint32_t find(const struct receiver *receiver, uint16_t rank)
{
    return receiver->flow_of[rank];
}

/* Whose frame one with a damaged signature was: by rank, else by the sender's address. */
static uint32_t guess(const struct receiver *receiver, const uint8_t *frame, uint16_t rank)
{
    uint32_t flow = find(receiver, rank);

    for (uint32_t i = 0; flow == 0 && i < receiver->count; i++)
        if (memcmp(receiver->macs[i], frame + FRAME_MAC, FRAME_MAC) == 0)
            flow = i + 1;
    return flow;
}

static __rte_always_inline bool sound(const struct frame_check *check,
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

static bool probe_sound(const struct dpdk_lane *lane, const uint8_t *frame, uint32_t length)
{
    uint8_t size = length <= FRAME_SIZE_MAX ? lane->size_of_length[length] : LANE_NO_SIZE;

    return size != LANE_NO_SIZE &&
           sound(&lane->receiver.check, &lane->sizes[size].expect, frame, lane->shape.kind);
}

void receiver_astray(struct port_count *count, const struct signature *signature, bool beside)
{
    struct stray_flow stray = {1, be16toh(signature->src), be16toh(signature->dst)};

    if (beside) {
        count->probes_received++;
        return;
    }
    count->misdelivered++;
    strays_add(&count->strays, &stray);
}

/* A frame that is not as our flows send them. A sound signature says what it is; a broken one
 * with most of our marks on it is a damaged frame of ours. */
static __rte_noinline void stray(struct dpdk_lane *lane, const struct rte_mbuf *buffer,
                                 int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;
    struct port_count *count = lane->lane.request.count;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + receiver->check.payload);
    uint32_t flow;
    bool whole, tagged, here, probe;

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
    here = signature->dst == receiver->rank;
    flow = whole ? find(receiver, be16toh(signature->src))
                 : guess(receiver, frame, be16toh(signature->src));
    if (tagged && whole && !here && signature->src != receiver->rank) {
        receiver_astray(count, signature, probe);
    } else if (probe && memcmp(frame, lane->port->responder.mac, FRAME_MAC) == 0) {
        count->probes_received++;
        if (here && probe_sound(lane, frame, rte_pktmbuf_data_len(buffer)))
            prober_take(lane, buffer); /* a damaged one is missing: lost */
    } else if (flow != 0 && memcmp(frame, lane->port->responder.mac, FRAME_MAC) == 0 &&
               (tagged || (here && !whole))) {
        receiver->streams[(size_t)(flow - 1) * receiver->sources].side->corrupted++;
        lane->lane.arrived_ns = now_ns;
    } else {
        count->foreign++;
    }
}

static __rte_always_inline uint32_t stream_of(const struct receiver *receiver, const uint8_t *frame,
                                              enum header_kind kind)
{
    const uint8_t *udp = frame + receiver->check.payload - FRAME_UDP;

    return kind == HEADER_L2 ? 0 : (uint32_t)be16toh(frame_u16(udp)) - FRAME_UDP_SOURCE;
}

/* Whether it begins as the last frame that was verified in full, and is sound behind that. */
static __rte_always_inline bool known_again(const struct receiver *receiver, const uint8_t *frame,
                                            uint32_t length, enum header_kind kind)
{
    const struct receiver_known *known = &receiver->known;
    const struct frame_check *check = &receiver->check;

    return likely(length == known->length) &&
           likely(frame_starts(check, known->start, frame, kind)) &&
           likely(signature_sound((const struct signature *)(frame + check->payload))) &&
           likely(frame_filled(check, known->expect, frame));
}

static __rte_noinline void learn(struct dpdk_lane *lane, const uint8_t *frame, uint32_t length)
{
    struct receiver *receiver = &lane->receiver;
    const uint8_t *start = frame + receiver->check.network - 2;

    if (!signature_sound((const struct signature *)(frame + receiver->check.payload)))
        return; /* two errors that make up for each other */
    receiver->known.length = length;
    receiver->known.expect = &lane->sizes[lane->size_of_length[length]].expect;
    memcpy(receiver->known.start, start, frame_start_bytes(lane->shape.kind));
}

/* The stream of a frame that is one of ours and sound; NULL: it is not. */
static __rte_always_inline struct receiver_stream *
verify(const struct dpdk_lane *lane, const uint8_t *frame, uint32_t length, enum header_kind kind)
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
        unlikely(!sound(&receiver->check, &lane->sizes[size].expect, frame, kind)))
        return NULL;
    flow = find(receiver, be16toh(signature->src));
    stream = stream_of(receiver, frame, kind);
    if (unlikely(flow == 0 || stream >= receiver->sources))
        return NULL;
    return &receiver->streams[(size_t)(flow - 1) * receiver->sources + stream];
}

/* First pass, one frame: what it is, if it is one of ours and sound. */
static __rte_always_inline bool recognise(struct dpdk_lane *lane, struct rte_mbuf *buffer,
                                          enum header_kind kind, enum how how,
                                          struct arrival *arrival)
{
    const struct receiver *receiver = &lane->receiver;
    const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
    const struct signature *signature = (const struct signature *)(frame + receiver->check.payload);
    uint32_t length = rte_pktmbuf_data_len(buffer);
    bool one = (how & ONE_STREAM) != 0;

    if (one && known_again(receiver, frame, length, kind)) {
        arrival->stream = receiver->streams;
    } else {
        arrival->stream = verify(lane, frame, length, kind);
        if (unlikely(arrival->stream == NULL))
            return false;
        if (one)
            learn(lane, frame, length);
        else
            rte_prefetch0(arrival->stream);
        if (!one && how == TIMED)
            rte_prefetch0(times_of(receiver, arrival->stream));
    }
    arrival->frame = buffer;
    arrival->sequence = be32toh(signature->sequence);
    if ((how & SAMPLED) != 0 && unlikely(sampled(arrival->sequence)))
        rte_prefetch0(times_of(receiver, arrival->stream));
    arrival->length = length;
    if ((how & (TIMED | SAMPLED)) == TIMED)
        arrival->stamp_ns = signature_ns(signature);
    return true;
}

/* When a frame was sent, since the start. */
static int64_t sent_ns(const struct receiver *receiver, const struct arrival *arrival,
                       int64_t now_ns)
{
    const struct signature *signature =
        rte_pktmbuf_mtod_offset(arrival->frame, const struct signature *, receiver->check.payload);

    return sequence_limit_stamp(&receiver->limit, signature_ns(signature),
                                arrival->stream->stamp_ns, now_ns);
}

/* One whose number is behind the greatest; returns whether it is delivered. */
static inline bool check_earlier(const struct receiver *receiver, struct receiver_stream *stream,
                                 uint32_t sequence)
{
    size_t place = (size_t)(stream - receiver->streams);
    struct disorder_frame frame = {.number = sequence_unwrap(stream->sequence.next, sequence),
                                   .arrival = stream->frames + 1};
    enum sequence_verdict verdict =
        sequence_judge(&stream->sequence, &receiver->pasts[place], sequence);

    stream->side->duplicated += verdict == SEQUENCE_DUPLICATE;
    stream->side->late += verdict == SEQUENCE_LATE;
    if (verdict != SEQUENCE_REORDERED)
        return false;
    stream->side->reordered++;
    disorder_add(&receiver->disorders[place], &stream->missing, &frame, &stream->side->disorder);
    return true;
}

/* One that is not the next, or begins a word; returns whether it is delivered. What it touches
 * beside the stream's line lies in no near cache: no branch waits for that where none must. */
static __rte_noinline bool check_sequence(const struct receiver *receiver,
                                          const struct arrival *arrival, int64_t now_ns)
{
    struct receiver_stream *stream = arrival->stream;
    size_t place = (size_t)(stream - receiver->streams);
    uint64_t next = stream->sequence.next;
    int32_t ahead = (int32_t)(arrival->sequence - (uint32_t)next);
    int64_t stamp_ns;

    if (ahead < 0)
        return check_earlier(receiver, stream, arrival->sequence);
    stamp_ns = sent_ns(receiver, arrival, now_ns);
    if (ahead > (int32_t)SEQUENCE_WINDOW &&
        !sequence_limit_allows(&receiver->limit, ahead, stamp_ns - stream->stamp_ns,
                               stream->frames > 0 ? stream->last_ns : 0, now_ns)) {
        stream->side->forged++;
        return false;
    }
    stream->stamp_ns = stamp_ns;
    sequence_mark(&stream->sequence, &receiver->pasts[place], next + (uint32_t)ahead);
    if (ahead > 0)
        disorder_gap(&receiver->disorders[place], &stream->missing, &stream->sequence, next,
                     stream->frames + 1);
    if (stream->frames == 0 && stream->side->first_ns == 0)
        stream->side->first_ns = now_ns; /* `next` was 0: none came by the short way */
    return true;
}

static inline void deliver(const struct arrival *arrival, int64_t now_ns)
{
    arrival->stream->frames++;
    arrival->stream->bytes += arrival->length;
    arrival->stream->last_ns = now_ns;
}

/* Second pass, one frame: accounts it by its sequence; returns whether it is delivered. */
static inline bool account(const struct receiver *receiver, const struct arrival *arrival,
                           int64_t now_ns)
{
    struct receiver_stream *stream = arrival->stream;

    if (!sequence_follows(&stream->sequence, arrival->sequence) &&
        !check_sequence(receiver, arrival, now_ns))
        return false;
    deliver(arrival, now_ns);
    return true;
}

/* When a burst came: as the poll was told, and as the clock says now, since the phase's start. The
 * latter is looked at in timed variants only, once a burst. */
struct moment {
    int64_t now_ns;
    int64_t came_ns;
};

static inline struct moment moment(const struct dpdk_lane *lane, int64_t now_ns, enum how how)
{
    return (struct moment){now_ns, (how & TIMED) != 0 ? clock_now() - lane->start_ns : 0};
}

static inline void measure(const struct receiver *receiver, const struct arrival *arrival,
                           const struct moment *moment, int32_t ahead)
{
    times_add(times_of(receiver, arrival->stream), receiver->buckets,
              times_delay(moment->came_ns, arrival->stamp_ns), ahead);
}

/* One that is not the next, or begins a word; it is measured where it is delivered. */
static __rte_noinline bool check_sequence_timed(const struct receiver *receiver,
                                                const struct arrival *arrival,
                                                const struct moment *moment)
{
    int32_t ahead = (int32_t)(arrival->sequence - (uint32_t)arrival->stream->sequence.next);

    if (!check_sequence(receiver, arrival, moment->now_ns))
        return false;
    deliver(arrival, moment->now_ns);
    measure(receiver, arrival, moment, ahead);
    return true;
}

/* Frames of the only stream, in order, that came with one stamp: a burst of the sender's is mostly
 * a burst here, too. Those of several streams have their counts in memory (times.h). */
struct together {
    uint64_t stamp_ns;
    uint32_t count;
};

static inline void measure_together(const struct receiver *receiver, struct together *together,
                                    const struct moment *moment)
{
    if (together->count > 0)
        times_follow(receiver->times, receiver->buckets,
                     times_delay(moment->came_ns, together->stamp_ns), together->count);
    together->count = 0;
}

/* Accounts, and measures what is delivered. `together`: of the only stream, or NULL. */
static inline bool account_timed(const struct receiver *receiver, const struct arrival *arrival,
                                 const struct moment *moment, struct together *together)
{
    bool follows = sequence_follows(&arrival->stream->sequence, arrival->sequence);

    if (together != NULL && (!follows || arrival->stamp_ns != together->stamp_ns))
        measure_together(receiver, together, moment);
    if (unlikely(!follows))
        return check_sequence_timed(receiver, arrival, moment);
    deliver(arrival, moment->now_ns);
    if (together != NULL)
        *together = (struct together){arrival->stamp_ns, together->count + 1};
    else
        times_follow(times_of(receiver, arrival->stream), receiver->buckets,
                     times_delay(moment->came_ns, arrival->stamp_ns), 1);
    return true;
}

/* With many flows their buckets lie in no near cache. Two neighbours say how delays vary; the first
 * is not compared with the one before. */
static inline bool account_sampled(const struct receiver *receiver, struct arrival *arrival,
                                   const struct moment *moment)
{
    if (likely(!sampled(arrival->sequence)))
        return account(receiver, arrival, moment->now_ns);
    if (arrival->sequence % LANE_SAMPLE_OF == 0)
        times_restart(times_of(receiver, arrival->stream), receiver->buckets);
    arrival->stamp_ns = signature_ns(
        rte_pktmbuf_mtod_offset(arrival->frame, const struct signature *, receiver->check.payload));
    return account_timed(receiver, arrival, moment, NULL);
}

/* Second pass, a burst; returns how many are delivered. */
static __rte_always_inline uint32_t account_all(const struct receiver *receiver,
                                                struct arrival *arrivals, uint32_t count,
                                                const struct moment *moment, enum how how)
{
    struct together together = {.count = 0};
    uint32_t delivered = 0;

    for (uint32_t i = 0; i < count; i++) {
        if ((how & TIMED) == 0)
            delivered += account(receiver, &arrivals[i], moment->now_ns);
        else if ((how & SAMPLED) != 0)
            delivered += account_sampled(receiver, &arrivals[i], moment);
        else
            delivered += account_timed(receiver, &arrivals[i], moment,
                                       (how & ONE_STREAM) != 0 ? &together : NULL);
    }
    if ((how & ONE_STREAM) != 0)
        measure_together(receiver, &together, moment);
    return delivered;
}

/* What every burst ends with. */
static inline void end_burst(struct dpdk_lane *lane, bool any, uint32_t delivered, int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;

    if (any)
        lane->lane.arrived_ns = now_ns;
    if (receiver->left != UINT64_MAX)
        receiver->left -= RTE_MIN(receiver->left, delivered);
}

static inline void ask_for_first(struct rte_mbuf **frames, uint32_t count)
{
    for (uint32_t i = 0; i < RTE_MIN(count, AHEAD); i++)
        rte_prefetch0(rte_pktmbuf_mtod(frames[i], const void *));
}

static __rte_always_inline uint32_t receive(struct dpdk_lane *lane, int64_t now_ns,
                                            enum header_kind kind, enum how how)
{
    struct rte_mbuf *frames[PORT_BURST_MAX];
    struct arrival arrivals[PORT_BURST_MAX];
    uint32_t count = rte_eth_rx_burst(lane->port->id, lane->queue->number, frames,
                                      (uint16_t)lane->receive_burst);
    uint32_t ours = 0, delivered;
    struct moment came;

    if (count == 0)
        return 0;
    came = moment(lane, now_ns, how);
    ask_for_first(frames, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            rte_prefetch0(rte_pktmbuf_mtod(frames[i + AHEAD], const void *));
        if (likely(recognise(lane, frames[i], kind, how, &arrivals[ours])))
            ours++;
        else
            stray(lane, frames[i], now_ns);
    }
    delivered = account_all(&lane->receiver, arrivals, ours, &came, how);
    end_burst(lane, ours > 0, delivered, now_ns);
    rte_pktmbuf_free_bulk(frames, count);
    return count;
}

/* One flow's few streams are near, so one pass does. Delivered frames are the forwarder's. */
static __rte_always_inline uint32_t forward(struct dpdk_lane *lane, int64_t now_ns,
                                            enum header_kind kind, enum how how)
{
    const struct receiver *receiver = &lane->receiver;
    struct rte_mbuf *frames[PORT_BURST_MAX];
    struct forward_entry passed[PORT_BURST_MAX];
    uint32_t count = rte_eth_rx_burst(lane->port->id, lane->queue->number, frames,
                                      (uint16_t)lane->receive_burst);
    uint32_t delivered = 0, strays = 0, kept = 0;
    struct moment came;

    if (count == 0)
        return 0;
    came = moment(lane, now_ns, how);
    ask_for_first(frames, count);
    for (uint32_t i = 0; i < count; i++) {
        struct arrival arrival;
        bool ours;

        if (i + AHEAD < count)
            rte_prefetch0(rte_pktmbuf_mtod(frames[i + AHEAD], const void *));
        ours = recognise(lane, frames[i], kind, how, &arrival);
        if (likely(ours) && likely(account_all(receiver, &arrival, 1, &came, how) > 0)) {
            passed[delivered++] = (struct forward_entry){
                .frame = arrival.frame,
                .stream = (uint32_t)(arrival.stream - receiver->streams),
                .length = arrival.length,
            };
            continue;
        }
        if (!ours) {
            stray(lane, frames[i], now_ns);
            strays++;
        }
        frames[kept++] = frames[i];
    }
    end_burst(lane, strays < count, delivered, now_ns);
    rte_pktmbuf_free_bulk(frames, kept);
    lane->sender.streams[0].side->intended += delivered;
    forwarder_pass(lane, passed, delivered, now_ns);
    return count;
}

#define VARIANT(name, body, kind, how)                                                             \
    static uint32_t name(struct dpdk_lane *lane, int64_t now_ns)                                   \
    {                                                                                              \
        return body(lane, now_ns, kind, how);                                                      \
    }
#define VARIANTS(body, suffix, kind)                                                               \
    VARIANT(body##_##suffix, body, kind, PLAIN)                                                    \
    VARIANT(body##_one_##suffix, body, kind, ONE_STREAM)                                           \
    VARIANT(body##_timed_##suffix, body, kind, TIMED)                                              \
    VARIANT(body##_one_timed_##suffix, body, kind, ONE_STREAM | TIMED)                             \
    VARIANT(body##_sampled_##suffix, body, kind, TIMED | SAMPLED)
#define VARIANTS_OF(body, suffix)                                                                  \
    {                                                                                              \
        [PLAIN] = body##_##suffix, [ONE_STREAM] = body##_one_##suffix,                             \
        [TIMED] = body##_timed_##suffix, [ONE_STREAM | TIMED] = body##_one_timed_##suffix,         \
        [TIMED | SAMPLED] = body##_sampled_##suffix,                                               \
    }
VARIANTS(receive, l2, HEADER_L2)
VARIANTS(receive, ipv4, HEADER_IPV4_UDP)
VARIANTS(receive, ipv6, HEADER_IPV6_UDP)
VARIANTS(forward, l2, HEADER_L2)
VARIANTS(forward, ipv4, HEADER_IPV4_UDP)
VARIANTS(forward, ipv6, HEADER_IPV6_UDP)

void receiver_account(struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    const struct receiver *receiver = &lane->receiver;

    for (uint32_t i = 0; i < request->receive_count; i++)
        request->receives[i].side->live = (struct flow_count){0};
    for (size_t i = 0; i < (size_t)receiver->count * receiver->sources; i++) {
        const struct receiver_stream *stream = &receiver->streams[i];
        struct flow_side *side = stream->side;

        side->live.frames += stream->frames;
        side->live.frame_bytes += stream->bytes + stream->frames * FRAME_FCS;
        side->live.payload_bytes += stream->bytes - stream->frames * receiver->check.payload;
        if (stream->last_ns > side->last_ns)
            side->last_ns = stream->last_ns;
    }
}

uint32_t (*receiver_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t)
{
    static uint32_t (*const variants[][2][8])(struct dpdk_lane *, int64_t) = {
        [HEADER_L2] = {VARIANTS_OF(receive, l2), VARIANTS_OF(forward, l2)},
        [HEADER_IPV4_UDP] = {VARIANTS_OF(receive, ipv4), VARIANTS_OF(forward, ipv4)},
        [HEADER_IPV6_UDP] = {VARIANTS_OF(receive, ipv6), VARIANTS_OF(forward, ipv6)},
    };
    unsigned how = lane->timing ? TIMED : 0;

    if (lane->receiver.count == 1 && lane->receiver.sources == 1)
        how |= ONE_STREAM;
    else if (lane->timing && lane->receiver.sampled)
        how |= SAMPLED;
    return variants[lane->shape.kind][lane->forwarder.queue != NULL][how];
}
