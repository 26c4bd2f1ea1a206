/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Hot path of a lane of frames; included by one source file of each transport.
 *
 * Included behind the transport's hooks, so that the compiler makes variants of each body:
 *
 * @code{.unparsed}
 * frame_t                                   a frame of the transport
 * tx_take, tx_data, tx_set, tx_burst,       frames to be sent, and those not taken
 * tx_put_back, pass_frame, pass_data
 * rx_burst, rx_prefetch, rx_classify,       received frames
 * rx_see, rx_unexpected, rx_free, rx_release
 * @endcode
 *
 * Sending, run to completion: the due frames, a burst at most, are written over buffers that
 * already hold the phase's frame. A frame that the device does not take counts as never sent: its
 * sequence number is used again.
 *
 * Receiving: passes over a burst. The first pass classifies each frame (is it valid, and whose?).
 * The second counts each of ours by its sequence. Where delays are measured, a third pass measures
 * the delivered frames. Then frames are freed, or passed to the forwarder. With many flows a
 * stream's cache line is in no near cache: the first pass prefetches it for the second.
 *
 * A frame counts once: delivered (fresh or reordered), duplicated, late, forged, corrupted,
 * misdelivered, the responder's, or foreign; so the sum is the number of frames received by the
 * device.
 */
#ifndef ENGINE_FRAME_HOT_H
#define ENGINE_FRAME_HOT_H

#include "frame_lane.h"

#include <string.h>

#define HOT_INLINE static inline __attribute__((always_inline))
#define HOT_LIKELY(condition) __builtin_expect(!!(condition), true)
#define HOT_UNLIKELY(condition) __builtin_expect(!!(condition), false)

/**
 * Variants of sending: one stream of one size (12 bytes are written per frame); several streams of
 * one size (headers are written too); several sizes, unequal shares, or anything else that
 * differs between frames.
 */
enum hot_send { HOT_ONE, HOT_MANY, HOT_MIXED };
#define HOT_SHORT 64u /**< bytes of a template that contain all headers except IPv6's */

/** Bits whose combinations are the variants of receiving. */
enum hot_receive {
    HOT_ONE_STREAM = 1, /**< exactly one stream */
    HOT_TIMED = 2,      /**< each delivered frame's delay is measured */
    HOT_SAMPLED = 4,    /**< with HOT_TIMED: only one number of each FRAME_SAMPLE_OF */
    HOT_FORWARD = 8,    /**< delivered frames are forwarded */
};
#define HOT_RECEIVE_WAYS 16 /**< number of combinations */
#define HOT_AHEAD 4u        /**< frames prefetched before they are read */

/* --- the transport's hooks ---------------------------------------------------------------------*/

/** Get `count` free frames to write; return 0 on success. */
static inline int tx_take(struct frame_lane *lane, frame_t *frames, uint32_t count);
/** Return the address of a frame's first byte in memory. */
static inline uint8_t *tx_data(frame_t frame);
/** Set the stream and the size of a frame to send (HOT_MIXED only); `sequence` is the frame's
 * number. */
static inline void tx_set(struct frame_lane *lane, frame_t frame,
                          const struct sender_stream *stream, const struct frame_size *size,
                          uint64_t sequence);
/** Send frames (`pass`: they are forwarded frames); return the number that the device took. */
static inline uint32_t tx_burst(struct frame_lane *lane, frame_t *frames, uint32_t count,
                                bool pass);
/** Release frames that the device did not take; not called for forwarded frames. */
static inline void tx_put_back(struct frame_lane *lane, frame_t *frames, uint32_t count);
/** Return the i-th frame of a burst to be forwarded, made from a received frame. */
static inline frame_t pass_frame(struct frame_lane *lane, const struct forward_entry *entry,
                                 uint32_t i, const struct sender_stream *stream);
/** Return the address of a forwarded frame's first byte in memory. */
static inline uint8_t *pass_data(frame_t frame);

/** Receive at most `lane->conf.receive_burst` frames; return their number. */
static inline uint32_t rx_burst(struct frame_lane *lane, frame_t *frames);
static inline void rx_prefetch(frame_t frame);
/** Return whether a frame is valid and belongs to a flow of the lane; fill `ours` except for
 * `sequence`. */
