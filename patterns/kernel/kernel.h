/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What application kernels share: the NAS Parallel Benchmarks' classes, and what of a kernel is
 * worked out once a plan. Sizes and sources: doc/reference/patterns.md.
 */
#ifndef PATTERNS_KERNEL_H
#define PATTERNS_KERNEL_H

#include "collective.h"

#define KERNEL_DOUBLE 8u       /* bytes */
#define KERNEL_WORK_MAX 0x1p63 /* operations that an op can hold */

/* Ranks in a grid; dimension 0 counts fastest. */
struct kernel_grid {
    uint32_t ranks[3];
    uint32_t at[3]; /* of this rank */
};

/* pattern_kind's make for kinds with a kernel. */
int kernel_make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why);
#define KERNEL .knows = PATTERN_PARAM_CLASS, .make = kernel_make

/* The rank at a distance along a dimension; the grid is closed in itself. */
uint32_t kernel_at(const struct kernel_grid *grid, unsigned dimension, int64_t distance);
struct kernel_grid kernel_grid_of(uint32_t rank, const uint32_t ranks[3]);
/* Points of a dimension that the member at `number` of `ranks` has: as evenly as possible, the
 * first ones more. */
uint32_t kernel_share(uint32_t points, uint32_t ranks, uint32_t number);
/* This rank's share of so many operations of all, which is below KERNEL_WORK_MAX. */
void kernel_work(struct steps *steps, double operations);

unsigned kernel_log2(uint32_t power);

#endif
