/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Run time as a node knows it, at any time, with a bound that covers it.
 *
 * No I/O, constant memory. Run time is node 0's CLOCK_MONOTONIC, and for `ptp` its CLOCK_REALTIME.
 * A node knows it in one of three ways:
 *
 * - shared: its clock is node 0's (equal boot hashes). Offset 0, bound 0, nothing to measure.
 * - estimated: it measures its offset to its parent in the binomial tree, and the parent's
 *   datagrams carry the parent's own offset and bound to run time. The sums are samples of a
 *   filter.
 * - ptp: its CLOCK_REALTIME is run time, within what the kernel says that it may be wrong by
 *   (clock.h), or within what the user says. Datagrams are measured all the same, as a witness:
 *   where they prove that the clock is further off, the bound is as wide as they say.
 *
 * `shared` and `estimated` are decided node by node when nothing is asked for.
 *
 * The filter. An exchange of datagrams has the four time stamps of RFC 5905, 8. The offset then was
 * at most t2 - t1 and at least t3 - t4, because no datagram arrives before it is sent. The middle
 * of the two is the offset, and the bound is half the round trip, whatever the two ways took each
 * (Cristian 1989). Datagrams that waited in a queue make a wide bound, so the filter keeps the
 * exchange with the least round trip of each slot of time (RFC 5905, 10). An exchange of another
 * time says as much as its bound, and what the two clocks may have drifted apart since.
 *
 * Assumed: two clocks drift by RUN_CLOCK_DRIFT_PPM at most. Ethernet allows each free oscillator
 * 100 ppm (IEEE 802.3, 40.6.1.2.6), and a steered clock that is settled stays within that.
 *
 * @see RFC 5905, sections 8 and 10; Cristian: Probabilistic Clock Synchronization, 1989; IEEE
 *        802.3, 40.6.1.2.6
 */
#ifndef ENGINE_RUN_CLOCK_H
#define ENGINE_RUN_CLOCK_H

#include "clock.h"

#include <stdbool.h>

#define RUN_CLOCK_DRIFT_PPM 200
#define RUN_CLOCK_SAMPLES 4096u
#define RUN_CLOCK_SLOT_NS INT64_C(100000000)

/** @brief Another clock = ours + offset_ns, within +-bound_ns; bound -1: not known. */
struct offset_estimate {
    int64_t offset_ns;
    int64_t bound_ns; /**< 0: our clock is the other */
};

/** @brief The time stamps of an exchange with another node, which answers a datagram of ours. */
struct offset_stamps {
    int64_t origin_ns;   /**< our clock: our datagram left; negative: there was none */
    int64_t receive_ns;  /**< its clock: our datagram arrived */
    int64_t transmit_ns; /**< its clock: the answer left */
    int64_t arrive_ns;   /**< our clock: the answer arrived */
};

struct offset_sample {
    int64_t at_ns; /**< our clock */
    struct offset_estimate seen;
};

struct run_clock {
    enum clock_mode mode; /**< CLOCK_AUTO until it is known whose clocks are ours */
    bool is_root;         /**< our clock is run time's, as node 0's: there is nothing to ask */
    struct offset_estimate disciplined; /**< ptp: run time - ours, as the kernel had it last; the
                                           caller's to set */
    int64_t parent_said_ns; /**< when, of the parent's clock, it said what we know of it */
    struct offset_sample samples[RUN_CLOCK_SAMPLES]; /**< a ring: the newest is `count` - 1 */
    uint64_t count;
    int64_t slot_ns; /**< when the newest sample's slot began */
};

/**
 * @brief Begin before other nodes are known; only node 0 knows run time then.
 *
 * @param clock Clock.
 * @param is_node_0 This is node 0.
 */
void run_clock_init(struct run_clock *clock, bool is_node_0);
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
 * @brief Take a datagram from the parent, which knew run time so when it left.
 *
 * What contradicts all that was measured before shows that a clock was stepped: that is forgotten.
 *
 * @param clock Clock.
 * @param stamps Time stamps of one exchange.
 * @param parent_to_root The parent's offset and bound to run time.
 */
void run_clock_heard(struct run_clock *clock, const struct offset_stamps *stamps,
                     struct offset_estimate parent_to_root);
/**
 * @brief Return run time minus this node's clock, at any time of this clock, past or to come.
 *
 * @param clock Clock.
 * @param at_ns Time of this node's clock, ns.
 * @return Offset and bound; bound -1: not known.
 */
struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t at_ns);

#endif
