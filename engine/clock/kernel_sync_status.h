/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What the kernel says of its CLOCK_REALTIME, which something outside (phc2sys, chronyd,
 * ntpd) steers by PTP or NTP (adjtimex(2), RFC 1589): whether it is synchronized, and the greatest
 * error that it may have.
 *
 * The kernel adds 500 us a second to that until it is told better, and calls the clock
 * unsynchronized once it is 16 s.
 *
 * @see RFC 1589
 */
#ifndef ENGINE_KERNEL_SYNC_STATUS_H
#define ENGINE_KERNEL_SYNC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/timex.h>

struct kernel_sync_status {
    bool synchronized;
    int64_t offset_ns;   /**< CLOCK_REALTIME - CLOCK_MONOTONIC */
    int64_t maxerror_ns; /**< as the kernel has it, and what reading the clocks adds */
    int64_t esterror_ns; /**< somebody's estimate; for the record */
};

/**
 * @brief Judge what adjtimex(2) returned and wrote.
 *
 * @param discipline Takes the status.
 * @param state What adjtimex(2) returned.
 * @param kernel What adjtimex(2) wrote.
 */
void kernel_sync_classify(struct kernel_sync_status *discipline, int state,
                          const struct timex *kernel);
/**
 * @brief Read the kernel's clocks and their state.
 *
 * @param discipline Takes the status.
 */
void kernel_sync_read(struct kernel_sync_status *discipline);

#endif
