/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The operations of a schedule (schedule.h): what one rank does, step by step.
 */
#ifndef PATTERNS_SCHEDULE_OP_H
#define PATTERNS_SCHEDULE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHEDULE_SUM UINT32_MAX /**< in a rank's place: the sum over all ranks */

enum schedule_action {
    SCHEDULE_SEND,
    SCHEDULE_RECEIVE,
    SCHEDULE_REDUCE, /**< adds the floats of `from` to those of `at` */
    SCHEDULE_COPY,   /**< from `from` to `at`, which do not overlap */
    SCHEDULE_WORK,   /**< computes for so many floating point operations */
};

/**
 * @brief In the order of their steps; of one step sends and receives come first.
 *
 * Places are bytes from the start of the rank's memory.
 */
struct schedule_op {
    uint32_t step;
    uint8_t action; /**< enum schedule_action */
    uint32_t peer;  /**< SEND, RECEIVE: the other rank */
    uint64_t at;    /**< SEND: sent from; RECEIVE, REDUCE, COPY: written to */
    uint64_t from;  /**< REDUCE, COPY: the operand's place; WORK: floating point operations */
    uint64_t bytes; /**< a multiple of 4 where floats are reduced; 0 is a message without payload */
};

struct schedule {
    struct schedule_op *ops;
    size_t count;
    uint32_t steps;           /**< 0: this rank idles */
    uint64_t memory;          /**< bytes that the rank needs */
    bool reduces;             /**< some op is a SCHEDULE_REDUCE */
    uint64_t messages, bytes; /**< that it sends */
};

#endif
