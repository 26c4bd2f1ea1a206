/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief One rank's part in a dependent phase (doc/developer/schedules.md), without any I/O: which
 * messages are open now, what is computed between them, when a repetition begins and ends.
 *
 * The carrier of the messages (message_lane.c) calls executor_next() whenever nothing of the
 * present step is left (executor_step_done()), moves the messages of the step, and counts down
 * `sends_left` and `receives_left`.
 *
 * A step is complete when its own sends are handed over (their memory may be used again) and its
 * receives are here: the ranks wait for each other in no other way. Messages of one flow go in the
 * order in which they are listed, so both ends know how long each is.
 *
 * Repetitions of the schedule follow each other in batches. Between two batches all ranks meet in a
 * dissemination barrier (Hensgen, Finkel, Manber 1988) of messages without bytes over the same
 * flows, outside of the measured time. Its messages carry bits, OR-ed: whether it is over, and
 * whether the next batch counts; so that all ranks end after the same batch and measure the same.
 *
 * Where results are verified the repetitions of a batch take turns in some memories, as many as the
 * nearer caches hold, filled before the barrier that begins the batch and verified behind its last
 * step: so the last result in each is verified, and none of this is in anybody's time.
 *
 * The main thread makes an executor and reads it afterwards, one worker drives it; in between
 * nothing here allocates, or makes a system call but for the clock.
 */
#ifndef ENGINE_SCHEDULE_EXECUTOR_H
#define ENGINE_SCHEDULE_EXECUTOR_H

#include "err.h"
#include "histogram.h"
#include "schedule.h"
#include "transport.h"

#define EXECUTOR_POINTS 8

/** @brief Bits of a barrier's messages. */
#define EXECUTOR_STOP 1u      /**< no further batch */
#define EXECUTOR_UNCOUNTED 2u /**< the next batch is not measured */

/** @brief What was measured of one rank. */
struct execution {
    uint64_t repetitions;   /**< measured */
    uint64_t batches;       /**< of them */
    uint64_t sum_ns;        /**< of all repetitions */
    uint64_t verified;      /**< repetitions whose result was verified, and right */
    struct histogram times; /**< of a repetition: the mean of each batch */
};

struct schedule_executor {
    /** @brief The schedule's operations, and behind them the barrier's. */
    const struct schedule_op *ops;
    size_t op_count;
    /** @brief The present step: its messages are `ops` from `first` to before `messages`, its local
     * operations those to before `end`. */
    size_t first, messages, end;
    uint32_t sends_left; /**< of the step's; the carrier counts down what is through */
    uint32_t receives_left;
    bool in_barrier;  /**< they are the barrier's: they carry `bits`, and count nowhere */
    uint8_t bits;     /**< the carrier merges those of received messages */
    bool busy;        /**< it computes: executor_next() is to be called again, soon */
    bool ended;       /**< all ranks are through */
    struct err error; /**< a wrong result; "": none */
    struct execution execution;
    /** @brief For the transport's preparation: the rank's memory, in whole pages, never NULL. */
    uint8_t *memory;
    uint64_t memory_bytes;
    uint64_t most_bytes; /**< of a message */

    /* --- its own --- */
    const struct phase *phase;
    uint32_t rank;
    struct schedule schedule;
    uint8_t *place;      /**< the present repetition's memory ... */
    uint64_t stride;     /**< ... and from one to the next ... */
    uint32_t copies;     /**< ... of which there are so many */
    size_t local;        /**< the local operation that is next ... */
    uint64_t done;       /**< ... and bytes or floating point operations of it that are done */
    uint32_t repetition; /**< of the batch */
    uint64_t batch;      /**< since the beginning */
    bool begun;          /**< executor_next() was called */
    bool counted;        /**< the present batch is measured */
    bool ran;            /**< one has, and was not verified yet */
    bool refilling;      /**< between batches: it verifies and fills, `repetition` next */
    int64_t begun_ns;    /**< of the batch */
    uint64_t spent_ns;   /**< of the last batch */
    double x[EXECUTOR_POINTS]; /**< what it computes with */
};

/**
 * @brief Make the executor of a rank's schedule, before a phase.
 *
 * @param executor Takes the executor, which executor_free() ends.
 * @param phase Phase; lives as long as the executor.
 * @param plan Plan of the phase; the same.
 * @param rank Rank.
 * @param ranks Ranks in the phase.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -ENOMEM; -EINVAL: there is less memory to spare than its messages need.
 */
int executor_make(struct schedule_executor **executor, const struct phase *phase,
                  const struct pattern_plan *plan, uint32_t rank, uint32_t ranks, struct err *err);
/**
 * @brief Free an executor.
 *
 * @param executor Executor; NULL is none.
 */
void executor_free(struct schedule_executor *executor);

/**
 * @brief Begin, or go on after all messages of the step are through.
 *
 * It computes for a millisecond or so at most, but for the filling and verifying of a repetition's
 * memory. Afterwards a step is open, which may have no messages, unless it is busy or has ended, or
 * found a wrong result.
 *
 * @param executor Executor.
 */
void executor_next(struct schedule_executor *executor);

/**
 * @brief Return whether nothing of what was open is left: executor_next() is due.
 *
 * @param executor Executor.
 * @return True: nothing is.
 */
static inline bool executor_step_done(const struct schedule_executor *executor)
{
    return !executor->ended && executor->sends_left + executor->receives_left == 0;
}

/**
 * @brief Return how long a repetition computes, at the least speed that is expected: nothing moves
 * meanwhile.
 *
 * @param executor Executor.
 * @return ns.
 */
int64_t executor_compute_ns(const struct schedule_executor *executor);

#endif
