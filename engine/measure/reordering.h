/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief How a stream's frames were out of order, in fixed memory: the extent of RFC 4737 and its
 * n-reordering.
 *
 * Only frames that are not the next one come here; a stream in order pays nothing. Arrivals are
 * counted without duplicates and without what is late (sequence.h), from 1.
 *
 * @see RFC 4737, sections 4.2 and 5
 */
#ifndef ENGINE_REORDERING_H
#define ENGINE_REORDERING_H

#include "counters.h"
#include "sequence.h"

#include <assert.h>

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

/**
 * @brief Count a frame that just came and is reordered.
 *
 * @param reordering Reordering of the stream.
 * @param number Number of the frame.
 * @param arrival Which arrival it is, from 1.
 * @param count Takes the counts.
 */
void reordering_add(struct reordering *reordering, uint64_t number, uint64_t arrival,
                    struct flow_reordering *count);

#endif
