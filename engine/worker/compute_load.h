/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An application beside the traffic: threads that evaluate the logistic map (as Salmon, Stein and
 * Sterling 1998 did) in pieces of a tenth of a millisecond or so, for a share of the time, at an
 * ordinary thread's precedence. Each piece is timed, so it is seen how much slower a node computes
 * while it communicates, and how long single pieces are held up.
 */
#ifndef ENGINE_COMPUTE_LOAD_H
#define ENGINE_COMPUTE_LOAD_H

#include "histogram.h"

#include <stdint.h>

/* Pieces of one part of a phase, of all threads. The histogram's times are the pieces'. */
struct compute_part {
    uint64_t operations; /* in floating point */
    struct histogram pieces;
};

struct compute_conf {
    unsigned threads;
    double share;        /* of the time that each thread computes, above 0 to 1 */
    int64_t start_ns;    /* they begin */
    int64_t messages_ns; /* until then they are alone; a piece that lies across counts nowhere */
};

struct compute; /* opaque */

/* Starts the threads, which wait for the start. 0 or a negative errno. */
int compute_start(struct compute **compute, const struct compute_conf *conf);
/* Ends them, within a piece; may be called again. */
void compute_stop(struct compute *compute);
/* After compute_stop: adds up what was done alone, and beside messages. */
void compute_sum(const struct compute *compute, struct compute_part *alone,
                 struct compute_part *beside);
/* Stops them, too. NULL is none. */
void compute_free(struct compute *compute);

#endif
