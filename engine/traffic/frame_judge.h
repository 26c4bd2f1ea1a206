/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a receiver of frames makes of a sequence number: in order, reordered, duplicated,
 * late or forged.
 */
#ifndef ENGINE_FRAME_JUDGE_H
#define ENGINE_FRAME_JUDGE_H

#include "frame_state.h"

/** @brief Judge a frame that is not the next one; whether it is delivered. */
bool frame_judge_out_of_order(const struct receiver *receiver, const struct received *frame,
                              int64_t now_ns);

/** @brief Judge a frame by its sequence and count it in its stream; whether it is delivered. */
static inline __attribute__((always_inline)) bool
frame_judge(const struct receiver *receiver, struct received *frame, int64_t now_ns, bool timed)
{
    struct receiver_stream *stream = frame->stream;

    if (timed)
        frame->ahead = (int32_t)(frame->sequence - (uint32_t)stream->sequence.next);
    if (!sequence_follows(&stream->sequence, frame->sequence) &&
        !frame_judge_out_of_order(receiver, frame, now_ns))
        return false;
    stream->frames++;
    stream->bytes += frame->length;
    stream->last_ns = now_ns;
    return true;
}

#endif