HOT_INLINE bool rx_classify(struct frame_lane *lane, frame_t frame, unsigned kind,
                            enum hot_receive how, struct received *ours);
/** Describe a received frame in `seen`; return false if the frame is too short for a signature. */
static bool rx_see(const struct frame_lane *lane, frame_t frame, struct frame_seen *seen);
/** Count a received frame that is damaged, or belongs to no flow of the lane. */
static void rx_unexpected(struct frame_lane *lane, frame_t frame, int64_t now_ns);
/** Free the frames of a burst that are not forwarded; called once after each burst. */
static inline void rx_free(struct frame_lane *lane, frame_t *frames, uint32_t count);
/** Free a forwarded frame for which the queue had no room. */
static inline void rx_release(void *frame);

/* --- send --------------------------------------------------------------------------------------*/

/** Return the template for a stream's frames of a given size. */
static inline const struct frame_template *
hot_template(const struct frame_lane *lane, const struct sender_stream *stream, uint8_t size)
{
    return lane->sender.templates == NULL
               ? &stream->template
               : &lane->sender.templates[(size_t)stream->place * lane->size_count + size];
}

/** Return whether the header bytes that differ between flows extend beyond the first HOT_SHORT
 * bytes. */
static inline bool hot_is_long(const struct frame_lane *lane)
{
    return lane->conf.offset + offsetof(struct signature, sequence) > HOT_SHORT;
}

/** Write a stream's next frame into a buffer that already holds the fill behind the template. */
HOT_INLINE void hot_write(const struct frame_lane *lane, uint8_t *frame,
                          struct sender_stream *stream, const struct frame_template *template,
                          bool is_long, const struct signature_time *time)
{
    memcpy(frame, template, HOT_SHORT);
    if (HOT_UNLIKELY(is_long))
        memcpy(frame + HOT_SHORT, template->bytes + HOT_SHORT, FRAME_TEMPLATE - HOT_SHORT);
    signature_stamp((struct signature *)(frame + lane->conf.offset), (uint32_t)stream->sequence++,
                    time, stream->base + time->sum);
}

/** Write the next `count` frames of the rotation; return their total cost for the pacer. */
HOT_INLINE uint64_t hot_fill_many(struct frame_lane *lane, frame_t *frames, uint32_t count,
                                  int64_t now_ns, enum hot_send variant)
{
    struct sender *sender = &lane->sender;
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    uint64_t cost = variant == HOT_MIXED ? 0 : (uint64_t)count * lane->sizes[0].cost;
    struct rotation next = sender->next;
    bool is_long = hot_is_long(lane);

    for (uint32_t i = 0; i < count; i++) {
        struct sender_stream *stream = rotation_stream(sender, &next, variant == HOT_MIXED);
        const struct frame_template *template = &stream->template;
        uint8_t which = 0;

        if (HOT_UNLIKELY(stream->sequence == 0) && stream->side->first_ns == 0)
            stream->side->first_ns = now_ns;
        if (variant == HOT_MIXED) {
            which = lane->order[stream->size_index];
            template = hot_template(lane, stream, which);
            cost += lane->sizes[which].cost;
            stream->size_index =
                (uint16_t)(stream->size_index + 1u < lane->order_count ? stream->size_index + 1
                                                                       : 0);
        }
        hot_write(lane, tx_data(frames[i]), stream, template, is_long, &time);
        if (variant == HOT_MIXED)
            tx_set(lane, frames[i], stream, &lane->sizes[which], stream->sequence - 1);
        stream->last_ns = now_ns;
        rotation_step(lane, &next, variant == HOT_MIXED);
    }
    sender->next = next;
    return cost;
}

/**
 * Undo hot_fill_many() for the frames that the device did not take: of `count` frames from position
 * `next` on, all after the first `sent`. Return the cost of these frames.
 */
