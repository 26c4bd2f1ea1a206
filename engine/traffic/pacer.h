/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Pacing: when the next frame is due.
 *
 * A schedule without long-term error: the due time is always computed from the origin and the cost
 * of all that came before, never by adding up intervals. The cost of a frame is 1 (a rate in
 * frames/s) or its bits at layer 1 (a rate in bit/s), so one pace serves one size as well as an
 * IMIX.
 *
 * A sender that comes late (it slept, its core was taken away) catches up with at most `catch_up`
 * frames; what is due beyond that is given up: it stays in the intended load and is missing from
 * the offered one. A burst at line rate fits any switch's queue, a long one does not.
 *
 * Senders of the same rate keep their phases for as long as they send, and a full drop-tail queue
 * then takes the frames of some and drops those of others, always the same (Floyd and Jacobson
 * 1992, "On traffic phase effects in packet-switched gateways"). A dither moves each departure by
 * a random time that is never added up, so the rate stays exact and the queue is shared.
 */
#ifndef ENGINE_PACER_H
#define ENGINE_PACER_H

#include "clock.h"

#include <stdbool.h>
#include <stdint.h>

#define PACE_GATHER_NS 650000 /**< a sleeping sender lets frames gather at most so long */

struct pace {
    int64_t origin_ns;  /**< due time of the first frame */
    double ns_per_cost; /**< 0: unlimited */
    double cost_per_ns;
    uint64_t spent;    /**< cost of all frames sent or given up since the origin */
    uint64_t given_up; /**< frames that were due and will never be sent */
    uint64_t clumped;  /**< frames sent at once because the sender came late */
    double late_cost;  /**< from so much that is due the sender is late; 0: not known yet */
    int64_t polled_ns; /**< when it last came to send */
    int64_t next_ns;   /**< due time of the next frame */
    uint32_t catch_up; /**< frames */
    int64_t dither_ns; /**< departures are late by 0 to so much, at random; 0: exact */
    uint64_t random;   /**< for the dither */
};

/**
 * @brief What an option `catch_up` comes to in frames of this mean size.
 *
 * It is said in frames of 1,518 bytes, because a queue in the switch holds bytes: of smaller frames
 * more, of larger ones fewer, but PACE_CATCH_UP if the option allows as many.
 */
#define PACE_CATCH_UP 8
#define PACE_CATCH_UP_ALL UINT32_MAX /**< gives up nothing, and no sleeper lets frames gather */
uint16_t pace_catch_up(uint16_t catch_up, uint32_t mean_size);

/**
 * @brief `cost_per_s`: bits or frames a second, 0 for unlimited.
 *
 * `origin_ns`: due time of the first.
 */
void pace_init(struct pace *pace, double cost_per_s, uint32_t catch_up, int64_t origin_ns);

/**
 * @brief Begins again: the next frame is due at `origin_ns`.
 *
 * Nothing was given up before.
 */
static inline void pace_restart(struct pace *pace, int64_t origin_ns)
{
    pace->origin_ns = pace->next_ns = origin_ns;
    pace->spent = 0;
}

/**
 * @brief So much of the rate from now on: the next frame is due one interval of `cost` behind
 * `from_ns`.
 *
 * What was given up before stays so.
 */
void pace_slow(struct pace *pace, double part, int64_t from_ns, uint32_t cost);

/**
 * @brief Dithers departures from now on, by `times` the time from one frame of `cost` to the next
 * (or, if that is longer, the time in which a sleeping sender lets frames gather); drawn from
 * `seed`, anew for each burst.
 */
void pace_dither(struct pace *pace, double times, uint32_t cost, uint64_t seed);

/**
 * @brief Draw how late the next burst shall be.
 *
 * @param pace Pace.
 * @return ns.
 */
int64_t pace_draw(struct pace *pace);

/**
 * @brief Return the frames that are due and were neither sent nor given up.
 *
 * @param pace Pace.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param cost Cost of one frame.
 * @return Frames; 0 when unlimited: then nothing is ever due.
 */
uint64_t pace_due(const struct pace *pace, int64_t now_ns, uint32_t cost);

/**
 * @brief Count a clump where the sender itself comes late, and not the device that took no more;
 * give up what is due beyond catch_up frames.
 *
 * Out of line, for late senders only.
 *
 * @param pace Pace.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param cost Cost of one frame.
 */
void pace_late(struct pace *pace, int64_t now_ns, uint32_t cost);

/**
 * @brief Return the cost that is due and not spent.
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
 * @brief Return how many frames may be sent now; does not account them.
 *
 * @param pace Pace.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param cost Cost of one frame.
 * @param most Frames at most.
 * @return Frames, at most `most`.
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
 * @brief Account what was sent since.
 *
 * @param pace Pace.
 * @param cost Cost of all that was sent.
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
 * @brief Return pace_wake()'s time, of a limited pace without dither.
 *
 * @param pace Pace.
 * @param cost Cost of one frame.
 * @return Time, ns.
 */
int64_t pace_gathered(const struct pace *pace, uint32_t cost);

/**
 * @brief Return when a sender that may sleep should wake: when three quarters of catch_up frames
 * are due, or PACE_GATHER_NS after the first of them, never before the first; at the next one where
 * a dither has already chosen the time.
 *
 * @param pace Pace.
 * @param cost Cost of one frame.
 * @return Time, ns.
 */
static inline int64_t pace_wake(const struct pace *pace, uint32_t cost)
{
    return pace->ns_per_cost == 0 || pace->dither_ns > 0 ? pace->next_ns
                                                         : pace_gathered(pace, cost);
}

/**
 * @brief Return the cost that the schedule asked for from the origin until a time: the intended
 * load.
 *
 * @param pace Pace.
 * @param time_ns Absolute time of CLOCK_MONOTONIC, ns.
 * @return Cost.
 */
double pace_intended(const struct pace *pace, int64_t time_ns);

#define LOOK_LEAST_NS (20 * NS_PER_US)
#define LOOK_MOST_NS (500 * NS_PER_US)

/**
 * @brief Work out when to look again for what nothing tells: half as long after something came,
 * twice as long after nothing did.
 *
 * A sender that waits for one message's answer loses little, and sleeps where none comes.
 *
 * @param gap_ns Time between two looks, ns; kept between calls, may begin as 0.
 * @param moved Something has moved since the last look.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Time, ns.
 */
static inline int64_t adaptive_poll(int64_t *gap_ns, bool moved, int64_t now_ns)
{
    *gap_ns = moved ? *gap_ns / 2 : *gap_ns * 2;
    if (*gap_ns < LOOK_LEAST_NS)
        *gap_ns = LOOK_LEAST_NS;
    if (*gap_ns > LOOK_MOST_NS)
        *gap_ns = LOOK_MOST_NS;
    return now_ns + *gap_ns;
}

#endif
