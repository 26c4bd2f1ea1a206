/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Hooks of frame_hot.h that are alike over the kernel's sockets: a frame to be sent is a
 * head, and behind its signature a piece of the table of fill, which is never copied.
 *
 * For a transport's one hot file, which defines outbox_frames, is_forged, rx_read, and the hooks
 * that move frames.
 */
#ifndef ENGINE_KERNEL_SOCKET_HOT_H
#define ENGINE_KERNEL_SOCKET_HOT_H

#include "socket_frame.h"

typedef struct socket_frame *frame_t;

#include "frame_hot.h"

/** The lane's FRAME_BURST_MAX frames to be sent, whose `bytes` are FRAME_TEMPLATE. */
static inline frame_t outbox_frames(struct frame_lane *lane);
/** Whether a frame names a partner's rank, but came from elsewhere. */
static bool is_forged(const struct frame_lane *lane, uint16_t rank,
                      const struct socket_frame *frame);
/** The burst that rx_burst gave is read. */
static inline void rx_read(struct frame_lane *lane);

static inline int tx_take(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        frames[i] = &outbox_frames(lane)[i];
    return 0;
}

static inline uint8_t *tx_data(frame_t frame)
{
    return frame->bytes;
}

static inline void tx_set(struct frame_lane *lane, frame_t frame,
                          const struct sender_stream *stream, const struct frame_size *size,
                          uint64_t sequence)
{
    (void)lane;
    (void)sequence;
    frame->place = stream->place;
    frame->length = size->length;
}

static inline frame_t pass_frame(struct frame_lane *lane, const struct forward_entry *entry,
                                 uint32_t i, const struct sender_stream *stream)
{
    frame_t frame = &outbox_frames(lane)[i];

    frame->place = stream->place;
    frame->length = entry->length;
    return frame;
}

static inline uint8_t *pass_data(frame_t frame)
{
    return frame->bytes;
}

static inline void tx_put_back(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    (void)lane;
    (void)frames;
    (void)count;
}

/** The two pieces of a frame of `length` bytes. */
static inline void socket_pieces(const struct frame_lane *lane, uint8_t *head, uint32_t length,
                                 struct iovec pieces[2])
{
    size_t front = lane->conf.offset + SIGNATURE_BYTES;

    pieces[0] = (struct iovec){head, front};
    pieces[1] = (struct iovec){(uint8_t *)(uintptr_t)fill_table()->bytes, length - front};
}

static inline void rx_prefetch(frame_t frame)
{
    (void)frame;
}

static inline bool is_filled(const struct frame_lane *lane, const struct signature *signature,
                             uint32_t length)
{
    uint32_t front = lane->conf.offset + SIGNATURE_BYTES;

    return length >= front && length - front <= FILL_BYTES &&
           memcmp(signature + 1, fill_table()->bytes, length - front) == 0;
}

static inline bool socket_is_sound(const struct frame_lane *lane, const struct frame_seen *seen)
{
    return signature_sound(seen->signature) && is_filled(lane, seen->signature, seen->length);
}

HOT_INLINE bool rx_classify(struct frame_lane *lane, frame_t frame, unsigned kind,
                            enum hot_receive how, struct received *ours)
{
    const struct receiver *receiver = &lane->receiver;
    const struct signature *signature =
        (const struct signature *)(frame->bytes + lane->conf.offset);
    uint32_t flow;

    (void)kind;
    (void)how;
    if (frame->length > FILL_BYTES || lane->size_of_length[frame->length] == FRAME_NO_SIZE ||
        signature->tag != receiver->tag || signature->dst != receiver->rank ||
        !signature_sound(signature) || !is_filled(lane, signature, frame->length))
        return false;
    flow = receiver->flow_of[be16toh(signature->src)];
    if (flow == 0 || is_forged(lane, be16toh(signature->src), frame))
        return false;
    ours->signature = signature;
    ours->stream = &receiver->streams[flow - 1];
    ours->length = frame->length;
    return true;
}

static inline void rx_free(frame_t *frames, uint32_t count)
{
    (void)frames;
    (void)count;
}

static inline void rx_release(void *frame)
{
    (void)frame;
}

/* --- variants ----------------------------------------------------------------------------------*/

static int64_t send_due(struct frame_lane *lane, int64_t now_ns)
{
    return hot_send(lane, now_ns, HOT_MIXED);
}

static inline frame_send socket_choose_send(const struct frame_lane *lane)
{
    return lane->forwarder.queue != NULL ? hot_forward : send_due;
}

#define VARIANT(name, received)                                                                    \
    static uint32_t name(struct frame_lane *lane, int64_t now_ns)                                  \
    {                                                                                              \
        uint32_t count = received;                                                                 \
                                                                                                   \
        rx_read(lane);                                                                             \
        return count;                                                                              \
    }
#define HOT_VARIANT(name, bits)                                                                    \
    VARIANT(name, hot_receive(lane, now_ns, 0, (enum hot_receive)(bits)))
HOT_VARIANT(receive, 0)
HOT_VARIANT(receive_timed, HOT_TIMED)
HOT_VARIANT(forward, HOT_FORWARD)
HOT_VARIANT(forward_timed, HOT_TIMED | HOT_FORWARD)
VARIANT(receive_pingpong, hot_receive_pingpong(lane, now_ns))

static inline frame_receive socket_choose_receive(const struct frame_lane *lane)
{
    if (lane->pingpong != NULL)
        return receive_pingpong;
    if (lane->forwarder.queue != NULL)
        return lane->timing ? forward_timed : forward;
    return lane->timing ? receive_timed : receive;
}

#endif
