/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Partners of a rank in a dissemination barrier.
 *
 * In round k a rank sends to the one 2^k ahead and receives from the one 2^k behind.
 *
 * @see Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization, 1988
 */
#ifndef PATTERNS_DISSEMINATION_H
#define PATTERNS_DISSEMINATION_H

#include <stdint.h>

/** @brief Return the rounds of a barrier of so many ranks. */
static inline unsigned schedule_barrier_rounds(uint32_t ranks)
{
    unsigned rounds = 0;

    while (UINT32_C(1) << rounds < ranks)
        rounds++;
    return rounds;
}

/** @brief Return the rank to which `rank` sends in a round. */
static inline uint32_t schedule_barrier_to(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + (UINT32_C(1) << round)) % ranks;
}

/** @brief Return the rank from which `rank` receives in a round. */
static inline uint32_t schedule_barrier_from(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + ranks - (UINT32_C(1) << round)) % ranks;
}

#endif
