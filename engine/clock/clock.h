/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief This host's clocks: CLOCK_MONOTONIC, which is time inside a node, the CPU's time stamp
 * counter, and what the kernel says of CLOCK_REALTIME.
 *
 * Times that nodes agree on are run time, the clock of node 0; engine/control/endpoint.h converts.
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

/** @brief How the clocks of a run's nodes are brought together (run_clock.h). */
enum clock_mode { CLOCK_AUTO, CLOCK_SHARED, CLOCK_PTP, CLOCK_ESTIMATED, CLOCK_MODES };

/** @brief The modes' words in documents and records, by mode; ends with NULL. */
extern const char *const clock_words[CLOCK_MODES + 1];

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

/** @brief A moment by the CPU's time stamp counter and by CLOCK_MONOTONIC. */
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

/**
 * @brief What the kernel says of its CLOCK_REALTIME, which something outside (phc2sys, chronyd,
 * ntpd) steers by PTP or NTP: whether it is synchronized, and the greatest error that it may have.
 *
 * The kernel adds 500 us a second to that until it is told better, and calls the clock
 * unsynchronized once it is 16 s.
 *
 * @see RFC 1589; adjtimex(2)
 */
struct kernel_sync_status {
    bool synchronized;
    int64_t offset_ns;   /**< CLOCK_REALTIME - CLOCK_MONOTONIC */
    int64_t maxerror_ns; /**< as the kernel has it, and what reading the clocks adds */
    int64_t esterror_ns; /**< somebody's estimate; for the record */
};

struct timex; /* sys/timex.h */
/**
 * @brief Judge what adjtimex(2) returned and wrote.
 *
 * @param status Takes all but the offset.
 * @param state What adjtimex(2) returned.
 * @param kernel What adjtimex(2) wrote.
 */
void kernel_sync_classify(struct kernel_sync_status *status, int state, const struct timex *kernel);
/**
 * @brief Read the kernel's clocks and their state.
 *
 * @param status Takes the status.
 */
void kernel_sync_read(struct kernel_sync_status *status);

#endif
