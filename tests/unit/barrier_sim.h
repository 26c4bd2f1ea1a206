/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A network of simulated nodes that runs the real state machine (engine/control/membership.h) by
 * discrete events: seeded, so that each run can be repeated. Datagrams take a random time each (so
 * they overtake each other), get lost and are doubled; keys are compared as the receiver of a
 * sealed datagram would. Nodes join late, die, come back. Each node enters `epochs` barriers, one
 * after the other, with values of its own.
 *
 * Checked at each pass: every node has entered this barrier before, and the reduction is the true
 * one. Checked at the end: nothing is due any more.
 */
#ifndef TESTS_UNIT_BARRIER_SIM_H
#define TESTS_UNIT_BARRIER_SIM_H

#include "membership.h"

struct sim_conf {
    uint32_t nodes;
    uint32_t epochs;
    uint64_t seed;
    double loss;
    double duplicate;
    int64_t delay_ns;   /* least time on the way */
    int64_t jitter_ns;  /* uniformly added to it */
    int64_t late_ns;    /* nodes join within so long of the beginning, uniformly */
    int64_t pause_ns;   /* from when they could enter a barrier until they do, at least ... */
    int64_t entry_ns;   /* ... and uniformly up to so much more */
    int64_t timeout_ns; /* the nodes' */
    uint32_t cores;     /* of node 0's machine; 0: not to be counted */
    uint32_t machines;  /* over which the nodes are spread in turn; 0: one */
    uint32_t outcast;   /* a node of another run (other key) that stands in one's place, or NONE */
};

enum sim_kind {
    SIM_JOIN,    /* the node's first process begins, and not at a random time */
    SIM_RESTART, /* a new process takes its place, with a new nonce, and begins at barrier 0 */
    SIM_KILL,    /* its process ends; what is on the way to it is lost */
    SIM_ABORT,   /* it gives up, because of SIM_REASON */
    SIM_ENTER,   /* these are the simulator's own: it enters a barrier, */
    SIM_TIMER,   /* something is due, */
    SIM_PACKET,  /* a datagram comes */
};
#define SIM_REASON "no link on e0"

struct sim_node {
    struct sim *sim;
    struct membership membership;
    bool running;
    bool dead;              /* or restarted after its run had begun */
    bool entered;           /* the barrier `passed` */
    uint32_t passed;        /* barriers */
    uint32_t life;          /* which process this is; 0: none yet */
    uint64_t arrivals;      /* sent */
    uint64_t arrivals_most; /* its process ends when it has sent so many; 0: it does not */
    int64_t timer_ns;       /* the earliest timer event in the queue */
    bool joins;             /* its first SIM_JOIN is planned */
};

/* What went on in one barrier. */
struct sim_epoch {
    struct barrier_values truth;
    uint32_t entered; /* nodes */
};

struct sim {
    struct sim_conf conf;
    uint64_t random;
    int64_t now_ns;
    struct sim_node *nodes;
    struct sim_epoch *epochs;
    struct sim_event *heap;
    size_t heap_size, heap_room;
    uint64_t order;
    uint64_t sent[DATAGRAM_TYPES];
    char failure[256];
};

struct sim *sim_new(const struct sim_conf *conf);
void sim_free(struct sim *sim);
/* What happens to a node; without a SIM_JOIN of its own it joins at a random time. */
void sim_plan(struct sim *sim, enum sim_kind kind, uint32_t node, int64_t time_ns);
/* Runs until nothing is due. NULL, or what went wrong (a sentence, valid until sim_free). */
const char *sim_run(struct sim *sim);

#endif
