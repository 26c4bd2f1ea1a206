/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_lane.h"

#define CLOCKS_NS 1000000 /* maximum difference of the clocks of two ends */

/* Classify and count a frame whose sequence number is below the largest received one; return
 * whether the frame is delivered. */
static bool judge_earlier(struct receiver_stream *stream, struct sequence_past *past,
                          uint32_t sequence)
{
    enum sequence_verdict verdict = sequence_judge(&stream->sequence, past, sequence);

    stream->side->duplicated += verdict == SEQUENCE_DUPLICATE;
    stream->side->late += verdict == SEQUENCE_LATE;
    stream->side->reordered += verdict == SEQUENCE_REORDERED;
    return verdict == SEQUENCE_REORDERED;
}

/* Classify and count a frame that is not the next in sequence, or whose number is a multiple of 64.
 * The data that this needs beside the stream's cache line are in no near cache, so as few branches
 * as possible depend on them.
 *
 * A frame was sent at its stamp, unless that is in the future or before the stamp of an earlier
 * frame. Stamps show how much time the sender had for the numbers up to this one, also when frames
 * waited in a queue or in this host. If clocks differ by more than they should, the time between
 * arrivals counts. Before the start is known, stamps mean nothing, and the sender had no time. */
bool frame_judge_out_of_order(const struct receiver *receiver, const struct received *frame,
                              int64_t now_ns)
{
    const struct sequence_limit *limit = &receiver->limit;
    struct receiver_stream *stream = frame->stream;
    struct sequence_past *past = &receiver->pasts[stream - receiver->streams];
    uint64_t next = stream->sequence.next;
    int32_t ahead = (int32_t)(frame->sequence - (uint32_t)next);
    int64_t newest_ns = now_ns - limit->start_ns + CLOCKS_NS;
    int64_t sent_ns = (int64_t)signature_ns(frame->signature);

    if (ahead < 0)
        return judge_earlier(stream, past, frame->sequence);
    sent_ns = sent_ns < newest_ns ? sent_ns : newest_ns;
    if (limit->start_ns == 0 || sent_ns < stream->stamp_ns)
        sent_ns = stream->stamp_ns;
    if (ahead > (int32_t)SEQUENCE_WINDOW) {
        int64_t had_ns = sent_ns - stream->stamp_ns;
        int64_t since_ns = now_ns - (stream->frames > 0 ? stream->last_ns : limit->start_ns);

        had_ns = limit->start_ns == 0 ? 0 : had_ns > since_ns ? had_ns : since_ns;
        if (ahead > limit->at_once + limit->frames_per_ns * (double)had_ns) {
            stream->side->forged++;
            return false;
        }
    }
    stream->stamp_ns = sent_ns;
    sequence_mark(&stream->sequence, past, next + (uint32_t)ahead);
    if (ahead > 0 && sent_ns > stream->side->gap_ns)
        stream->side->gap_ns = sent_ns;
    if (stream->frames == 0 && stream->side->first_ns == 0)
        stream->side->first_ns = now_ns; /* `next` was 0: no frame was in sequence before */
    return true;
}
