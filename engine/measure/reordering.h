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

#define DISORDER_NEAR 3u /* n of RFC 4737's n-reordering: TCP's threshold of duplicate ACKs */

struct disorder {
    /* By number % SEQUENCE_WINDOW, of numbers that did not come when they should: the arrival that
     * was the first with a greater number. */
    uint32_t overtaken[SEQUENCE_WINDOW];
    /* The last few reordered arrivals. */
    struct {
        uint64_t number;
        uint64_t arrival; /* 0: none */
    } recent[DISORDER_NEAR];
    uint32_t recent_at;
};

/* The frame that just came is the stream's greatest, and those from `from` to its own number were
 * not seen. `arrival`: which one it is. */
void disorder_gap(struct disorder *disorder, const struct sequence *stream, uint64_t from,
                  uint64_t arrival);

/* The frame that just came is reordered. */
struct disorder_frame {
    uint64_t number;
    uint64_t arrival;
};
void disorder_add(struct disorder *disorder, const struct disorder_frame *frame,
                  struct flow_disorder *count);

#endif
