/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Ping-pong at the source of its messages (doc/reference/messages.md): when a flow begins
 * the next one, and what is kept of those that ended.
 *
 * How bytes travel is the transport's, in its hooks.
 *
 * A turn is what has one message in flight: each flow that the lane sends, or, with partners drawn
 * at random, the whole lane. The main thread makes a game and reads it afterwards, one worker plays
 * it; nothing here allocates or makes a system call in between but for the clock.
 */
#ifndef ENGINE_PINGPONG_H
#define ENGINE_PINGPONG_H

#include "prng.h"
#include "transport.h"

struct pingpong_turn {
    uint32_t flow; /**< place in the lane's `sends`, of the message that is or was in flight */
    bool in_flight;
    bool measured; /**< the one in flight is one of those to be measured */
    int64_t begun_ns;
    uint64_t played; /**< messages that have ended: they are back, or given up */
};

struct pingpong_flow {
    uint64_t begun;    /**< messages, also the next one's number */
    uint64_t measured; /**< of those the ones that began in the window */
    struct prng_sizes drawn;
    struct histogram times; /**< whole round trips of those that came back */
};

struct pingpong {
    struct lane *lane; /**< whose request, stop and times it goes by */
    struct pingpong_turn *turns;
    uint32_t turn_count;
    struct pingpong_flow *flows; /**< as the lane's `sends` */
    struct sample *samples;      /**< in the order in which they ended */
    size_t sample_count;
    size_t sample_room;
    uint64_t seed; /**< partners are drawn by it */
};

/** @brief How a transport moves the messages. */
struct pingpong_hooks {
    /** @brief Sends the message that has just begun. */
    void (*send)(struct lane *lane, const struct pingpong_turn *turn, int64_t now_ns);
    /** @brief Goes on with the message in flight. True: it is back, since `at_ns`, or lost, and
     * `at_ns` is 0. */
    bool (*await)(struct lane *lane, const struct pingpong_turn *turn, int64_t now_ns,
                  int64_t *at_ns);
};

/**
 * @brief Prepare ping-pong of the lane's `sends`; the lane stays where it is.
 *
 * @param game Ping-pong.
 * @param lane Lane.
 * @return 0; -ENOMEM: free it then, too.
 */
int pingpong_make(struct pingpong *game, struct lane *lane);
/**
 * @brief Free what pingpong_make() made.
 *
 * @param game Ping-pong.
 */
void pingpong_free(struct pingpong *game);

/**
 * @brief Return the bytes of the nth message of a flow, which both ends know: the phase's sizes in
 * turn, or random.
 *
 * @param phase Phase.
 * @param drawn The flow's random sizes.
 * @param n Number of the message, from 0.
 * @return Bytes.
 */
uint32_t pingpong_size(const struct phase *phase, const struct prng_sizes *drawn, uint64_t n);
/**
 * @brief Return the random sizes of the flow between two ranks.
 *
 * @param phase Phase.
 * @param flow Flow.
 * @return Sizes.
 */
struct prng_sizes pingpong_drawn(const struct phase *phase, const struct lane_flow *flow);

/**
 * @brief Return when messages may begin: the phase's start, or later where nodes compute first.
 *
 * @param phase Phase.
 * @return Time, ns.
 */
int64_t pingpong_opens_ns(const struct phase *phase);

/**
 * @brief Return the bytes of the message in flight.
 *
 * @param game Ping-pong.
 * @param turn Turn.
 * @return Bytes.
 */
uint32_t pingpong_bytes(const struct pingpong *game, const struct pingpong_turn *turn);
/**
 * @brief End the message in flight: it is back, all of it, and verified; or given up.
 *
 * What may still come of one that was given up is no answer to the next one: that is the caller's
 * care.
 *
 * @param game Ping-pong.
 * @param turn Turn.
 * @param at_ns Time since when it is back, ns; 0: it is given up.
 */
void pingpong_back(struct pingpong *game, struct pingpong_turn *turn, int64_t at_ns);
/**
 * @brief End each turn's message in flight if it is back or lost, and begin the next.
 *
 * @param game Ping-pong.
 * @param hooks Functions of the transport.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: a message began.
 */
bool pingpong_run(struct pingpong *game, const struct pingpong_hooks *hooks, int64_t now_ns);

/**
 * @brief Return when the message in flight is lost, where the transport loses messages: four round
 * trips at line rate after it began, and the document's timeout for queues on the way.
 *
 * @param game Ping-pong.
 * @param turn Turn.
 * @return Time, ns.
 */
int64_t pingpong_due_ns(const struct pingpong *game, const struct pingpong_turn *turn);

/**
 * @brief Return whether nothing of the flow is in flight, and nothing more will begin.
 *
 * @param game Ping-pong.
 * @param flow Flow.
 * @return True: it has ended.
 */
bool pingpong_ended(const struct pingpong *game, uint32_t flow);

/**
 * @brief Sum up a flow's round trips; afterwards, in the main thread.
 *
 * @param game Ping-pong.
 * @param flow Flow.
 * @param sum Takes the round trips.
 * @return False: it has none.
 */
bool pingpong_latency(const struct pingpong *game, const struct lane_flow *flow,
                      struct latency *sum);

#endif
