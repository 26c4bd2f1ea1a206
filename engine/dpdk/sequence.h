/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a stream's receiver makes of a sequence number. 32 bits on the wire are unwrapped to 64
 * around the number that is expected next. Reordering as RFC 4737 (type-P-reordered): a frame is
 * reordered when its sequence is smaller than one that came before it. Duplicates and reordering
 * are told apart within the last SEQUENCE_WINDOW numbers; what is older is late.
 */
#ifndef ENGINE_DPDK_SEQUENCE_H
#define ENGINE_DPDK_SEQUENCE_H

#include <stdint.h>
#include <string.h>

#define SEQUENCE_WINDOW 1024u
#define SEQUENCE_WORDS (SEQUENCE_WINDOW / 64)

struct sequence {
    uint64_t next;                 /* one more than the greatest seen (RFC 4737's NextExp) */
    uint64_t seen[SEQUENCE_WORDS]; /* bit n % SEQUENCE_WINDOW: n came, for next-1024 <= n < next */
};

/* Exclusive: each frame gets one. Fresh and reordered ones are delivered. */
enum sequence_verdict {
    SEQUENCE_FRESH,
    SEQUENCE_REORDERED,
    SEQUENCE_DUPLICATE,
    SEQUENCE_LATE,
    SEQUENCE_VERDICTS,
};

/* Marks the numbers from `next` up to `end` as not seen. */
static inline void sequence_skip(struct sequence *stream, uint64_t end)
{
    if (end - stream->next >= SEQUENCE_WINDOW) {
        memset(stream->seen, 0, sizeof stream->seen);
        return;
    }
    for (uint64_t n = stream->next; n < end; n++)
        stream->seen[n / 64 % SEQUENCE_WORDS] &= ~(UINT64_C(1) << n % 64);
}

static inline enum sequence_verdict sequence_judge(struct sequence *stream, uint32_t wire)
{
    int32_t ahead = (int32_t)(wire - (uint32_t)stream->next);
    uint64_t n = stream->next + (uint64_t)(int64_t)ahead;
    uint64_t bit = UINT64_C(1) << n % 64;
    uint64_t *word = &stream->seen[n / 64 % SEQUENCE_WORDS];

    if (ahead >= 0) {
        if (ahead > 0)
            sequence_skip(stream, n);
        *word |= bit;
        stream->next = n + 1;
        return SEQUENCE_FRESH;
    }
    if (stream->next - n > SEQUENCE_WINDOW || n > stream->next)
        return SEQUENCE_LATE; /* the latter: a number before the stream's first */
    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    return SEQUENCE_REORDERED;
}

#endif
