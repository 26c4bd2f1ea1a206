/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a stream's frames were out of order, in fixed memory: the extent of RFC 4737 and its
 * n-reordering, and the reorder density of RFC 5236. Only frames that are not the next one come
 * here; a stream in order pays nothing. Arrivals are counted without duplicates and without what is
 * late (sequence.h), from 1.
 */
#ifndef ENGINE_DPDK_DISORDER_H
#define ENGINE_DPDK_DISORDER_H

#include "metrics.h"
#include "sequence.h"

#define DENSITY_WINDOW (DISORDER_REACH + 1u)
#define DISORDER_NEAR 3u /* n of RFC 4737's n-reordering: TCP's threshold of duplicate ACKs */

/* RFC 5236's machine (section 4.2): arrivals wait in a window; each gets the next receive index of
 * a frame that came, and its displacement is that index less its number. */
struct density {
    uint64_t index;                  /* RI: the receive index that is next */
    uint64_t window[DENSITY_WINDOW]; /* numbers of arrivals, in their order; a ring */
    uint32_t first;
    uint32_t count;
    uint64_t early; /* the buffer: bit k: index + k came early and has its displacement already */
    uint64_t displaced[DISORDER_REACH * 2 + 1]; /* FD, from -DISORDER_REACH on */
};

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
    uint64_t fed;      /* arrivals that the density has, or that were in order long before it */
    uint64_t fed_next; /* the stream's `next` when they were fed */
    struct density density;
};

/* The frame that just came is the stream's greatest, and those from `from` to its own number were
 * not seen. `arrival`: which one it is. */
void disorder_gap(struct disorder *disorder, const struct sequence *stream, uint64_t from,
                  uint64_t arrival);

/* The frame that just came is number n, is reordered, and is marked as seen. Adds to `count` all
 * but the density. */
struct disorder_frame {
    uint64_t number;
    uint64_t arrival;
};
void disorder_add(struct disorder *disorder, const struct sequence *stream,
                  const struct sequence_past *past, const struct disorder_frame *frame,
                  struct flow_disorder *count);

/* Adds the density of a stream of which so many frames have come; `disorder` stays as it is. */
void disorder_density(const struct disorder *disorder, uint64_t arrivals,
                      struct flow_disorder *count);

#endif
