/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a stream's frames were out of order, in fixed memory: the extent of RFC 4737 and its
 * n-reordering. Only frames that are not the next one come here; a stream in order pays nothing.
 * Arrivals are counted without duplicates and without what is late (sequence.h), from 1.
 */
#ifndef ENGINE_REORDERING_H
#define ENGINE_REORDERING_H

#include "counters.h"
#include "sequence.h"

#include <assert.h>

#define REORDERING_NEAR 3u /* n of RFC 4737's n-reordering: TCP's threshold of duplicate ACKs */

/* Numbers that did not come when they should, up to `end`: one that is still missing belongs to the
 * first gap that ends behind it. Numbers and arrivals by their low bits, which do for a window of
 * SEQUENCE_WINDOW: no more than twice as many frames arrive while a number is in it. */
struct gap {
    uint32_t end;
    uint16_t arrival; /* the first with a greater number */
    uint16_t missing; /* of it, still */
};

#define REORDERING_GAPS_NEAR 3u
#define REORDERING_GAPS                                                                            \
    (SEQUENCE_WINDOW / 2 + 16) /* each missing number has one that came behind it */

/* Where few are missing at a time, one cache line is all that a gap or a reordered frame touches.
 */
struct reordering {
    /* The last few reordered arrivals. */
    struct {
        uint32_t number;
        uint32_t arrival; /* 0: none */
    } recent[REORDERING_NEAR];
    uint16_t first; /* the gaps in use: from this place ... */
    uint16_t end;   /* ... to before that */
    uint32_t recent_at;
    struct gap near[REORDERING_GAPS_NEAR]; /* the first places, and the others: */
    struct gap *far; /* REORDERING_GAPS, all zero; the caller's, as long as this is used */
} __attribute__((aligned(64)));
static_assert(sizeof(struct reordering) == 64, "a stream's reordering is one cache line");

/* Adds a gap where others may still miss numbers. `next`: the stream's. */
void reordering_append(struct reordering *reordering, uint32_t *missing, uint32_t next,
                       const struct gap *gap);

/* The frame that just came is the stream's greatest, and those from `from` to its own number were
 * not seen. `arrival`: which one it is. `missing`: how many numbers all gaps miss, which the caller
 * keeps with what it has at hand: where none do, nothing of `reordering` must be read, which lies
 * in no near cache. */
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

/* The frame that just came is reordered. */
struct reordered_frame {
    uint64_t number;
    uint64_t arrival;
};
void reordering_add(struct reordering *reordering, uint32_t *missing,
                    const struct reordered_frame *frame, struct flow_reordering *count);

#endif
