/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a stream's receiver makes of a sequence number. 32 bits on the wire are unwrapped to 64
 * around the number that is expected next. Reordering as RFC 4737 (type-P-reordered): a frame is
 * reordered when its sequence is smaller than one that came before it. Duplicates and reordering
 * are told apart within the last SEQUENCE_WINDOW numbers; what is older is late.
 */
#ifndef ENGINE_DPDK_SEQUENCE_H
#define ENGINE_DPDK_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW 1024u
#define SEQUENCE_WORDS (SEQUENCE_WINDOW / 64)

/* What a frame in order needs: small, so that it can lie beside the stream's counters. */
struct sequence {
    uint64_t next;   /* one more than the greatest seen (RFC 4737's NextExp) */
    uint64_t recent; /* bit n % 64: n came, for the n < next of next's own 64 numbers */
};

/* And what only one in 64 needs: the 16 words of 64 numbers before `next`'s. Bit n % 64 of
 * word n / 64 % 16: n came. */
struct sequence_past {
    uint64_t seen[SEQUENCE_WORDS];
};

/* Exclusive: each frame gets one. Fresh and reordered ones are delivered. */
enum sequence_verdict {
    SEQUENCE_FRESH,
    SEQUENCE_REORDERED,
    SEQUENCE_DUPLICATE,
    SEQUENCE_LATE,
    SEQUENCE_VERDICTS,
};

/* Moves `next` forward to `to`; what lies between was not seen. */
static inline void sequence_advance(struct sequence *stream, struct sequence_past *past,
                                    uint64_t to)
{
    uint64_t word = stream->next / 64, last = to / 64;

    stream->next = to;
    if (word == last)
        return;
    past->seen[word % SEQUENCE_WORDS] = stream->recent;
    stream->recent = 0;
    if (last - word > SEQUENCE_WORDS)
        last = word + SEQUENCE_WORDS + 1;
    while (++word < last)
        past->seen[word % SEQUENCE_WORDS] = 0;
}

/* One that is not the next. */
static inline enum sequence_verdict sequence_judge_other(struct sequence *stream,
                                                         struct sequence_past *past, int32_t ahead)
{
    uint64_t n = stream->next + (uint64_t)(int64_t)ahead;
    uint64_t bit = UINT64_C(1) << n % 64;
    uint64_t *word = &past->seen[n / 64 % SEQUENCE_WORDS];

    if (ahead > 0) {
        sequence_advance(stream, past, n);
        stream->recent |= bit;
        sequence_advance(stream, past, n + 1);
        return SEQUENCE_FRESH;
    }
    if (stream->next - n > SEQUENCE_WINDOW || n > stream->next)
        return SEQUENCE_LATE; /* the latter: a number before the stream's first */
    if (n / 64 == stream->next / 64)
        word = &stream->recent;
    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    return SEQUENCE_REORDERED;
}

static inline enum sequence_verdict sequence_judge(struct sequence *stream,
                                                   struct sequence_past *past, uint32_t wire)
{
    int32_t ahead = (int32_t)(wire - (uint32_t)stream->next);

    if (__builtin_expect(ahead != 0, false))
        return sequence_judge_other(stream, past, ahead);
    stream->recent |= UINT64_C(1) << stream->next % 64;
    sequence_advance(stream, past, stream->next + 1);
    return SEQUENCE_FRESH;
}

#endif
