/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a stream's receiver makes of a sequence number.
 *
 * 32 bits on the wire are unwrapped to 64 around the number that is expected next. Reordering as
 * RFC 4737 (type-P-reordered): a frame is reordered when its sequence is smaller than one that came
 * before it. Duplicates and reordering are told apart within the last SEQUENCE_WINDOW numbers; what
 * is older is late.
 *
 * @see RFC 4737, section 3
 */
#ifndef ENGINE_SEQUENCE_H
#define ENGINE_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW 1024u
#define SEQUENCE_WORDS (SEQUENCE_WINDOW / 64)

/** @brief What a frame in order needs: small, so that it can lie beside the stream's counters. */
struct sequence {
    uint64_t next;   /**< one more than the greatest seen (RFC 4737's NextExp) */
    uint64_t recent; /**< bit n % 64: n came, of the 64 numbers among which next - 1 is */
};

/**
 * @brief And what only one in 64 needs: the 16 words of 64 numbers before those.
 *
 * Bit n % 64 of word n / 64 % 16: n came.
 */
struct sequence_past {
    uint64_t seen[SEQUENCE_WORDS];
};

/**
 * @brief Exclusive: each frame gets one.
 *
 * Fresh and reordered ones are delivered.
 */
enum sequence_verdict {
    SEQUENCE_FRESH,
    SEQUENCE_REORDERED,
    SEQUENCE_DUPLICATE,
    SEQUENCE_LATE,
    SEQUENCE_VERDICTS,
};

/**
 * @brief Return the 64 bits of a number on the wire, of which `next` is near.
 *
 * @param next Number that is expected next.
 * @param wire Number as it came on the wire.
 * @return Number.
 */
static inline uint64_t sequence_unwrap(uint64_t next, uint32_t wire)
{
    return next + (uint64_t)(int64_t)(int32_t)(wire - (uint32_t)next);
}

/**
 * @brief Mark the number if it is the next one and no word begins with it.
 *
 * @param stream State of the stream's numbers.
 * @param wire Number as it came on the wire.
 * @return True: it is in order, and nothing else is to be done.
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
 * @brief Mark a number; those between the next and it were not seen.
 *
 * @param stream State of the stream's numbers.
 * @param past Older numbers of the same stream.
 * @param n Number, not below the next.
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
 * @brief Judge a number and mark it.
 *
 * @param stream State of the stream's numbers.
 * @param past Older numbers of the same stream.
 * @param wire Number as it came on the wire.
 * @return What the frame is.
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
        return SEQUENCE_LATE; /* the latter: a number before the stream's first */
    if (n / 64 == (stream->next - 1) / 64)
        word = &stream->recent;
    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    return SEQUENCE_REORDERED;
}

#endif
