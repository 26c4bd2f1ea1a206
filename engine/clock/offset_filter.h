/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The offset between our clock and another one, at any time, with a bound that covers it.
 *
 * No I/O, constant memory, nothing allocated.
 *
 * An exchange of datagrams has the four time stamps of RFC 5905, 8. The offset then was at most
 * t2 - t1 and at least t3 - t4, because no datagram arrives before it is sent. The middle of the
 * two is the offset, and the bound is half the round trip, whatever the two ways took each
 * (Cristian 1989). Datagrams that waited in a queue make a wide bound, so the filter keeps the
 * exchange with the least round trip of each slot of time (RFC 5905, 10). An exchange of another
 * time says as much as its bound, and what the two clocks may have drifted apart since.
 *
 * Assumed: two clocks drift by OFFSET_DRIFT_PPM at most. Ethernet allows each free oscillator
 * 100 ppm (IEEE 802.3, 40.6.1.2.6), and a steered clock that is settled stays within that.
 *
 * @see RFC 5905, sections 8 and 10; Cristian: Probabilistic Clock Synchronization, 1989; IEEE
 *        802.3, 40.6.1.2.6
 */
#ifndef ENGINE_OFFSET_FILTER_H
#define ENGINE_OFFSET_FILTER_H

#include <stdint.h>

#define OFFSET_DRIFT_PPM 200
#define OFFSET_SAMPLES 4096u
#define OFFSET_SLOT_NS INT64_C(100000000)

/** @brief The other's clock = ours + offset_ns, within +-bound_ns; bound -1: not known. */
struct offset_estimate {
    int64_t offset_ns;
    int64_t bound_ns;
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

/** @brief All zero: nothing is known. */
struct offset_filter {
    struct offset_sample samples[OFFSET_SAMPLES]; /**< a ring: the newest is number `count` - 1 */
    uint64_t count;
    int64_t slot_ns; /**< when the newest sample's slot began */
};

/**
 * @brief Return by how much two clocks may drift apart in this time.
 *
 * @param age_ns Time, ns.
 * @return ns.
 */
int64_t offset_drift_ns(int64_t age_ns);

/**
 * @brief Return the offset at the arrival.
 *
 * @param stamps Time stamps of one exchange.
 * @return Offset and bound; bound -1: the stamps contradict each other.
 */
struct offset_estimate offset_of_exchange(const struct offset_stamps *stamps);

/**
 * @brief Keep what was measured, if it is the best of its slot.
 *
 * A sample that contradicts those before it shows that a clock was stepped: they are forgotten.
 *
 * @param filter Filter.
 * @param at_ns Time of this node's clock, ns.
 * @param seen Offset and bound that were measured.
 */
void offset_add(struct offset_filter *filter, int64_t at_ns, struct offset_estimate seen);
/**
 * @brief Return the offset at any time of this node's clock, past or to come.
 *
 * @param filter Filter.
 * @param at_ns Time of this node's clock, ns.
 * @return Offset and bound; bound -1: not known.
 */
struct offset_estimate offset_at(const struct offset_filter *filter, int64_t at_ns);

#endif
