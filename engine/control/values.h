/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Values that nodes exchange in control datagrams: the values of a barrier, and the fault
 * that ends a run.
 */
#ifndef ENGINE_VALUES_H
#define ENGINE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/**
 * @brief Values that a barrier reduces over all nodes: bits by OR, numbers by their maximum.
 *
 * The first maxima are the caller's; the others are the nodes' properties in the first barrier
 * (membership.c).
 */
#define BARRIER_MAXIMA_CALLER 6
#define BARRIER_MAXIMA 10
struct barrier_values {
    uint32_t states;                 /**< reduced by OR */
    uint32_t said;                   /**< number of sent maxima, set by datagram.c */
    int64_t maximum[BARRIER_MAXIMA]; /**< INT64_MIN: unset */
};

/**
 * @brief Reset the values of a barrier before a reduction: no bit and no maximum is set.
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

/** @brief Fault for which a barrier failed or the run was aborted. */
struct control_fault {
    uint32_t node;       /**< index */
    uint32_t epoch;      /**< barrier that the node did not reach */
    uint32_t last_epoch; /**< last barrier with a datagram from the node; UINT32_MAX: never */
    uint8_t missing;     /**< 1: `node` does not answer; 0: `node` itself reports `text` */
    uint8_t impossible;  /**< 1: `node` reports an impossible request, not a failure */
    uint8_t heard;       /**< 1: the sender has received this fault from the recipient */
    uint8_t zero;
    int64_t silence_ns; /**< since its last datagram; -1: never */
    char text[256];     /**< reason given by the node, or "" */
};

#endif
