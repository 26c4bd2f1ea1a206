/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker: one thread that owns the lanes of one or more ports. It polls them from the start of
 * a phase until the network has drained, copies their counters at the two ends of the window, and
 * tells the main thread through an event descriptor. Between phases it lets its ports answer the
 * network.
 *
 * On a core of its own a worker polls without rest; where cores are fewer than busy loops (the
 * lab) it sleeps until the next frame is due. It visits its ports in a new random order each
 * round: with a fixed order drop-tail queues in the switch lock some flows out.
 */
#ifndef ENGINE_WORKER_H
#define ENGINE_WORKER_H

#include "interval_ring.h"
#include "transport.h"

#include <stdatomic.h>
#include <stddef.h>

/* What a port has moved in a phase, told by the workers of all its queues while it runs: layer-1
 * bytes for frames, else payload. */
struct port_progress {
    atomic_ullong offered_bytes;
    atomic_ullong delivered_bytes;
};

/* A port's lane with its place in the common window. */
struct worker_lane {
    const struct transport *transport;
    struct lane *lane;
    struct interim *interim; /* NULL: none */
    /* Frames for others at its port, of all its queues: their workers add theirs. */
    atomic_ullong *foreign;
    uint64_t foreign_told;          /* so many of them are this lane's */
    struct port_progress *progress; /* its port's; NULL: nobody asks */
    uint64_t offered_told;          /* so much of it is this lane's */
    uint64_t delivered_told;
    int64_t polled_ns; /* last */
    int64_t opened_ns; /* when its counters were copied; 0: not yet */
    int64_t closed_ns;
};

enum task_end {
    TASK_DRAINED, /* all that was sent has come, or silence says that it never will */
    TASK_LIMIT,   /* the drain's limit came first */
    TASK_STOPPED, /* worker_stop */
    TASK_FLOODED, /* a port received more frames for others than the limit */
};

/* One phase's work. Owned by the caller, who leaves it alone until worker_done. */
struct worker_task {
    struct worker_lane *lanes;
    size_t count;
    const struct phase *phase;
    int64_t nominal_end_ns; /* when sending ends if nothing hinders it */
    int64_t drain_silence_ns;
    int64_t drain_max_ns;
    uint64_t flood_limit; /* frames for others at one port; 0: none */
    int64_t interim_ns;   /* the worker's: when the next interim result is due */
    int64_t awake_ns;     /* when the worker was at its lanes */
    enum task_end end;    /* the worker's answer ... */
    size_t flooded;       /* ... and the lane that was flooded */
};

struct worker; /* opaque */

/* Starts a worker that writes 1 to `event_fd` (an eventfd) when a task has ended. `sleeps`: give
 * the core away between bursts. `core`: to run on; -1: any. */
struct worker_conf {
    bool sleeps;
    int core;
    int event_fd;
    uint64_t seed;
};

int worker_start(struct worker **worker, const struct worker_conf *conf, struct err *err);
void worker_end(struct worker *worker);

/* Ports that the worker lets answer the network between phases; replaces the ports before. When
 * it returns the worker no longer touches the old ones. Not while a task runs. -ENOMEM; none
 * (count 0) never fails. */
struct worker_port {
    const struct transport *transport;
    struct transport_port *port;
};
int worker_adopt(struct worker *worker, const struct worker_port *ports, size_t count);

/* Hands over a task; returns at once. */
void worker_run(struct worker *worker, struct worker_task *task);
/* The task has ended and is the caller's again. */
bool worker_done(struct worker *worker);
/* Ends the present task's traffic now (within a few milliseconds), without a drain. */
void worker_stop(struct worker *worker);

#endif
