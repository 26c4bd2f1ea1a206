/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The frequency of the CPU's time stamp counter, which says what a frame costs in cycles.
 *
 * Times in a node are CLOCK_MONOTONIC's (clock.h).
 */
#ifndef ENGINE_TSC_H
#define ENGINE_TSC_H

#include <stdint.h>

/** @brief A moment by both clocks. */
struct tsc_mark {
    uint64_t ticks; /**< 0: no invariant counter (CPUID 80000007h) */
    int64_t at_ns;
};

/**
 * @brief Read both clocks.
 *
 * @return Moment; `ticks` 0: no invariant counter.
 */
struct tsc_mark tsc_now(void);
/**
 * @brief Return ticks per second since a moment, the better the longer that is ago (a reading may
 * be interrupted).
 *
 * @param begin Earlier moment.
 * @return Ticks per second; 0: no invariant counter, or less than a tenth of a second.
 */
double tsc_hz(const struct tsc_mark *begin);

#endif
