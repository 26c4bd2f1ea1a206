/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief When latency probes leave, over every transport: at times that are even to a half of their
 * distance (additive random sampling, RFC 2330 11.1).
 *
 * Exact distances might march in step with something in the network.
 */
#ifndef ENGINE_PROBE_SCHEDULER_H
#define ENGINE_PROBE_SCHEDULER_H

#include <stdint.h>

struct probe_scheduler {
    double gap_ns;  /**< from one to the next, in the mean */
    uint64_t seed;  /**< their distances are random by it */
    uint64_t count; /**< of random distances so far */
    int64_t next_ns;
};

/**
 * @brief Begin; the first probe leaves within one distance of `begin_ns`, so that flows do not
 * probe all at once.
 *
 * @param scheduler Scheduler.
 * @param seed Random seed.
 */
void probe_scheduler_begin(struct probe_scheduler *scheduler, double gap_ns, int64_t begin_ns,
                           uint64_t seed);
/**
 * @brief Note that a probe leaves now, or is left out; those that should have left meanwhile never
 * will.
 *
 * @param scheduler Scheduler.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void probe_scheduler_step(struct probe_scheduler *scheduler, int64_t now_ns);

#endif
