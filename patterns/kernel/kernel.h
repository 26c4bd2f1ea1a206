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

/* Make a plan of a kind with a kernel: `make` of struct pattern_kind. */
int kernel_make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why);
#define KERNEL .knows = PATTERN_PARAM_CLASS, .make = kernel_make

/* Return the rank at a distance along a dimension of the grid, which wraps around. */
uint32_t kernel_at(const struct kernel_grid *grid, unsigned dimension, int64_t distance);
struct kernel_grid kernel_grid_of(uint32_t rank, const uint32_t ranks[3]);
/* Return the points of a dimension at the member `number` of `ranks`: divided evenly, with the
 * remainder at the first members. */
uint32_t kernel_share(uint32_t points, uint32_t ranks, uint32_t number);
/* Emit this rank's share of a number of operations, which is below KERNEL_WORK_MAX. */
void kernel_work(struct steps *steps, double operations);

unsigned kernel_log2(uint32_t power);

#endif
