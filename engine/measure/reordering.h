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

/**
 * @brief Numbers that did not come when they should, up to `end`: one that is still missing belongs
 * to the first gap that ends behind it.
 *
 * Numbers and arrivals by their low bits, which do for a window of SEQUENCE_WINDOW: no more than
 * twice as many frames arrive while a number is in it.
 */
struct gap {
    uint32_t end;
    uint16_t arrival; /**< the first with a greater number */
    uint16_t missing; /**< of it, still */
};

#define REORDERING_GAPS_NEAR 3u
#define REORDERING_GAPS                                                                            \
    (SEQUENCE_WINDOW / 2 + 16) /* each missing number has one that came behind it */

/**
 * @brief Where few are missing at a time, one cache line is all that a gap or a reordered frame
 * touches.
 *
 */
struct reordering {
    /** @brief The last few reordered arrivals. */
    struct {
        uint32_t number;
        uint32_t arrival; /**< 0: none */
    } recent[REORDERING_NEAR];
    uint16_t first; /**< the gaps in use: from this place ... */
    uint16_t end;   /**< ... to before that */
    uint32_t recent_at;
    struct gap near[REORDERING_GAPS_NEAR]; /**< the first places, and the others: */
    struct gap *far; /**< REORDERING_GAPS, all zero; the caller's, as long as this is used */
} __attribute__((aligned(64)));
static_assert(sizeof(struct reordering) == 64, "a stream's reordering is one cache line");

/**
 * @brief Add a gap where others may still miss numbers.
 *
 * @param reordering Reordering of the stream.
 * @param missing Numbers that all gaps miss; kept by the caller.
 * @param next Number that the stream expects next.
 * @param gap Gap.
 */
void reordering_append(struct reordering *reordering, uint32_t *missing, uint32_t next,
                       const struct gap *gap);

/**
 * @brief Note a gap: the frame that just came is the stream's greatest, and those from `from` to
 * its own number were not seen.
 *
 * Where no gap misses anything, nothing of `reordering` is read, which lies in no near cache.
 *
 * @param reordering Reordering of the stream.
 * @param missing Numbers that all gaps miss; kept by the caller.
 * @param stream State of the stream's numbers.
 * @param from First number that was not seen.
 * @param arrival Which arrival the frame is, from 1.
 */
static inline void reordering_gap(struct reordering *reordering, uint32_t *missing,
                                  const struct sequence *stream, uint64_t from, uint64_t arrival)
{
    uint64_t end = stream->next - 1;
    struct gap gap = {.end = (uint32_t)end, .arrival = (uint16_t)arrival};

    gap.missing = (uint16_t)(end - from < SEQUENCE_WINDOW ? end - from : SEQUENCE_WINDOW);
    if (*missing == 0) {
        reordering->first = 0;
        reordering->end = 1;
        reordering->near[0] = gap;
    } else {
        reordering_append(reordering, missing, (uint32_t)stream->next, &gap);
    }
    *missing += gap.missing;
}

/** @brief The frame that just came is reordered. */
struct reordered_frame {
    uint64_t number;
    uint64_t arrival;
};
/**
 * @brief Count a frame that just came and is reordered.
 *
 * @param reordering Reordering of the stream.
 * @param missing Numbers that all gaps miss; kept by the caller.
 * @param frame Frame.
 * @param count Takes the counts.
 */
void reordering_add(struct reordering *reordering, uint32_t *missing,
                    const struct reordered_frame *frame, struct flow_reordering *count);

#endif