static uint64_t hot_unfill_many(struct frame_lane *lane, struct rotation next, uint32_t sent,
                                uint32_t count, int64_t now_ns, enum hot_send variant)
{
    struct sender *sender = &lane->sender;
    uint64_t cost = 0;

    for (uint32_t i = 0; i < count; i++, rotation_step(lane, &next, variant == HOT_MIXED)) {
        struct sender_stream *stream = rotation_stream(sender, &next, variant == HOT_MIXED);

        if (i == sent)
            sender->next = next;
        if (i < sent)
            continue;
        if (variant == HOT_MIXED)
            stream->size_index =
                (uint16_t)((stream->size_index > 0 ? stream->size_index : lane->order_count) - 1);
        cost += lane->sizes[variant == HOT_MIXED ? lane->order[stream->size_index] : 0].cost;
        if (--stream->sequence == 0 && stream->side->first_ns == now_ns)
            stream->side->first_ns = 0;
    }
    return cost;
}

/** Write the next frames of a lane with one stream and one size: only the signatures, because the
 * buffers already hold headers and fill. */
static inline void hot_fill_one(struct frame_lane *lane, frame_t *frames, uint32_t count,
                                int64_t now_ns)
{
    struct sender_stream *stream = lane->sender.streams;
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    uint32_t sequence = (uint32_t)stream->sequence;
    uint32_t base = stream->base + time.sum;
    uint32_t offset = lane->conf.offset;

    for (uint32_t i = 0; i < count; i++)
        signature_stamp((struct signature *)(tx_data(frames[i]) + offset), sequence++, &time, base);
}

/** Update a flow's counts for the last end of the window, unless they are up to date; called before
 * the next frame of the flow is counted. */
static inline void hot_account(struct frame_lane *lane, uint32_t number)
{
    if (lane->accounting.marks[number] != lane->accounting.ends)
        frame_account_flow(lane, number);
}

static __attribute__((noinline)) void hot_account_sends(struct frame_lane *lane, uint32_t count,
                                                        enum hot_send variant)
{
    const struct sender *sender = &lane->sender;
    struct rotation next = sender->next;

    for (uint32_t i = 0; i < count; i++) {
        hot_account(lane, rotation_stream(sender, &next, variant == HOT_MIXED)->place /
                              lane->receiver.sources);
        rotation_step(lane, &next, variant == HOT_MIXED);
    }
}

/** Send the frames of the load that are due, one burst at most; return the time at which the next
 * frames are due. Variants of a lane's `send` are compiled from this body. */
HOT_INLINE int64_t hot_send(struct frame_lane *lane, int64_t now_ns, enum hot_send variant)
{
    struct sender *sender = &lane->sender;
    frame_t frames[FRAME_BURST_MAX];
    uint32_t due = pace_allow(&sender->pace, now_ns, sender->cost, lane->options.burst);
    struct rotation begin;
    uint64_t cost = 0;
    uint32_t sent;

    if (due > sender->left)
        due = (uint32_t)sender->left;
    if (due == 0 || tx_take(lane, frames, due) != 0)
        return pace_wake(&sender->pace, sender->cost);
    begin = sender->next;
    if (HOT_UNLIKELY(lane->accounting.marked))
        hot_account_sends(lane, due, variant);
    if (variant == HOT_ONE)
        hot_fill_one(lane, frames, due, now_ns);
    else
        cost = hot_fill_many(lane, frames, due, now_ns, variant);
    sent = tx_burst(lane, frames, due, false);
    if (HOT_UNLIKELY(sent < due)) {
        tx_put_back(lane, frames + sent, due - sent);
        lane->lane.request.count->send_refused += due - sent;
        if (variant != HOT_ONE)
            cost -= hot_unfill_many(lane, begin, sent, due, now_ns, variant);
    }
    if (variant == HOT_ONE && sent > 0) {
        struct sender_stream *stream = sender->streams;

        cost = (uint64_t)sent * lane->sizes[0].cost;
        stream->sequence += sent;
        stream->last_ns = now_ns;
        stream->side->first_ns = stream->side->first_ns > 0 ? stream->side->first_ns : now_ns;
    }
    sender->left -= sender->left != UINT64_MAX ? sent : 0;
    pace_spend(&sender->pace, cost);
    if (HOT_UNLIKELY(sent < due) && lane->lane.request.sleeps)
        return now_ns + FRAME_RETRY_NS;
    return pace_wake(&sender->pace, sender->cost);
}

/* --- forward -----------------------------------------------------------------------------------*/

/**
 * Rewrite received frames for the next hop, and send as many as the device takes; return the number
 * of sent frames. The sequence numbers of the other frames are used again.
 */
