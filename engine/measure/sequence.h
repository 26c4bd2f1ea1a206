/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Classification of a stream's sequence numbers at the receiver.
 *
 * 32 bits on the wire are unwrapped to 64 around the number expected next. Reordering is RFC 4737's
 * (type-P-reordered): a frame is reordered when its sequence is smaller than an earlier frame's.
 * Duplicates and reordering are distinguished within the last SEQUENCE_WINDOW numbers; older
 * numbers are late.
 *
 * @see RFC 4737, section 3
 */
#ifndef ENGINE_SEQUENCE_H
#define ENGINE_SEQUENCE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW 1024u
#define SEQUENCE_WORDS (SEQUENCE_WINDOW / 64)

/** @brief State of a stream's received sequence numbers; small, so that it shares a cache line with
 * the stream's counters. */
struct sequence {
    uint64_t next;   /**< one more than the largest received number (RFC 4737's NextExp) */
    uint64_t recent; /**< bit n % 64: n was received, for the 64 numbers that contain next - 1 */
};

/**
 * @brief Bitmap of the last 1,024 sequence numbers of a stream; struct sequence has the newest 64,
 * so that only one in 64 frames needs this bitmap.
 *
 * Bit n % 64 of word n / 64 % 16: n was received.
 */
struct sequence_past {
    uint64_t seen[SEQUENCE_WORDS];
};

/**
 * @brief Classification of a frame by its sequence number; each frame has exactly one.
 *
 * Fresh and reordered frames are delivered.
 */
enum sequence_verdict {
    SEQUENCE_FRESH,
    SEQUENCE_REORDERED,
    SEQUENCE_DUPLICATE,
    SEQUENCE_LATE,
    SEQUENCE_VERDICTS,
};

/**
 * @brief Return the 64-bit sequence number of a frame that carries its low 32 bits: the number
 * closest to `next` with these bits.
 *
 * @param next Sequence number that is expected next.
 * @param wire Sequence number in the frame, 32 bits.
 * @return Number.
 */
static inline uint64_t sequence_unwrap(uint64_t next, uint32_t wire)
{
    return next + (uint64_t)(int64_t)(int32_t)(wire - (uint32_t)next);
}

/**
 * @brief Mark a frame's sequence number as received if it is the expected one and is no multiple of
 * 64 (where a new word of the bitmap begins).
 *
 * @param stream State of the stream's numbers.
 * @param wire Sequence number in the frame, 32 bits.
 * @return True: the number was expected and is marked. False: nothing is changed; call
 *        sequence_judge().
 */
static inline bool sequence_follows(struct sequence *stream, uint32_t wire)
{
    uint64_t n = stream->next;

    if (__builtin_expect(wire != (uint32_t)n || n % 64 == 0, false))
        return false;
    stream->recent |= UINT64_C(1) << n % 64;
    stream->next = n + 1;
    return true;
}

/**
 * @brief Mark a sequence number as received; the skipped numbers from the expected one up to it
 * stay unmarked.
 *
 * @param stream State of the stream's numbers.
 * @param past Older numbers of the same stream.
 * @param n Sequence number, at least stream->next.
 */
static inline void sequence_mark(struct sequence *stream, struct sequence_past *past, uint64_t n)
{
    uint64_t word = (stream->next - 1) / 64, last = n / 64;

    if (stream->next > 0 && word != last) {
        past->seen[word % SEQUENCE_WORDS] = stream->recent;
        stream->recent = 0;
        for (uint64_t i = 1; i <= SEQUENCE_WORDS && word + i < last; i++)
            past->seen[(word + i) % SEQUENCE_WORDS] = 0;
    }
    stream->recent |= UINT64_C(1) << n % 64;
    stream->next = n + 1;
}

/**
 * @brief Classify a frame by its sequence number, and mark the number as received.
 *
 * @param stream State of the stream's numbers.
 * @param past Older numbers of the same stream.
 * @param wire Sequence number in the frame, 32 bits.
 * @return Classification of the frame.
 */
static inline enum sequence_verdict sequence_judge(struct sequence *stream,
                                                   struct sequence_past *past, uint32_t wire)
{
    int32_t ahead = (int32_t)(wire - (uint32_t)stream->next);
    uint64_t n = sequence_unwrap(stream->next, wire);
    uint64_t bit = UINT64_C(1) << n % 64;
    uint64_t *word = &past->seen[n / 64 % SEQUENCE_WORDS];

    if (ahead >= 0) {
        sequence_mark(stream, past, n);
        return SEQUENCE_FRESH;
    }
    if (stream->next - n > SEQUENCE_WINDOW || n > stream->next)
        return SEQUENCE_LATE; /* n > next: n is before the stream's first number */
    if (n / 64 == (stream->next - 1) / 64)
        word = &stream->recent;
    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    return SEQUENCE_REORDERED;
}

#endif
