/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_judge.h"

/* One whose number is behind the greatest; returns whether it is delivered. */
static bool judge_earlier(const struct receiver *receiver, struct receiver_stream *stream,
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

/* One that is not the next, or begins a word. What it touches beside the stream's line lies in no
 * near cache: no branch waits for that where none must. */
bool frame_judge_out_of_order(const struct receiver *receiver, const struct received *frame,
                              int64_t now_ns)
{
    struct receiver_stream *stream = frame->stream;
    size_t place = (size_t)(stream - receiver->streams);
    uint64_t next = stream->sequence.next;
    int32_t ahead = (int32_t)(frame->sequence - (uint32_t)next);
    int64_t sent_ns;

    if (ahead < 0)
        return judge_earlier(receiver, stream, frame->sequence);
    sent_ns = sequence_limit_stamp(&receiver->limit, signature_ns(frame->signature),
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
        if (sent_ns > stream->side->gap_ns)
            stream->side->gap_ns = sent_ns;
    }
    if (stream->frames == 0 && stream->side->first_ns == 0)
        stream->side->first_ns = now_ns; /* `next` was 0: none came by the short way */
    return true;
}
