/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A network of simulated nodes that runs the real state machines (engine/control/membership.h) by
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

struct sim;

struct sim_count {
    uint64_t sent[DATAGRAM_TYPES];
    uint64_t dropped; /* by receivers */
    uint64_t events;
    int64_t ended_ns;
};

struct sim *sim_new(const struct sim_conf *conf);
void sim_free(struct sim *sim);

/* The node joins at this time and not at a random one. */
void sim_join_at(struct sim *sim, uint32_t node, int64_t time_ns);
/* Its process ends; what is on the way to it is lost. */
void sim_kill_at(struct sim *sim, uint32_t node, int64_t time_ns);
/* The same at the moment when it has sent so many arrivals: within a barrier. */
void sim_kill_after_arrivals(struct sim *sim, uint32_t node, uint64_t arrivals);
/* A new process takes the place of the old one, with a new nonce, and begins at barrier 0. */
void sim_restart_at(struct sim *sim, uint32_t node, int64_t time_ns);
/* It gives up with this text (which must outlive the run). */
void sim_abort_at(struct sim *sim, uint32_t node, int64_t time_ns, const char *text);

/* Runs until nothing is due. NULL, or what went wrong (a sentence, valid until sim_free). */
const char *sim_run(struct sim *sim);

/* How many barriers the node has passed. */
uint32_t sim_passed(const struct sim *sim, uint32_t node);
/* Dead, or restarted after its run had begun. */
bool sim_dead(const struct sim *sim, uint32_t node);
const struct control_fault *sim_fault(const struct sim *sim, uint32_t node);
const struct membership *sim_group(const struct sim *sim, uint32_t node);
const struct sim_count *sim_counts(const struct sim *sim);
/* From the moment when the last node entered this barrier until the last one had passed it. */
int64_t sim_barrier_ns(const struct sim *sim, uint32_t epoch);

/* The generator of all that is random here: splitmix64 (Steele, Lea, Flood 2014). */
uint64_t sim_random(uint64_t *state);

#endif