static uint32_t hot_pass(struct frame_lane *lane, const struct forward_entry *entries,
                         uint32_t count, int64_t now_ns)
{
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    struct flow_side *side = lane->sender.streams[0].side;
    bool odd = hot_is_long(lane) || lane->sender.templates != NULL;
    frame_t frames[FRAME_BURST_MAX];
    uint64_t bytes = 0;
    uint32_t sent;

    for (uint32_t i = 0; i < count; i++) {
        const struct forward_entry *entry = &entries[i];
        struct sender_stream *stream = &lane->sender.streams[entry->stream];
        const struct frame_template *template = &stream->template;

        if (HOT_UNLIKELY(odd))
            template = hot_template(lane, stream, lane->size_of_length[entry->length]);
        frames[i] = pass_frame(lane, entry, i, stream);
        bytes += entry->length;
        hot_write(lane, pass_data(frames[i]), stream, template, odd, &time);
    }
    sent = tx_burst(lane, frames, count, true);
    for (uint32_t i = sent; HOT_UNLIKELY(i < count); i++) {
        lane->sender.streams[entries[i].stream].sequence--;
        bytes -= entries[i].length;
        lane->lane.request.count->send_refused++;
    }
    if (sent == 0)
        return 0;
    side->live.frames += sent;
    side->live.frame_bytes += bytes + (uint64_t)sent * lane->conf.outside;
    side->live.payload_bytes += bytes - (uint64_t)sent * lane->conf.offset;
    flow_side_time(side, now_ns);
    frame_flush_later(lane, now_ns);
    return sent;
}

/**
 * Send the queued frames of a forwarding lane, oldest first; frames that the driver does not take
 * stay in the queue.
 */
static int64_t hot_forward(struct frame_lane *lane, int64_t now_ns)
{
    struct forwarder *forwarder = &lane->forwarder;
    uint32_t waiting = forwarder->tail - forwarder->head;
    uint32_t head = forwarder->head % FRAME_FORWARD_QUEUE;
    uint32_t count = FRAME_FORWARD_QUEUE - head;

    if (waiting == 0)
        return CLOCK_NEVER;
    count = count < waiting ? count : waiting;
    count = count < lane->options.burst ? count : lane->options.burst;
    forwarder->head += hot_pass(lane, &forwarder->queue[head], count, now_ns);
    return forwarder->head == forwarder->tail ? CLOCK_NEVER : now_ns;
}

/**
 * Forward delivered frames, or queue them; a frame without room in the queue counts as dropped by
 * this host. Before the start all frames are queued, because the next hop may not be ready.
 */
static void hot_pass_on(struct frame_lane *lane, const struct forward_entry *entries,
                        uint32_t count, int64_t now_ns)
{
    struct forwarder *forwarder = &lane->forwarder;
    uint32_t sent = 0;

    lane->sender.streams[0].side->intended += count;
    if (count > 0 && lane->send == hot_forward && forwarder->head == forwarder->tail)
        sent = hot_pass(lane, entries, count < lane->options.burst ? count : lane->options.burst,
                        now_ns);
    for (uint32_t i = sent; i < count; i++) {
        if (forwarder->tail - forwarder->head < FRAME_FORWARD_QUEUE) {
            forwarder->queue[forwarder->tail++ % FRAME_FORWARD_QUEUE] = entries[i];
        } else {
            ++*forwarder->dropped;
            rx_release(entries[i].frame);
        }
    }
}

/* --- receive -----------------------------------------------------------------------------------*/

struct hot_burst {
    frame_t frames[FRAME_BURST_MAX];
    struct received ours[FRAME_BURST_MAX]; /**< after the second pass: the delivered frames */
    struct forward_entry passed[FRAME_BURST_MAX]; /**< HOT_FORWARD: the delivered frames */
    uint32_t count;
    uint32_t delivered;
    uint32_t kept; /**< HOT_FORWARD: number of leading `frames` to be freed */
};

static inline struct delay_stats *hot_delays_of(const struct receiver *receiver,
                                                const struct receiver_stream *stream)
{
    return &receiver->delay_stats[stream - receiver->streams];
}

/** Return whether a frame's delay is sampled, by its sequence number: one frame in FRAME_SAMPLE_OF.
 */
