/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Schedules: lists of one rank's operations in one execution of a plan whose steps depend on
 * each other (`sync: local`).
 *
 * A schedule is a list of steps; a step has sends and receives that all go at the same time, then
 * local operations in their order. A rank goes on to its next step as soon as its own sends (their
 * memory may be used again) and receives of this step are complete, whatever the other ranks do:
 * step numbers of two ranks need not match. Messages of one ordered pair of ranks are received in
 * the order in which they are sent.
 *
 * No schedule needs a send to complete before its receiver receives, so that none is stuck where
 * nothing is buffered between two ranks. In a step nothing is sent from or received into a place
 * that another receive of this step writes.
 *
 * Each phase of a scheduled plan is one schedule: an ordinary pattern that was asked for `local`
 * (one phase, its own phases are the steps), and what is a schedule by nature: collectives and
 * application kernels (doc/reference/patterns.md). The flows of such a phase (pattern_flows) are
 * the ordered pairs of its messages and of the barrier below, each once.
 */
#ifndef PATTERNS_SCHEDULE_H
#define PATTERNS_SCHEDULE_H

#include "pattern.h"

#define SCHEDULE_SUM UINT32_MAX /**< in place of a rank: the sum over all ranks */

enum schedule_action {
    SCHEDULE_SEND,
    SCHEDULE_RECEIVE,
    SCHEDULE_REDUCE, /**< adds the floats at `from` to those at `at` */
    SCHEDULE_COPY,   /**< copies from `from` to `at`, which do not overlap */
    SCHEDULE_WORK,   /**< computes for a number of floating point operations */
};

/**
 * @brief Operation of a schedule: a send, a receive or local work. Operations are in the order of
 * their steps; in each step sends and receives come first.
 *
 * Places are offsets in bytes from the start of the rank's memory.
 */
struct schedule_op {
    uint32_t step;
    uint8_t action; /**< enum schedule_action */
    uint32_t peer;  /**< SEND, RECEIVE: the other rank */
    uint64_t at;    /**< SEND: sent from; RECEIVE, REDUCE, COPY: written to */
    uint64_t from;  /**< REDUCE, COPY: the operand's place; WORK: floating point operations */
    uint64_t bytes; /**< a multiple of 4 where floats are reduced; 0 is a message without payload */
};

/** @brief Part of a rank's memory: its offset from the start and its length, in bytes. */
struct piece {
    uint64_t at;
    uint64_t bytes;
};

enum content_time { STEPS_INPUT, STEPS_RESULT };

/**
 * @brief Expected content of a piece of memory: data of rank `source` for rank `target`, from byte
 * `offset` on. `target` is 0 where all ranks get the same data; with source SCHEDULE_SUM the
 * content is floats of the sum over all ranks.
 */
struct content {
    struct piece piece;
    enum content_time time;
    uint32_t source;
    uint32_t target;
    uint64_t offset;
    bool floats; /**< data of one rank that will be reduced */
};

struct schedule {
    struct schedule_op *ops;
    size_t count;
    uint32_t steps;           /**< 0: this rank idles */
    uint64_t memory;          /**< bytes of the rank's memory */
    uint64_t messages, bytes; /**< sent by the rank */
    /** @brief Expected data in the rank's memory: inputs before a repetition, results after it. */
    struct content *contents;
    size_t content_count;
    uint32_t ranks; /**< of the plan */
};

/**
 * @brief Return whether the phases of a plan are schedules.
 *
 * @param plan Plan.
 * @return True: the plan's phases are schedules.
 */
bool pattern_is_scheduled(const struct pattern_plan *plan);

/**
 * @brief Return how many iterations the application kernel of a plan has at its problem size; one
 * repetition of the schedule is one iteration.
 *
 * @param plan Plan.
 * @return Iterations; 0: the plan is no application kernel. Results of kernels cannot be verified:
 *        their messages have the right sizes, but meaningless data.
 */
uint32_t pattern_iterations(const struct pattern_plan *plan);

/**
 * @brief Make the schedule of a rank in a phase of a scheduled plan.
 *
 * @param plan Plan.
 * @param phase Phase of the plan, from 0.
 * @param rank Rank, from 0.
 * @param[out] schedule Schedule.
 * @return 0, and the caller ends the schedule with schedule_free(); -ENOMEM.
 */
int pattern_schedule(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     struct schedule *schedule);
/**
 * @brief Free the memory of a schedule.
 *
 * @param schedule Schedule of the rank.
 */
void schedule_free(struct schedule *schedule);

/**
 * @brief Write the input of a repetition into a rank's memory, and arbitrary data into the rest of
 * the memory.
 *
 * A repetition leaves its input unchanged. Floats are whole numbers so small that their sum over
 * all ranks is exact in any order.
 *
 * @param schedule Schedule of the rank.
 * @param memory Memory to fill.
 */
void schedule_fill(const struct schedule *schedule, void *memory);

/** @brief First wrong element that schedule_verify() found. */
struct schedule_wrong {
    uint64_t at;      /**< place in the memory */
    uint64_t element; /**< number of the float or byte in its input */
    uint32_t source;  /**< rank whose data is expected; SCHEDULE_SUM: the sum of all ranks */
    double expected;
    double got;
};

/**
 * @brief Compare a rank's memory after a repetition with the expected contents.
 *
 * @param schedule Schedule of the rank.
 * @param memory Memory to compare.
 * @param[out] wrong First wrong element.
 * @return False: an element is wrong, and `wrong` describes it.
 */
bool schedule_verify(const struct schedule *schedule, const void *memory,
                     struct schedule_wrong *wrong);

/* --- a dissemination barrier: in round k a rank sends to the one 2^k ahead and receives from the
 * one 2^k behind (Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization, 1988) --- */

/** @brief Return the number of rounds of a dissemination barrier. */
static inline unsigned schedule_barrier_rounds(uint32_t ranks)
{
    unsigned rounds = 0;

    while (UINT32_C(1) << rounds < ranks)
        rounds++;
    return rounds;
}

/** @brief Return the rank to which a given rank sends in a round of a dissemination barrier. */
static inline uint32_t schedule_barrier_to(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + (UINT32_C(1) << round)) % ranks;
}

/** @brief Return the rank from which a given rank receives in a round of a dissemination
 * barrier. */
static inline uint32_t schedule_barrier_from(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + ranks - (UINT32_C(1) << round)) % ranks;
}

#endif
