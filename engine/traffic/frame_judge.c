/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_lane.h"

#define CLOCKS_NS 1000000 /* by which the clocks of two ends may differ */
/* Judges one whose number is behind the greatest; returns whether it is delivered. */
static bool judge_earlier(const struct receiver *receiver, struct receiver_stream *stream,
                          uint32_t sequence)
{
    size_t place = (size_t)(stream - receiver->streams);
    uint64_t number = sequence_unwrap(stream->sequence.next, sequence);
    enum sequence_verdict verdict =
        sequence_judge(&stream->sequence, &receiver->pasts[place], sequence);

    stream->side->duplicated += verdict == SEQUENCE_DUPLICATE;
    stream->side->late += verdict == SEQUENCE_LATE;
    if (verdict != SEQUENCE_REORDERED)
        return false;
    stream->side->reordered++;
    reordering_add(&receiver->reorderings[place], number, stream->frames + 1,
                   &stream->side->reordering);
    return true;
}

/* Judges one that is not the next, or begins a word. What it touches beside the stream's line lies
 * in no near cache: no branch waits for that where none must.
 *
 * A frame was sent at its stamp, unless that is of the future or before that of an earlier frame.
 * Stamps tell how long its sender had for the numbers up to its own, also where frames waited in a
 * queue or here. Where clocks differ by more than they should, the time between arrivals is all
 * there is. Before the start is known no stamp says anything, and a sender has had no time. */
bool frame_judge_out_of_order(const struct receiver *receiver, const struct received *frame,
                              int64_t now_ns)
{
    const struct sequence_limit *limit = &receiver->limit;
    struct receiver_stream *stream = frame->stream;
    size_t place = (size_t)(stream - receiver->streams);
    uint64_t next = stream->sequence.next;
    int32_t ahead = (int32_t)(frame->sequence - (uint32_t)next);
    int64_t newest_ns = now_ns - limit->start_ns + CLOCKS_NS;
    int64_t sent_ns = (int64_t)signature_ns(frame->signature);

    if (ahead < 0)
        return judge_earlier(receiver, stream, frame->sequence);
    sent_ns = sent_ns < newest_ns ? sent_ns : newest_ns;
    if (limit->start_ns == 0 || sent_ns < stream->stamp_ns)
        sent_ns = stream->stamp_ns;
    if (ahead > (int32_t)SEQUENCE_WINDOW) {
        int64_t had_ns = sent_ns - stream->stamp_ns;
        int64_t heard_ns = now_ns - (stream->frames > 0 ? stream->last_ns : limit->start_ns);

        had_ns = limit->start_ns == 0 ? 0 : had_ns > heard_ns ? had_ns : heard_ns;
        if (ahead > limit->at_once + limit->frames_per_ns * (double)had_ns) {
            stream->side->forged++;
            return false;
        }
    }
    stream->stamp_ns = sent_ns;
    sequence_mark(&stream->sequence, &receiver->pasts[place], next + (uint32_t)ahead);
    if (ahead > 0) {
        reordering_gap(&receiver->reorderings[place], next, next + (uint32_t)ahead,
                       stream->frames + 1);
        if (sent_ns > stream->side->gap_ns)
            stream->side->gap_ns = sent_ns;
    }
    if (stream->frames == 0 && stream->side->first_ns == 0)
        stream->side->first_ns = now_ns; /* `next` was 0: none came by the short way */
    return true;
}
