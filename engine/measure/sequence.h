/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a stream's receiver makes of a sequence number, and how frames were out of order.
 *
 * 32 bits on the wire are unwrapped to 64 around the number that is expected next. Reordering as
 * RFC 4737 (type-P-reordered): a frame is reordered when its sequence is smaller than one that came
 * before it. Duplicates and reordering are told apart within the last SEQUENCE_WINDOW numbers; what
 * is older is late.
 *
 * Of frames that are not the next one the extent (RFC 4737, 4.2) and n-reordering (section 5) are
 * kept in fixed memory; a stream in order pays nothing. Arrivals are counted without duplicates and
 * without what is late, from 1.
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

#define REORDERING_NEAR 3u /**< n of RFC 4737's n-reordering: TCP's threshold of duplicate ACKs */

#define REORDERING_FIRST 3u

/** @brief A number, and an arrival; 0: none. */
struct reordering_arrival {
    uint32_t number;
    uint32_t arrival;
};

/**
 * @brief Where few numbers are missing at a time, one cache line is all that a gap or a reordered
 * frame touches.
 */
struct reordering {
    /** @brief By number, of some that are missing: the first arrival with a greater one. */
    struct reordering_arrival overtaken[REORDERING_FIRST];
    struct reordering_arrival recent[REORDERING_NEAR]; /**< the last few reordered arrivals */
    uint32_t recent_at;
    /** @brief The same as `overtaken` of SEQUENCE_WINDOW numbers, all zero; the caller's. Low bits
     * do: no more than twice as many frames arrive while a number is missing. */
    uint16_t *far;
} __attribute__((aligned(64)));
static_assert(sizeof(struct reordering) == 64, "a stream's reordering is one cache line");

/**
 * @brief Note a gap: numbers before the frame that just came were not seen.
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

/* How many arrivals directly before the frame have a greater number: all since it was overtaken,
 * but for reordered ones with a smaller number. Exact up to REORDERING_NEAR. */
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
 * @brief Count a frame that just came and is reordered.
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
