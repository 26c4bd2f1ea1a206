/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief An application beside the traffic: threads that evaluate the logistic map (as Salmon,
 * Stein and Sterling 1998 did) in pieces of a tenth of a millisecond or so, for a share of the
 * time, at an ordinary thread's precedence.
 *
 * Each piece is timed, so it is seen how much slower a node computes while it communicates, and how
 * long single pieces are held up.
 *
 * @see Salmon, Stein, Sterling: Scaling of Beowulf-class Distributed Systems, 1998
 */
#ifndef ENGINE_COMPUTE_LOAD_H
#define ENGINE_COMPUTE_LOAD_H

#include "histogram.h"

#include <stdint.h>

/**
 * @brief Pieces of one part of a phase, of all threads.
 *
 * The histogram's times are the pieces'.
 */
struct compute_part {
    uint64_t operations; /**< in floating point */
    struct histogram pieces;
};

struct compute_conf {
    unsigned threads;
    double share;        /**< of the time that each thread computes, above 0 to 1 */
    int64_t start_ns;    /**< they begin */
    int64_t messages_ns; /**< until then they are alone; a piece that lies across counts nowhere */
};

struct compute; /* opaque */

/**
 * @brief Start the threads, which wait for the start.
 *
 * @param compute Takes the threads, for compute_free().
 * @param conf Settings; copied unless said otherwise.
 * @return 0, or a negative errno.
 */
int compute_start(struct compute **compute, const struct compute_conf *conf);
/**
 * @brief End the threads, within a piece; may be called again.
 *
 * @param compute Threads.
 */
void compute_stop(struct compute *compute);
/**
 * @brief Add up what was done alone, and beside messages; after compute_stop().
 *
 * @param compute Threads.
 * @param alone Takes what was done alone.
 * @param beside Takes what was done beside messages.
 */
void compute_sum(const struct compute *compute, struct compute_part *alone,
                 struct compute_part *beside);
/**
 * @brief Stop and free the threads; NULL is none.
 *
 * @param compute Threads.
 */
void compute_free(struct compute *compute);

#endif
