/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Back-off of repeated datagrams: first after 2 ms, then after intervals that grow by an
 * eighth, up to 50 ms.
 *
 * A long wait for a slow partner costs little (28 questions in its first 0.4 s) and yet ends soon
 * after the partner is there. The growth is slow because waits build on each other: of 65,536 nodes
 * at 1 % loss, some wait for a node that waits for another, five losses deep, and must still ask
 * often when the last loss happens. Doubling took such a barrier ten times as long
 * (tests/unit/test_barrier.c).
 */
#ifndef ENGINE_BACKOFF_H
#define ENGINE_BACKOFF_H

#include "clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/param.h>

#define BACKOFF_FIRST_NS (2 * NS_PER_MS)
#define BACKOFF_MOST_NS (50 * NS_PER_MS)

struct backoff {
    int64_t due_ns; /**< CLOCK_NEVER: stopped */
    int64_t gap_ns;
};

/**
 * @brief Stop the repetitions of a datagram: no further one is due.
 *
 * @param backoff Back-off.
 */
static inline void backoff_stop(struct backoff *backoff)
{
    backoff->due_ns = CLOCK_NEVER;
}

/**
 * @brief Start repeating a datagram; the first repetition is due after BACKOFF_FIRST_NS.
 *
 * @param backoff Back-off.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
static inline void backoff_start(struct backoff *backoff, int64_t now_ns)
{
    backoff->gap_ns = BACKOFF_FIRST_NS;
    backoff->due_ns = now_ns + backoff->gap_ns;
}

/**
 * @brief Return whether the repetition of a datagram is due; if it is due, set the time of the next
 * repetition.
 *
 * @param backoff Back-off.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: the datagram must be sent now.
 */
static inline bool backoff_due(struct backoff *backoff, int64_t now_ns)
{
    if (now_ns < backoff->due_ns)
        return false;
    backoff->gap_ns = MIN(backoff->gap_ns + backoff->gap_ns / 8, BACKOFF_MOST_NS);
    backoff->due_ns = now_ns + backoff->gap_ns;
    return true;
}

#endif
