/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The run's common clock on one node, with a bound of its error.
 *
 * No I/O, constant memory. Run time is node 0's CLOCK_MONOTONIC, and for `ptp` its CLOCK_REALTIME.
 * A node has it in one of three modes:
 *
 * - shared: its clock is node 0's (equal boot hashes). Offset 0, bound 0, nothing to measure.
 * - estimated: it measures its offset to its parent in the binomial tree, and the parent's
 *   datagrams carry the parent's own offset and bound to run time. The sums are samples of a
 *   filter.
 * - ptp: its CLOCK_REALTIME is run time, within the kernel's maximum error (clock.h), or within
 *   the error that the user states. Datagrams are measured all the same, as a witness: where they
 *   prove a larger error, the bound grows accordingly.
 *
 * `shared` and `estimated` are decided node by node when no mode is requested.
 *
 * The filter. An exchange of datagrams has the four time stamps of RFC 5905, 8. The offset then was
 * at most t2 - t1 and at least t3 - t4, because no datagram arrives before it is sent. The middle
 * of the two is the offset, and the bound is half the round trip, whatever each direction took
 * (Cristian 1989). Datagrams that waited in a queue make a wide bound, so the filter keeps the
 * exchange with the smallest round trip of each slot of time (RFC 5905, 10). An older exchange
 * counts with its bound, plus the possible drift of the two clocks since.
 *
 * Assumed: two clocks drift by RUN_CLOCK_DRIFT_PPM at most. Ethernet allows each free oscillator
 * 100 ppm (IEEE 802.3, 40.6.1.2.6), and a settled disciplined clock stays within that.
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

/**
 * @brief Offset of another clock: the other clock is this node's clock + offset_ns, within
 * +-bound_ns; a bound of -1 means unknown.
 */
struct offset_estimate {
    int64_t offset_ns;
    int64_t bound_ns; /**< 0: both are one clock */
};

/** @brief Time stamps of a datagram that this node sends to another node, and of the answer. */
struct offset_stamps {
    int64_t origin_ns;   /**< this node's clock: the datagram left; negative: none was sent */
    int64_t receive_ns;  /**< other node's clock: the datagram arrived */
    int64_t transmit_ns; /**< other node's clock: the answer left */
    int64_t arrive_ns;   /**< this node's clock: the answer arrived */
};

struct offset_sample {
    int64_t at_ns; /**< this node's clock */
    struct offset_estimate seen;
};

struct run_clock {
    enum clock_mode mode; /**< CLOCK_AUTO until the nodes with a shared clock are known */
    bool is_root; /**< this node's clock is run time, as node 0's: no exchanges are needed */
    /** @brief Mode ptp: run time minus this node's clock, as last read from the kernel; set by the
     * caller. */
    struct offset_estimate disciplined;
    int64_t parent_said_ns; /**< parent's clock when it sent its newest offset */
    struct offset_sample samples[RUN_CLOCK_SAMPLES]; /**< a ring: the newest is `count` - 1 */
    uint64_t count;
    int64_t slot_ns; /**< begin of the newest sample's slot */
};

/**
 * @brief Initialise a run clock; until run_clock_decide(), only node 0 has run time.
 *
 * @param clock Clock.
 * @param is_node_0 True: this node is node 0.
 */
void run_clock_init(struct run_clock *clock, bool is_node_0);
/**
 * @brief Set the mode of a run clock: the requested mode, or for CLOCK_AUTO `shared` if this node
 * shares node 0's clock, else `estimated`.
 *
 * @param clock Clock.
 * @param asked Clock mode that the run requests.
 * @param is_shared True: this node's boot hash equals node 0's.
 * @param is_node_0 True: this node is node 0.
 */
void run_clock_decide(struct run_clock *clock, enum clock_mode asked, bool is_shared,
                      bool is_node_0);
/**
 * @brief Add a clock sample: the time stamps of an exchange with the parent node, and the parent's
 * offset to run time.
 *
 * A sample that contradicts all earlier ones shows that a clock was stepped: the earlier ones are
 * removed.
 *
 * @param clock Clock.
 * @param stamps Time stamps of one exchange.
 * @param parent_to_root The parent's offset and bound to run time.
 */
void run_clock_heard(struct run_clock *clock, const struct offset_stamps *stamps,
                     struct offset_estimate parent_to_root);
/**
 * @brief Return the offset from this node's clock to run time (run time minus this node's clock) at
 * a past or future time of this clock.
 *
 * @param clock Clock.
 * @param at_ns Time of this node's clock, ns.
 * @return Offset and bound; a bound of -1 means unknown.
 */
struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t at_ns);

#endif
