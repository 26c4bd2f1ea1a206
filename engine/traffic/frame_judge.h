/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What becomes of a sound frame of a lane's flows: in order, reordered, duplicate, late or
 * forged, by its sequence alone.
 */
#ifndef ENGINE_FRAME_JUDGE_H
#define ENGINE_FRAME_JUDGE_H

#include "delay_stats.h"
#include "sequence.h"
#include "signature.h"
#include "transport.h"

#include <assert.h>

/** How far ahead of the expected number a frame's number can be: as far as the fastest sender can
 * have come since the last frame. A greater jump is forged, and refused: otherwise it would make
 * every honest frame behind it late. */
struct sequence_limit {
    double frames_per_ns; /**< of the fastest sender; raised by each flow */
    double at_once;
    int64_t start_ns; /**< the phase's: stamps count from there; 0: not known yet */
};

/** What came of one of a flow's streams: the one cache line that a frame in order touches. */
struct receiver_stream {
    struct sequence sequence;
    uint64_t frames; /**< delivered */
    uint64_t bytes;  /**< theirs, in memory */
    int64_t last_ns;
    int64_t stamp_ns; /**< of the first frame of the last 64 numbers, or behind the last gap */
    struct flow_side *side;
} __attribute__((aligned(64)));
static_assert(sizeof(struct receiver_stream) == 64, "a stream is one cache line");

struct receiver {
    struct sequence_limit limit;         /**< of its senders */
    struct receiver_stream *streams;     /**< by flow, and UDP source port within it */
    struct sequence_past *pasts;         /**< the streams' */
    struct reordering *reorderings;      /**< theirs, too */
    struct delay_stats *delay_stats;     /**< the streams'; NULL: they are not measured */
    struct delay_stats_buckets *buckets; /**< the flows' */
    bool sampled;                        /**< two frames of FRAME_SAMPLE_OF are measured */
    /** By source rank, of all that there may be: number of a flow + 1; 0: none. Its pages are
     * touched as flows need them, so that few flows cost little. */
    uint16_t *flow_of;
    uint32_t count;   /**< flows */
    uint32_t sources; /**< UDP source ports a flow */
    uint16_t tag;     /**< as on the wire, and so are */
    uint16_t rank;    /**< the frames' destination, and */
    uint16_t own;     /**< the port's */
    uint64_t left;    /**< frames of a transfer or a check, yet to come; UINT64_MAX: not known */
};

/** A sound frame of the lane's flows. */
struct received {
    const struct signature *signature;
    struct receiver_stream *stream;
    uint32_t sequence;
    int32_t ahead;   /**< of the number that was expected next; set where delays are measured */
    uint32_t length; /**< in memory */
};

/**
 * @brief Take a flow into account.
 *
 * @param limit Limit.
 * @param flow Flow.
 * @param load Load.
 */
void sequence_limit_add(struct sequence_limit *limit, const struct lane_flow *flow,
                        const struct load *load, uint64_t line_bps, uint32_t least_bytes);

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