static inline bool hot_is_sampled(uint32_t sequence)
{
    return sequence % FRAME_SAMPLE_OF == 0;
}

HOT_INLINE bool hot_classify(struct frame_lane *lane, frame_t frame, unsigned kind,
                             enum hot_receive how, struct received *ours)
{
    if (HOT_UNLIKELY(!rx_classify(lane, frame, kind, how, ours)))
        return false;
    ours->sequence = be32toh(ours->signature->sequence);
    if ((how & HOT_TIMED) != 0 && (how & HOT_ONE_STREAM) == 0 &&
        ((how & HOT_SAMPLED) == 0 || HOT_UNLIKELY(hot_is_sampled(ours->sequence))))
        __builtin_prefetch(hot_delays_of(&lane->receiver, ours->stream));
    return true;
}

/**
 * Classify the frames of a burst (first pass); return the number of frames that belong to the
 * lane's flows. In a forwarding lane, whose few streams are in near caches, the frames are also
 * counted here.
 */
HOT_INLINE uint32_t hot_classify_burst(struct frame_lane *lane, struct hot_burst *burst,
                                       int64_t now_ns, unsigned kind, enum hot_receive how)
{
    frame_t *frames = burst->frames;
    uint32_t ours = 0;

    for (uint32_t i = 0; i < burst->count && i < HOT_AHEAD; i++)
        rx_prefetch(frames[i]);
    for (uint32_t i = 0; i < burst->count; i++) {
        struct received one;
        bool is_ours;

        if (i + HOT_AHEAD < burst->count)
            rx_prefetch(frames[i + HOT_AHEAD]);
        is_ours = HOT_LIKELY(hot_classify(lane, frames[i], kind, how, &one));
        if (HOT_UNLIKELY(!is_ours))
            rx_unexpected(lane, frames[i], now_ns);
        if ((how & HOT_FORWARD) == 0) {
            if (is_ours)
                burst->ours[ours++] = one;
            continue;
        }
        ours += is_ours;
        if (HOT_LIKELY(is_ours) && HOT_LIKELY(frame_judge(&lane->receiver, &one, now_ns))) {
            if ((how & HOT_TIMED) != 0)
                burst->ours[burst->delivered] = one;
            burst->passed[burst->delivered++] = (struct forward_entry){
                .frame = frames[i],
                .stream = (uint32_t)(one.stream - lane->receiver.streams),
                .length = one.length,
            };
        } else {
            frames[burst->kept++] = frames[i];
        }
    }
    return ours;
}

/**
 * Count the leading frames of a burst that are in sequence, for a lane with one stream; return
 * their number. The counts stay in registers.
 */
HOT_INLINE uint32_t hot_follow(struct receiver_stream *stream, const struct received *frames,
                               uint32_t count, int64_t now_ns)
{
    struct sequence sequence = stream->sequence;
    uint64_t bytes = 0;
    uint32_t follow = 0;

    while (follow < count && sequence_follows(&sequence, frames[follow].sequence))
        bytes += frames[follow++].length;
    stream->sequence = sequence;
    stream->frames += follow;
    stream->bytes += bytes;
    if (HOT_LIKELY(follow > 0))
        stream->last_ns = now_ns;
    return follow;
}

/** Count the frames of a burst by their sequence (second pass); move the delivered frames to the
 * front for the third pass. */
HOT_INLINE void hot_account_burst(const struct receiver *receiver, struct hot_burst *burst,
                                  uint32_t count, int64_t now_ns, enum hot_receive how)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((how & HOT_ONE_STREAM) != 0 && HOT_LIKELY(burst->delivered == i)) {
            i += hot_follow(receiver->streams, &burst->ours[i], count - i, now_ns);
            burst->delivered = i;
            if (HOT_LIKELY(i == count))
                break;
        }
        if (!frame_judge(receiver, &burst->ours[i], now_ns))
            continue;
        if ((how & HOT_TIMED) != 0 && HOT_UNLIKELY(burst->delivered < i))
            burst->ours[burst->delivered] = burst->ours[i];
        burst->delivered++;
    }
}

/**
 * Return the number of leading frames with equal time stamps, for a lane with one stream: frames
 * that were sent in one burst mostly arrive in one burst.
 */
