/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_lane.h"

#define CLOCKS_NS 1000000 /* by which the clocks of two ends may differ */
#define SLACK 1.05 /* a gap that was refused in error is believed after 20 times its length */
#define FRAMES_PER_NS_MAX 0.15 /* 100 Gbit/s of 64-byte frames: no send queue takes more */

void sequence_limit_add(struct sequence_limit *limit, const struct lane_flow *flow,
                        const struct load *load, uint64_t line_bps, uint32_t least_bytes)
{
    double bits = 8.0 * (least_bytes + FRAME_OVERHEAD_L1);
    double part = load->part > 0 ? load->part : 1;
    double line = line_bps > 0 ? (double)line_bps : load->rate_bps / part;
    double frames_per_ns = (line > 0 ? line / bits : load->rate_fps / part) * SLACK / 1e9;

    /* A forwarder sends what has waited as fast as its driver takes it. */
    if (flow->role == PATTERN_FORWARD || load->unlimited)
        frames_per_ns = FRAMES_PER_NS_MAX;
    if (frames_per_ns > limit->frames_per_ns)
        limit->frames_per_ns = frames_per_ns;
}

/* When a frame was sent, since the start: its stamp, unless that is of the future or before that of
 * an earlier frame. Before the start is known, no stamp says anything. */
static int64_t sent_at(const struct sequence_limit *limit, uint64_t stamp_ns, int64_t earlier_ns,
                       int64_t now_ns)
{
    int64_t newest_ns = now_ns - limit->start_ns + CLOCKS_NS;
    int64_t sent_ns = (int64_t)stamp_ns < newest_ns ? (int64_t)stamp_ns : newest_ns;

    return limit->start_ns == 0 || sent_ns < earlier_ns ? earlier_ns : sent_ns;
}

/* Whether a sender can have numbered so many frames. Stamps tell how long it had for them, also
 * where frames waited in a queue or here. Where clocks differ by more than they should, the time
 * between arrivals is all there is. Before the start is known, a sender has had no time. */
static bool can_be_ahead(const struct sequence_limit *limit, int32_t ahead, int64_t sent_ns,
                         int64_t last_ns, int64_t now_ns)
{
    int64_t heard_ns = now_ns - (last_ns > 0 ? last_ns : limit->start_ns);

    if (limit->start_ns == 0)
        return ahead <= limit->at_once;
    return ahead <= limit->at_once +
                        limit->frames_per_ns * (double)(sent_ns > heard_ns ? sent_ns : heard_ns);
}

/* One whose number is behind the greatest; returns whether it is delivered. */
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
    sent_ns = sent_at(&receiver->limit, signature_ns(frame->signature), stream->stamp_ns, now_ns);
    if (ahead > (int32_t)SEQUENCE_WINDOW &&
        !can_be_ahead(&receiver->limit, ahead, sent_ns - stream->stamp_ns,
                      stream->frames > 0 ? stream->last_ns : 0, now_ns)) {
        stream->side->forged++;
        return false;
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
