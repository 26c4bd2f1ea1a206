/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Pacer of frames: computes when the next frame is due.
 *
 * A schedule without long-term error: the due time is always computed from the origin and the cost
 * of all earlier frames, never by adding up intervals. The cost of a frame is 1 (a rate in
 * frames/s) or its bits at layer 1 (a rate in bit/s), so one pace serves one size as well as an
 * IMIX.
 *
 * A late sender (it slept, or its core was taken away) catches up with at most `catch_up` frames;
 * frames due beyond that are given up: they stay in the intended load and are missing from the
 * offered one. A burst at line rate fits into any switch's queue, a long one does not.
 *
 * Senders of equal rate keep their phases for as long as they send, and a full drop-tail queue then
 * takes the frames of some and always drops those of others (Floyd and Jacobson 1992, "On traffic
 * phase effects in packet-switched gateways"). A dither delays each departure by a random time that
 * is never added up, so the rate stays exact and the queue is shared.
 */
#ifndef ENGINE_PACER_H
#define ENGINE_PACER_H

#include "clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/param.h>

#define PACE_GATHER_NS 650000 /**< maximum time for which a sleeping sender lets frames gather */

struct pace {
    int64_t origin_ns;  /**< due time of the first frame */
    double ns_per_cost; /**< 0: unlimited */
    double cost_per_ns;
    uint64_t spent;    /**< cost of all frames sent or given up since the origin */
    uint64_t given_up; /**< frames that were due and will never be sent */
    uint64_t clumped;  /**< frames sent at once because the sender was late */
    double late_cost;  /**< due cost from which the sender counts as late; 0: not known yet */
    int64_t polled_ns; /**< time at which the sender last polled */
    int64_t next_ns;   /**< due time of the next frame */
    uint32_t catch_up; /**< frames */
    int64_t dither_ns; /**< maximum random delay of departures; 0: exact */
    uint64_t random;   /**< state of the dither's random numbers */
};

#define PACE_CATCH_UP 8 /**< frames with which a late sender catches up by default */
/** @brief Catch-up without a limit: no due frame is given up, and no sleeping sender lets frames
 * gather. */
#define PACE_CATCH_UP_ALL UINT32_MAX

/**
 * @brief Convert the option `catch_up` from frames of 1,518 bytes to frames of a phase's mean size.
 *
 * A queue in the switch holds bytes: more of smaller frames, fewer of larger ones. The result is at
 * least PACE_CATCH_UP if the option allows as many.
 */
uint16_t pace_catch_up(uint16_t catch_up, uint32_t mean_size);

/**
 * @brief Initialise the pace of a sender.
 *
 * `cost_per_s`: bits or frames per second, 0 for unlimited. `origin_ns`: due time of the first
 * frame.
 */
void pace_init(struct pace *pace, double cost_per_s, uint32_t catch_up, int64_t origin_ns);

/**
 * @brief Restart a pace, so that its next frame is due at `origin_ns`.
 *
 * Nothing may have been given up before.
 */
static inline void pace_restart(struct pace *pace, int64_t origin_ns)
{
    pace->origin_ns = pace->next_ns = origin_ns;
    pace->spent = 0;
}

/**
 * @brief Reduce the rate of a pace to the fraction `part` from `from_ns` on; the next frame is due
 * one interval of the new rate later.
 *
 * Frames given up before stay given up.
 */
void pace_slow(struct pace *pace, double part, int64_t from_ns, uint32_t cost);

/**
 * @brief Delay each burst from now on by a random time: up to `times` the time between frames of
 * `cost` or, if longer, the time for which a sleeping sender lets frames gather.
 */
void pace_dither(struct pace *pace, double times, uint32_t cost, uint64_t seed);

/**
 * @brief Return a random delay for the next burst, and advance the pace's random numbers.
 *
 * @param pace Pace.
 * @return Delay, ns.
 */
int64_t pace_draw(struct pace *pace);

/**
 * @brief Return the number of frames that are due and were neither sent nor given up.
 *
 * @param pace Pace.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param cost Cost of one frame.
 * @return Number of frames; 0 for an unlimited load, of which no frame is ever due.
 */
uint64_t pace_due(const struct pace *pace, int64_t now_ns, uint32_t cost);

/**
 * @brief Handle a late sender: count the frames that it sends at once, unless it is late because
 * the device was full, and give up the due frames beyond catch_up.
 *
 * Out of line, for late senders only.
 *
 * @param pace Pace.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param cost Cost of one frame.
 */
void pace_late(struct pace *pace, int64_t now_ns, uint32_t cost);

/**
 * @brief Return the cost of the frames that are due by now but were neither sent nor given up.
 *
 * @param pace Pace.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Cost.
 */
static inline double pace_behind(const struct pace *pace, int64_t now_ns)
{
    return (double)(now_ns - pace->origin_ns) * pace->cost_per_ns - (double)pace->spent;
}

/**
 * @brief Return how many frames may be sent now; pace_spend() accounts the frames that are sent.
 *
 * @param pace Pace.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param cost Cost of one frame.
 * @param most Maximum number of frames.
 * @return Number of frames, at most `most`.
 */
static inline uint32_t pace_allow(struct pace *pace, int64_t now_ns, uint32_t cost, uint32_t most)
{
    double behind;

    if (now_ns < pace->next_ns)
        return 0;
    if (pace->ns_per_cost == 0)
        return most;
    behind = pace_behind(pace, now_ns);
    if (behind >= pace->late_cost) {
        pace_late(pace, now_ns, cost);
        behind = pace_behind(pace, now_ns);
    }
    pace->polled_ns = now_ns;
    behind = behind / cost + 1;
    return behind < most ? (uint32_t)behind : most;
}

/**
 * @brief Add the cost of sent frames to a pace, and compute when the next frame is due.
 *
 * @param pace Pace.
 * @param cost Total cost of the sent frames.
 */
static inline void pace_spend(struct pace *pace, uint64_t cost)
{
    pace->spent += cost;
    if (pace->ns_per_cost == 0)
        return;
    pace->next_ns = pace->origin_ns + (int64_t)((double)pace->spent * pace->ns_per_cost);
    if (pace->dither_ns > 0)
        pace->next_ns += pace_draw(pace);
}

/**
 * @brief Return the time at which a sleeping sender should wake to send the next frames.
 *
 * With a dither this is the due time of the next frame. Otherwise frames gather: until three
 * quarters of catch_up frames are due, at most for PACE_GATHER_NS after the first of them is due.
 *
 * @param pace Pace.
 * @param cost Cost of one frame.
 * @return Time, ns.
 */
int64_t pace_wake(const struct pace *pace, uint32_t cost);

/**
 * @brief Return the cost of the frames that the load intends from the origin until a time.
 *
 * @param pace Pace.
 * @param time_ns Absolute time of CLOCK_MONOTONIC, ns.
 * @return Cost.
 */
double pace_intended(const struct pace *pace, int64_t time_ns);

#define LOOK_LEAST_NS (20 * NS_PER_US)
#define LOOK_MOST_NS (500 * NS_PER_US)

/**
 * @brief Compute the next poll time of a source without wake-ups: the interval halves after
 * something arrived, and doubles after nothing did.
 *
 * A sender that waits for the answer to one message loses little time, and sleeps when no answer
 * arrives.
 *
 * @param gap_ns Time between two polls, ns; kept between calls, may begin as 0.
 * @param moved True: something has arrived since the last poll.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Time, ns.
 */
static inline int64_t adaptive_poll(int64_t *gap_ns, bool moved, int64_t now_ns)
{
    *gap_ns = MIN(MAX(moved ? *gap_ns / 2 : *gap_ns * 2, LOOK_LEAST_NS), LOOK_MOST_NS);
    return now_ns + *gap_ns;
}

#endif
