/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Executor of one rank's schedule in a dependent phase (doc/developer/schedules.md), without
 * any I/O: open messages, computation between them, begin and end of repetitions.
 *
 * The carrier of the messages (message_lane.c) calls executor_next() whenever the present step is
 * complete (executor_step_done()), moves the messages of the step, and counts down `sends_left` and
 * `receives_left`.
 *
 * A step is complete when its own sends are handed over (their memory may be used again) and its
 * receives have arrived: the ranks wait for each other in no other way. Messages of one flow go in
 * the order in which they are listed, so both ends know the length of each.
 *
 * Repetitions of the schedule follow each other in batches. Between two batches all ranks meet in a
 * dissemination barrier (Hensgen, Finkel, Manber 1988) of messages without bytes over the same
 * flows, outside of the measured time. Its messages carry bits, reduced by OR: the end of the
 * phase, and an uncounted next batch; so all ranks end after the same batch and measure the same
 * batches.
 *
 * Where results are verified, the repetitions of a batch use several memories in rotation, as many
 * as the nearer caches hold, filled before the barrier that begins the batch and verified after its
 * last step: so the last result in each is verified, outside of the measured time.
 *
 * The main thread makes an executor and reads it afterwards, one worker runs it; in between nothing
 * here allocates, or makes a system call except for the clock.
 */
#ifndef ENGINE_SCHEDULE_EXECUTOR_H
#define ENGINE_SCHEDULE_EXECUTOR_H

#include "err.h"
#include "histogram.h"
#include "schedule.h"
#include "transport.h"

#define EXECUTOR_POINTS 8

/** @brief Bits in the messages of the barrier between two batches. */
#define EXECUTOR_STOP 1u      /**< no further batch */
#define EXECUTOR_UNCOUNTED 2u /**< the next batch is not measured */

/** @brief Measurements of one rank's schedule. */
struct execution {
    uint64_t repetitions;   /**< measured repetitions */
    uint64_t batches;       /**< measured batches */
    uint64_t sum_ns;        /**< of all measured repetitions */
    uint64_t verified;      /**< repetitions with a verified and correct result */
    struct histogram times; /**< of a repetition: the mean of each batch */
};

struct schedule_executor {
    /** @brief Operations of the schedule, followed by the barrier's operations. */
    const struct schedule_op *ops;
    size_t op_count;
    /**
     * @brief Present step: its messages are the `ops` from `first` to before `messages`, its local
     * operations the `ops` from there to before `end`.
     */
    size_t first, messages, end;
    uint32_t sends_left; /**< open sends of the step, counted down by the carrier */
    uint32_t receives_left;
    bool in_barrier; /**< the open messages are a barrier's: they carry `bits`, and count nowhere */
    uint8_t bits;    /**< the carrier merges the bits of received messages */
    bool busy;       /**< it computes: executor_next() must be called again soon */
    bool ended;      /**< all ranks have ended */
    struct err error; /**< a wrong result; "": none */
    struct execution execution;
    /** @brief Memory of the rank for the transport's preparation: in whole pages, never NULL. */
    uint8_t *memory;
    uint64_t memory_bytes;
    uint64_t most_bytes; /**< maximum bytes of a message */

    /* --- private --- */
    const struct phase *phase;
    uint32_t rank;
    struct schedule schedule;
    uint8_t *place;      /**< memory of the present repetition */
    uint64_t stride;     /**< distance between the memories */
    uint32_t copies;     /**< number of memories */
    size_t local;        /**< next local operation */
    uint64_t done;       /**< bytes or floating point operations of it that are done */
    uint32_t repetition; /**< number in the batch */
    uint64_t batch;      /**< number since the begin */
    bool counted;        /**< the present batch is measured */
    bool ran;            /**< a repetition ran, and is not verified yet */
    bool refilling;      /**< between batches: verifies and fills memories, `repetition` next */
    int64_t begun_ns;    /**< begin of the batch */
    uint64_t spent_ns;   /**< time of the last batch */
    double x[EXECUTOR_POINTS]; /**< operands of its computation */
};

/**
 * @brief Make the executor of a rank's schedule, before a phase.
 *
 * @param[out] executor Executor, which executor_free() ends.
 * @param phase Phase; lives as long as the executor.
 * @param plan Plan of the phase; lives as long as the executor.
 * @param rank Rank.
 * @param ranks Number of ranks in the phase.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -ENOMEM; -EINVAL: the messages need more memory than is available.
 */
int executor_make(struct schedule_executor **executor, const struct phase *phase,
                  const struct pattern_plan *plan, uint32_t rank, uint32_t ranks, struct err *err);
/**
 * @brief Free an executor; NULL is allowed.
 *
 * @param executor Executor; NULL is none.
 */
void executor_free(struct schedule_executor *executor);

/**
 * @brief Begin the schedule, or continue after all messages of the step are complete.
 *
 * The call computes for about a millisecond at most, except when it fills and verifies a
 * repetition's memory. Afterwards a step is open, which may have no messages, unless the executor
 * is busy, has ended, or found a wrong result.
 *
 * @param executor Executor.
 */
void executor_next(struct schedule_executor *executor);

/**
 * @brief Return whether the present step has no open messages, so that executor_next() is due.
 *
 * @param executor Executor.
 * @return True: no message is open.
 */
static inline bool executor_step_done(const struct schedule_executor *executor)
{
    return !executor->ended && executor->sends_left + executor->receives_left == 0;
}

/**
 * @brief Return the computing time of one repetition, without its messages, at the lowest expected
 * CPU speed.
 *
 * @param executor Executor.
 * @return Time, ns.
 */
int64_t executor_compute_ns(const struct schedule_executor *executor);

#endif
