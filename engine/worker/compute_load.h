/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Concurrent computation beside the traffic: threads that evaluate the logistic map (as
 * Salmon, Stein and Sterling 1998 did) in pieces of about a tenth of a millisecond, for a share of
 * the time, at normal priority.
 *
 * Each piece is timed, which shows how much a node's computation slows down while it communicates,
 * and how long single pieces are delayed.
 *
 * @see Salmon, Stein, Sterling: Scaling of Beowulf-class Distributed Systems, 1998
 */
#ifndef ENGINE_COMPUTE_LOAD_H
#define ENGINE_COMPUTE_LOAD_H

#include "histogram.h"

#include <stdint.h>

/**
 * @brief Computed pieces of all threads in one part of a phase.
 *
 * The histogram has the times of the pieces.
 */
struct compute_part {
    uint64_t operations; /**< floating point operations */
    struct histogram pieces;
};

struct compute_conf {
    unsigned threads;
    double share;     /**< share of time in which each thread computes, above 0 to 1 */
    int64_t start_ns; /**< begin of the computation */
    /** @brief End of the part without messages; a piece that crosses it does not count. */
    int64_t messages_ns;
};

struct compute; /* opaque */

/**
 * @brief Start the computing threads, which wait for the start time.
 *
 * @param compute Takes the threads, for compute_free().
 * @param conf Settings; copied.
 * @return 0, or a negative errno.
 */
int compute_start(struct compute **compute, const struct compute_conf *conf);
/**
 * @brief End the computing threads, within a piece; may be called again.
 *
 * @param compute Threads.
 */
void compute_stop(struct compute *compute);
/**
 * @brief Add up the pieces computed alone, and beside messages; after compute_stop().
 *
 * @param compute Threads.
 * @param alone Takes what was done alone.
 * @param beside Takes what was done beside messages.
 */
void compute_sum(const struct compute *compute, struct compute_part *alone,
                 struct compute_part *beside);
/**
 * @brief Stop and free the computing threads; NULL is allowed.
 *
 * @param compute Threads.
 */
void compute_free(struct compute *compute);

#endif
