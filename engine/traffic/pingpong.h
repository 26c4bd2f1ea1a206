/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping-pong at the source of its messages (doc/reference/messages.md): when a flow begins the next
 * one, and what is kept of those that ended. How bytes travel is the transport's, in its hooks.
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
    uint32_t flow; /* place in the lane's `sends`, of the message that is or was in flight */
    bool in_flight;
    bool measured; /* the one in flight is one of those to be measured */
    int64_t begun_ns;
    uint64_t played; /* messages that have ended: they are back, or given up */
};

struct pingpong_flow {
    uint64_t begun;    /* messages, also the next one's number */
    uint64_t measured; /* of those the ones that began in the window */
    struct prng_sizes drawn;
    struct histogram times; /* whole round trips of those that came back */
};

struct pingpong {
    struct lane *lane; /* whose request, stop and times it goes by */
    struct pingpong_turn *turns;
    uint32_t turn_count;
    struct pingpong_flow *flows; /* as the lane's `sends` */
    struct sample *samples;      /* in the order in which they ended */
    size_t sample_count;
    size_t sample_room;
    uint64_t seed; /* partners are drawn by it */
};

/* For the lane's `sends`; the lane stays where it is. -ENOMEM; free it then, too. */
int pingpong_make(struct pingpong *game, struct lane *lane);
void pingpong_free(struct pingpong *game);

/* Bytes of the nth message of a flow, which both ends know: the phase's sizes in turn, or drawn. */
uint32_t pingpong_size(const struct phase *phase, const struct prng_sizes *drawn, uint64_t n);
/* What to hand to it: of the flow between two ranks. */
struct prng_sizes pingpong_drawn(const struct phase *phase, const struct lane_flow *flow);

/* Messages may begin from then on: the phase's start, or later where nodes compute first. */
int64_t pingpong_opens_ns(const struct phase *phase);

/* Whether a turn is to begin a message now, which is then the one in flight: flow and size by the
 * turn. False: one is in flight, or no more are to begin. */
bool pingpong_begin(struct pingpong *game, struct pingpong_turn *turn);
/* Bytes of the message in flight. */
uint32_t pingpong_bytes(const struct pingpong *game, const struct pingpong_turn *turn);
/* It is back, all of it, and verified; since when, by the clock. */
void pingpong_back(struct pingpong *game, struct pingpong_turn *turn, int64_t at_ns);
/* It is lost. What may still come of it is no answer to the next one: that is the caller's care. */
void pingpong_give_up(struct pingpong *game, struct pingpong_turn *turn);

enum pingpong_state { PINGPONG_AWAITED, PINGPONG_BACK, PINGPONG_LOST };

struct pingpong_hooks {
    /* Sends the message that has just begun. True: it may be back at once. */
    bool (*send)(struct lane *lane, const struct pingpong_turn *turn, int64_t now_ns);
    /* Goes on with the message in flight; where it is back, `at_ns` says since when. */
    enum pingpong_state (*await)(struct lane *lane, const struct pingpong_turn *turn,
                                 int64_t now_ns, int64_t *at_ns);
};

/* Ends the turn's message in flight if it is back or lost, and begins the next. True: one began. */
bool pingpong_advance(struct pingpong *game, const struct pingpong_hooks *hooks,
                      struct pingpong_turn *turn, int64_t now_ns);
/* The same for all turns. */
bool pingpong_run(struct pingpong *game, const struct pingpong_hooks *hooks, int64_t now_ns);

/* How long a message of so many bytes is waited for before it is given up, where the transport
 * loses messages: four round trips at line rate, and the document's patience for what waits in
 * queues on the way. */
int64_t pingpong_timeout_ns(const struct pingpong *game, uint32_t bytes);

/* When the message in flight is lost, where the transport loses messages. */
int64_t pingpong_due_ns(const struct pingpong *game, const struct pingpong_turn *turn);

/* Nothing of the flow is in flight, and nothing more will begin. */
bool pingpong_ended(const struct pingpong *game, uint32_t flow);

/* Main thread, afterwards: as the transport's functions of these names. The flow is known by its
 * ranks. */
bool pingpong_latency(const struct pingpong *game, const struct lane_flow *flow,
                      struct latency *sum);

#endif
