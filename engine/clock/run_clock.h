/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Run time as a node knows it.
 *
 * No I/O. Run time is node 0's CLOCK_MONOTONIC, and for `ptp` its CLOCK_REALTIME. A node knows it
 * in one of three ways:
 *
 * - shared: its clock is node 0's (equal boot hashes). Offset 0, bound 0, nothing to measure.
 * - estimated: it measures its offset to its parent in the binomial tree, and the parent's
 *   datagrams carry the parent's own offset and bound to run time. The sums are samples of one
 *   filter (offset_filter.h).
 * - ptp: its CLOCK_REALTIME is run time, within what the kernel says that it may be wrong by
 *   (kernel_sync_status.h), or within what the user says. Datagrams are measured all the same, as
 *   a witness: where they prove that the clock is further off, the bound is as wide as they say.
 *
 * `shared` and `estimated` are decided node by node when nothing is asked for.
 */
#ifndef ENGINE_RUN_CLOCK_H
#define ENGINE_RUN_CLOCK_H

#include "clock.h"
#include "offset_filter.h"

#include <stdbool.h>

struct run_clock {
    enum clock_mode mode; /**< CLOCK_AUTO until it is known whose clocks are ours */
    bool is_root;         /**< our clock is run time's: we are node 0, or share its clock */
    struct offset_filter filter;
    struct offset_estimate disciplined; /**< ptp: run time - ours, as the kernel had it last */
    int64_t parent_said_ns; /**< when, of the parent's clock, it said what we know of it */
};

/**
 * @brief Begin before other nodes are known; only node 0 knows run time then.
 *
 * @param clock Clock.
 * @param is_root This is node 0.
 */
void run_clock_init(struct run_clock *clock, bool is_root);
/**
 * @brief Decide how run time is known: as the run asks, or, for CLOCK_AUTO, by a shared clock where
 * there is one.
 *
 * @param clock Clock.
 * @param asked Mode of the run.
 * @param is_shared The boot hash is node 0's.
 * @param is_node_0 This is node 0.
 */
void run_clock_decide(struct run_clock *clock, enum clock_mode asked, bool is_shared,
                      bool is_node_0);
/**
 * @brief Take what the kernel says of CLOCK_REALTIME, for ptp.
 *
 * @param clock Clock.
 * @param realtime CLOCK_REALTIME minus CLOCK_MONOTONIC, and its bound; bound -1: unknown.
 */
void run_clock_discipline(struct run_clock *clock, struct offset_estimate realtime);
/**
 * @brief Take a datagram from the parent, which knew run time so when it left.
 *
 * @param clock Clock.
 * @param stamps Time stamps of one exchange.
 * @param parent_to_root The parent's offset and bound to run time.
 */
void run_clock_heard(struct run_clock *clock, const struct offset_stamps *stamps,
                     struct offset_estimate parent_to_root);

/**
 * @brief Return run time minus this node's clock, at any time of this clock.
 *
 * @param clock Clock.
 * @param at_ns Time of this node's clock, ns.
 * @return Offset and bound; bound -1: not known.
 */
struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t at_ns);
/**
 * @brief Return whether there is anything to ask the parent.
 *
 * @param clock Clock.
 * @return True: there is.
 */
bool run_clock_asks(const struct run_clock *clock);

#endif
