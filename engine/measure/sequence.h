/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Classification of a stream's sequence numbers at the receiver, and measures of reordering.
 *
 * 32 bits on the wire are unwrapped to 64 around the number expected next. Reordering is RFC 4737's
 * (type-P-reordered): a frame is reordered when its sequence is smaller than an earlier frame's.
 * Duplicates and reordering are distinguished within the last SEQUENCE_WINDOW numbers; older
 * numbers are late.
 *
 * For frames out of order the extent (RFC 4737, 4.2) and n-reordering (section 5) are computed in
 * fixed memory; a stream in order costs nothing. Arrivals are counted from 1, without duplicates
 * and late frames.
 *
 * @see RFC 4737, sections 3, 4.2 and 5
 */
#ifndef ENGINE_SEQUENCE_H
#define ENGINE_SEQUENCE_H

#include "counters.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW 1024u
#define SEQUENCE_WORDS (SEQUENCE_WINDOW / 64)

/** @brief State for frames in order: small, so that it fits beside the stream's counters. */
struct sequence {
    uint64_t next;   /**< one more than the greatest received (RFC 4737's NextExp) */
    uint64_t recent; /**< bit n % 64: n was received, for the 64 numbers that contain next - 1 */
};

/**
 * @brief State that only one in 64 frames needs: the 16 words of 64 numbers before `recent`.
 *
 * Bit n % 64 of word n / 64 % 16: n was received.
 */
struct sequence_past {
    uint64_t seen[SEQUENCE_WORDS];
};

/**
 * @brief Verdict on a frame's sequence number; each frame has exactly one.
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
 * @brief Return the 64-bit number of a number on the wire near `next`.
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
 * @brief Mark a number as received if it is the next one and does not begin a word.
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
 * @brief Mark a number as received; the numbers from the next one up to it are missing.
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
 * @brief Classify a number on the wire and mark it as received.
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
        return SEQUENCE_LATE; /* the latter: before the stream's first number */
    if (n / 64 == (stream->next - 1) / 64)
        word = &stream->recent;
    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    return SEQUENCE_REORDERED;
}

#define REORDERING_NEAR 3u /**< n of RFC 4737's n-reordering: TCP's threshold of duplicate ACKs */

#define REORDERING_FIRST 3u

/** @brief Number of a frame and of its arrival; 0: none. */
struct reordering_arrival {
    uint32_t number;
    uint32_t arrival;
};

/**
 * @brief Reordering state of a stream; with few missing numbers a gap or a reordered frame touches
 * only this cache line.
 */
struct reordering {
    /** @brief First arrivals with a greater number, for some missing numbers. */
    struct reordering_arrival overtaken[REORDERING_FIRST];
    struct reordering_arrival recent[REORDERING_NEAR]; /**< last few reordered arrivals */
    uint32_t recent_at;
    /**
     * @brief First arrivals with a greater number, for SEQUENCE_WINDOW numbers, all zero at first;
     * owned by the caller. Low bits suffice: at most twice as many frames arrive while a number is
     * missing.
     */
    uint16_t *far;
} __attribute__((aligned(64)));
static_assert(sizeof(struct reordering) == 64, "a stream's reordering is one cache line");

/**
 * @brief Record a gap: numbers before the present frame are missing.
 *
 * @param reordering Reordering of the stream.
 * @param from First number that was not seen.
 * @param number Number of the frame, the stream's greatest.
 * @param arrival Which arrival the frame is, from 1.
 */
static inline void reordering_gap(struct reordering *reordering, uint64_t from, uint64_t number,
                                  uint64_t arrival)
{
    if (number - from > SEQUENCE_WINDOW)
        from = number - SEQUENCE_WINDOW;
    for (; from < number; from++) {
        struct reordering_arrival *first = &reordering->overtaken[from % REORDERING_FIRST];

        if (first->arrival != 0 && (uint32_t)number - first->number < SEQUENCE_WINDOW)
            reordering->far[first->number % SEQUENCE_WINDOW] = (uint16_t)first->arrival;
        *first = (struct reordering_arrival){(uint32_t)from, (uint32_t)arrival};
    }
}

/* Return how many arrivals directly before the frame have a greater number: all since it was
 * overtaken, except reordered ones with a smaller number. Exact up to REORDERING_NEAR. */
static inline uint64_t count_nearest(const struct reordering *reordering, uint64_t number,
                                     uint64_t arrival, uint64_t extent)
{
    uint64_t nearest = extent;

    for (unsigned i = 0; i < REORDERING_NEAR; i++) {
        uint32_t since = (uint32_t)arrival - 1 - reordering->recent[i].arrival;

        if (reordering->recent[i].arrival != 0 && since < nearest &&
            (int32_t)(reordering->recent[i].number - (uint32_t)number) < 0)
            nearest = since;
    }
    return nearest;
}

/**
 * @brief Count a reordered frame that has just arrived.
 *
 * @param reordering Reordering of the stream.
 * @param number Number of the frame.
 * @param arrival Which arrival it is, from 1.
 * @param count Takes the counts.
 */
static inline void reordering_add(struct reordering *reordering, uint64_t number, uint64_t arrival,
                                  struct flow_reordering *count)
{
    struct reordering_arrival *first = &reordering->overtaken[number % REORDERING_FIRST];
    bool near = first->arrival != 0 && first->number == (uint32_t)number;
    uint64_t extent =
        (uint16_t)(arrival - (near ? first->arrival : reordering->far[number % SEQUENCE_WINDOW]));

    first->arrival = near ? 0 : first->arrival;
    count->extent_sum += extent;
    count->extent_max = extent > count->extent_max ? extent : count->extent_max;
    count->near += count_nearest(reordering, number, arrival, extent) >= REORDERING_NEAR;
    reordering->recent[reordering->recent_at] =
        (struct reordering_arrival){(uint32_t)number, (uint32_t)arrival};
    reordering->recent_at = (reordering->recent_at + 1) % REORDERING_NEAR;
}

#endif