static inline uint32_t hot_sent_together(const struct received *frames, uint32_t count)
{
    uint64_t stamp_ns = signature_ns(frames->signature);
    uint32_t together = 1;

    while (together < count && signature_ns(frames[together].signature) == stamp_ns)
        together++;
    return together;
}

/**
 * Measure the one-way delays of a burst's delivered frames (third pass). With many flows only
 * sampled frames are measured, because the flows' delay statistics are in no near cache.
 */
HOT_INLINE void hot_measure_burst(const struct receiver *receiver, const struct received *frames,
                                  uint32_t count, int64_t came_ns, enum hot_receive how)
{
    for (uint32_t i = 0, together = 1; i < count; i += together) {
        if ((how & HOT_SAMPLED) != 0 && HOT_LIKELY(!hot_is_sampled(frames[i].sequence)))
            continue;
        if ((how & HOT_ONE_STREAM) != 0)
            together = hot_sent_together(&frames[i], count - i);
        delay_stats_add(hot_delays_of(receiver, frames[i].stream), receiver->buckets,
                        delay_stats_delay(came_ns, signature_ns(frames[i].signature)), together);
    }
}

static __attribute__((noinline)) void
hot_account_receives(struct frame_lane *lane, const struct received *frames, uint32_t count)
{
    const struct receiver *receiver = &lane->receiver;

    for (uint32_t i = 0; i < count; i++)
        hot_account(lane, lane->lane.request.send_count +
                              (uint32_t)(frames[i].stream - receiver->streams) / receiver->sources);
}

/** Receive, classify and count one burst of frames; return the number of received frames. Variants
 * of a lane's `receive` are compiled from this body. */
HOT_INLINE uint32_t hot_receive(struct frame_lane *lane, int64_t now_ns, unsigned kind,
                                enum hot_receive how)
{
    struct receiver *receiver = &lane->receiver;
    struct hot_burst burst;
    uint32_t ours;
    int64_t came_ns = 0;

    burst.delivered = burst.kept = 0;
    burst.count = rx_burst(lane, burst.frames);
    if (burst.count == 0)
        return 0;
    if ((how & HOT_TIMED) != 0)
        came_ns = clock_now() - lane->start_ns;
    ours = hot_classify_burst(lane, &burst, now_ns, kind, how);
    if ((how & HOT_FORWARD) == 0 && HOT_UNLIKELY(lane->accounting.marked))
        hot_account_receives(lane, burst.ours, ours);
    if ((how & HOT_FORWARD) == 0)
        hot_account_burst(receiver, &burst, ours, now_ns, how);
    if ((how & HOT_TIMED) != 0)
        hot_measure_burst(receiver, burst.ours, burst.delivered, came_ns, how);
    if (ours > 0)
        lane->lane.arrived_ns = now_ns;
    if (receiver->left != UINT64_MAX)
        receiver->left -= receiver->left < burst.delivered ? receiver->left : burst.delivered;
    rx_free(lane, burst.frames, (how & HOT_FORWARD) != 0 ? burst.kept : burst.count);
    if ((how & HOT_FORWARD) != 0)
        hot_pass_on(lane, burst.passed, burst.delivered, now_ns);
    return burst.count;
}

/** Return the bits (enum hot_receive) of the receive variant for the lane's present task. */
static inline unsigned hot_receive_way(const struct frame_lane *lane)
{
    const struct receiver *receiver = &lane->receiver;
    unsigned how = lane->timing ? HOT_TIMED : 0;

    if (receiver->count == 1 && receiver->sources == 1)
        how |= HOT_ONE_STREAM;
    else if (lane->timing && receiver->sampled)
        how |= HOT_SAMPLED;
    return lane->forwarder.queue != NULL ? how | HOT_FORWARD : how;
}

/** Receive one burst of frames in a ping-pong phase, which is no hot path because messages wait for
 * each other; return the number of frames. */
static uint32_t hot_receive_pingpong(struct frame_lane *lane, int64_t now_ns)
{
    frame_t frames[FRAME_BURST_MAX];
    uint32_t count = rx_burst(lane, frames);

    for (uint32_t i = 0; i < count; i++)
        rx_unexpected(lane, frames[i], now_ns);
    rx_free(lane, frames, count);
    return count;
}

#endif
