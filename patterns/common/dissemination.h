/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The partners of a rank in a dissemination barrier.
 */
#ifndef PATTERNS_DISSEMINATION_H
#define PATTERNS_DISSEMINATION_H

#include <stdint.h>

/* The dissemination barrier of `ranks` between batches (Hensgen, Finkel, Manber 1988): in round k
 * a rank sends to the one 2^k ahead and receives from the one 2^k behind. */
unsigned schedule_barrier_rounds(uint32_t ranks);
uint32_t schedule_barrier_to(uint32_t rank, unsigned round, uint32_t ranks);
uint32_t schedule_barrier_from(uint32_t rank, unsigned round, uint32_t ranks);

#endif
