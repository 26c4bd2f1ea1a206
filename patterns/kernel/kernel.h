/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared parts of application kernels: the NAS Parallel Benchmarks' classes, and values computed
 * once per plan. Sizes and sources: doc/reference/patterns.md.
 */
#ifndef PATTERNS_KERNEL_H
#define PATTERNS_KERNEL_H

#include "collective.h"

#define KERNEL_DOUBLE 8u       /* bytes */
#define KERNEL_WORK_MAX 0x1p63 /* operations that one op can hold */

/* Grid of ranks; dimension 0 varies fastest. */
struct kernel_grid {
    uint32_t ranks[3];
    uint32_t at[3]; /* position of this rank */
};

/* Make the plan of an application kernel (`make` in struct pattern_kind). */
int kernel_make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why);
#define KERNEL .knows = PATTERN_PARAM_CLASS, .make = kernel_make

/* Return the rank at a distance from this rank along a dimension of the grid, which wraps
 * around. */
uint32_t kernel_at(const struct kernel_grid *grid, unsigned dimension, int64_t distance);
struct kernel_grid kernel_grid_of(uint32_t rank, const uint32_t ranks[3]);
/* Return how many points of a dimension the rank with index `number` of `ranks` ranks has: the
 * points are divided evenly, and the first ranks have one more where there is a remainder. */
uint32_t kernel_share(uint32_t points, uint32_t ranks, uint32_t number);
/* Emit local computation: this rank's share of a total number of floating point operations; the
 * share is below KERNEL_WORK_MAX. */
void kernel_work(struct steps *steps, double operations);

unsigned kernel_log2(uint32_t power);

#endif
