/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Clocks of this host: CLOCK_MONOTONIC, which is time inside a node, the CPU's time stamp
 * counter, and the kernel's state of CLOCK_REALTIME.
 *
 * Times that nodes exchange are run time, the clock of node 0; engine/control/endpoint.h converts
 * them.
 */
#ifndef ENGINE_CLOCK_H
#define ENGINE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL
#define CLOCK_NEVER INT64_MAX

/** @brief Methods of relating the clocks of a run's nodes (run_clock.h). */
enum clock_mode { CLOCK_AUTO, CLOCK_SHARED, CLOCK_PTP, CLOCK_ESTIMATED, CLOCK_MODES };

/** @brief Names of the clock modes in documents and records, indexed by mode; the array ends with
 * NULL. */
extern const char *const clock_words[CLOCK_MODES + 1];

/** @brief Clock mode that a run requests. */
struct clock_conf {
    enum clock_mode mode;
    int64_t error_ns; /**< ptp: max error of each clock as the user states it; 0: not stated */
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
 * @brief Sleep until an absolute time; return at once if this time is past.
 *
 * Signals do not end the sleep early.
 *
 * @param time_ns Absolute time of CLOCK_MONOTONIC, ns.
 */
void clock_sleep_until(int64_t time_ns);

/**
 * @brief Kernel's state of CLOCK_REALTIME, which a program (phc2sys, chronyd, ntpd) disciplines by
 * PTP or NTP: synchronization and maximum error.
 *
 * The kernel adds 500 us per second to the maximum error until it is updated, and calls the clock
 * unsynchronized at 16 s.
 *
 * @see RFC 1589; adjtimex(2)
 */
struct kernel_sync_status {
    bool synchronized;
    int64_t offset_ns;   /**< CLOCK_REALTIME - CLOCK_MONOTONIC */
    int64_t maxerror_ns; /**< the kernel's value plus the error of reading the clocks */
};

struct timex; /* sys/timex.h */
/**
 * @brief Convert the result of adjtimex(2) to a synchronization status, except for the member
 * offset_ns.
 *
 * @param[out] status Status; its offset_ns is not set.
 * @param state Return value of adjtimex(2).
 * @param kernel Struct that adjtimex(2) filled.
 */
void kernel_sync_classify(struct kernel_sync_status *status, int state, const struct timex *kernel);
/**
 * @brief Read the synchronization status of CLOCK_REALTIME and its offset to CLOCK_MONOTONIC.
 *
 * @param[out] status Status.
 */
void kernel_sync_read(struct kernel_sync_status *status);

#endif
