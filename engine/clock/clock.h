/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Time inside a node: nanoseconds of CLOCK_MONOTONIC.
 *
 * Times that nodes agree on are run time, the clock of node 0; engine/control/endpoint.h converts.
 */
#ifndef ENGINE_CLOCK_H
#define ENGINE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL
#define CLOCK_NEVER INT64_MAX

/** @brief How the clocks of a run's nodes are brought together (run_clock.h). */
enum clock_mode { CLOCK_AUTO, CLOCK_SHARED, CLOCK_PTP, CLOCK_ESTIMATED, CLOCK_MODES };

/**
 * @brief Return the mode's word in documents and records.
 *
 * @param mode Mode.
 * @return Word; static.
 */
const char *clock_mode_name(enum clock_mode mode);

/** @brief What the run asks for. */
struct clock_conf {
    enum clock_mode mode;
    int64_t error_ns; /**< ptp: as stated, of each clock; 0: nothing is */
};

/**
 * @brief Return the present time of CLOCK_MONOTONIC.
 *
 * @return Time, ns.
 */
static inline int64_t clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/**
 * @brief Sleep until the absolute time; returns at once when it is past.
 *
 * Signals do not end it early.
 *
 * @param time_ns Absolute time of CLOCK_MONOTONIC, ns.
 */
void clock_sleep_until(int64_t time_ns);

#endif
