/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What the nodes of a run tell each other: the values of a barrier, and why it failed.
 */
#ifndef ENGINE_VALUES_H
#define ENGINE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/**
 * @brief Idempotent reductions that a barrier carries: maxima and an OR over all nodes.
 *
 * The first are the caller's; the others are what nodes say of themselves in the first barrier
 * (membership.c).
 */
#define BARRIER_MAXIMA_CALLER 6
#define BARRIER_MAXIMA 10
struct barrier_values {
    uint32_t states;                 /**< OR */
    uint32_t said;                   /**< datagram.c's: maxima that are sent */
    int64_t maximum[BARRIER_MAXIMA]; /**< INT64_MIN: nothing to say */
};

/**
 * @brief Clear values: what every reduction begins with.
 *
 * @param values Values.
 */
static inline void barrier_values_clear(struct barrier_values *values)
{
    for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
        values->maximum[i] = INT64_MIN;
    values->states = 0;
}

enum barrier_state { BARRIER_WAITING, BARRIER_PASSED, BARRIER_FAILED };

/** @brief Why a barrier failed or the run was aborted. */
struct control_fault {
    uint32_t node;       /**< index */
    uint32_t epoch;      /**< the barrier that it did not reach */
    uint32_t last_epoch; /**< the last in which it was heard; UINT32_MAX: never */
    uint8_t missing;     /**< 1: `node` was found not to answer; 0: `node` says `text` itself */
    uint8_t impossible;  /**< 1: what was asked for can't be, says `node`: no run goes wrong here */
    uint8_t heard;       /**< 1: whoever sends this has it from the recipient */
    uint8_t zero;
    int64_t silence_ns; /**< since it was last heard; -1: never */
    char text[256];     /**< "" or the node's own reason */
};

#endif
