/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A worker: one thread that owns the lanes of one or more ports.
 *
 * It polls them from the start of a phase until the network has drained, copies their counters at
 * the two ends of the window, and tells the main thread through an event descriptor. Between phases
 * it lets its ports answer the network.
 *
 * On a core of its own a worker polls without rest; where cores are fewer than busy loops (the
 * lab) it sleeps until the next frame is due. It visits its ports in a new random order each
 * round: with a fixed order drop-tail queues in the switch lock some flows out.
 */
#ifndef ENGINE_WORKER_H
#define ENGINE_WORKER_H

#include "clock.h"
#include "transport.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define INTERVAL_ROOM 16u /**< marks that can wait to be taken */

/**
 * @brief When marks are made: at open_ns and every step_ns behind it, the last one at close_ns at
 * the latest (CLOCK_NEVER: as long as the phase runs).
 *
 * Local time.
 */
struct interval_grid {
    int64_t open_ns;
    int64_t step_ns;
    int64_t close_ns;
};

struct interval_mark {
    int64_t at_ns;   /**< when it was really made */
    uint32_t number; /**< in the grid: 0 is at open_ns */
    uint64_t *bytes; /**< payload by flow, since the phase began */
};

/**
 * @brief Interval results of a lane, opaque: what had come of each of its received flows at every
 * so many milliseconds of the window, so that a link that sags for a moment is seen.
 *
 * The worker marks, the main thread takes the marks and writes records of them; neither waits for
 * the other. Counts in a mark are since the start of the phase: where there is no room for a mark,
 * or the worker comes too late for it, the next one covers a longer span and nothing is lost.
 */
struct interval_ring;

/**
 * @brief Make room for the marks of so many flows.
 *
 * @param flows Flows of the lane.
 * @return Ring, for interval_ring_free(); NULL: out of memory.
 */
struct interval_ring *interval_ring_make(uint32_t flows);
/**
 * @brief Free a ring.
 *
 * @param ring Ring of marks.
 */
void interval_ring_free(struct interval_ring *ring);
/**
 * @brief Make the mark that is due, if one is, of flows that are accounted; for the worker.
 *
 * @param ring Ring of marks.
 * @param grid When marks are made.
 * @param flows Flows that the lane receives.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param most Flows that are marked at once, at most.
 * @return Time of the next mark; `now_ns`: this one has more flows; CLOCK_NEVER: none will be.
 */
int64_t interval_ring_mark(struct interval_ring *ring, const struct interval_grid *grid,
                           const struct lane_flow *flows, int64_t now_ns, uint32_t most);

/**
 * @brief Return the first mark that waits, good until it is dropped; for the main thread.
 *
 * @param ring Ring of marks.
 * @return Mark; NULL: none waits.
 */
const struct interval_mark *interval_ring_first(const struct interval_ring *ring);
/**
 * @brief Drop the first mark that waits.
 *
 * @param ring Ring of marks.
 */
void interval_ring_drop(struct interval_ring *ring);

/** @brief One queue of a port in a phase: its lane, and how far its worker is with it. */
struct worker_lane {
    const struct transport *transport;
    struct lane *lane;
    struct lane_flow *flows; /**< the lane's, where several queues share them; NULL: the port's */
    struct port_count count;
    struct interval_ring *interval_ring; /**< NULL: none */
    /** @brief Frames for others at its port, of all its queues: their workers add theirs. */
    atomic_ullong *foreign;
    uint64_t foreign_told; /**< so many of them are this lane's */
    /** @brief What it has moved, published while the phase runs (struct lane_moved), and when. */
    atomic_ullong offered_bytes;
    atomic_ullong delivered_bytes;
    atomic_ullong line_bytes;
    atomic_llong told_ns;
    int64_t polled_ns; /**< last */
    bool accounting;   /**< its flows are being accounted, some each time ... */
    bool marking;      /**< ... and a mark of the interval ring waits for that, or is being made */
    int64_t opened_ns; /**< when its counters were copied; 0: not yet */
    int64_t closed_ns;
};

enum task_end {
    TASK_DRAINED, /**< all that was sent has come, or silence says that it never will */
    TASK_LIMIT,   /**< the drain's limit came first */
    TASK_STOPPED, /**< worker_stop */
    TASK_FLOODED, /**< a port received more frames for others than the limit */
};

/**
 * @brief One phase's work.
 *
 * Owned by the caller, who leaves it alone until worker_done.
 */
struct worker_task {
    struct worker_lane **lanes;
    size_t count;
    const struct phase *phase;
    int64_t nominal_end_ns; /**< when sending ends if nothing hinders it */
    int64_t drain_timeout_ns;
    int64_t drain_max_ns;
    uint64_t flood_limit;              /**< frames for others at one port; 0: none */
    struct interval_grid grid;         /**< of the lanes that have a ring */
    int64_t interval_due_ns;           /**< the worker's: when the next interval result is due */
    int64_t moved_ns;                  /**< ... and when progress was last seen */
    int64_t awake_ns;                  /**< when the worker was at its lanes */
    enum task_end end;                 /**< the worker's answer ... */
    const struct worker_lane *flooded; /**< ... and the lane that was flooded */
};

struct worker; /* opaque */

/**
 * @brief Starts a worker that writes 1 to `event_fd` (an eventfd) when a task has ended.
 *
 * `sleeps`: give the core away between bursts. `core`: to run on; -1: any.
 */
struct worker_conf {
    bool sleeps;
    int core;
    int event_fd;
    uint64_t seed;
};

/**
 * @brief Start a worker.
 *
 * @param worker Takes the worker, for worker_end().
 * @param conf Settings; copied unless said otherwise.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, or a negative errno with a sentence.
 */
int worker_start(struct worker **worker, const struct worker_conf *conf, struct err *err);
/**
 * @brief Stop the thread and free the worker.
 *
 * @param worker Worker.
 */
void worker_end(struct worker *worker);

/** @brief A port that the worker lets answer the network between phases. */
struct worker_port {
    const struct transport *transport;
    struct transport_port *port;
};
/**
 * @brief Set the ports that the worker lets answer the network between phases, in place of the
 * ports before.
 *
 * When it returns the worker no longer touches the old ones. Not while a task runs.
 *
 * @param worker Worker.
 * @param ports Ports; copied.
 * @param count How many.
 * @return 0; -ENOMEM; no ports (count 0) never fails.
 */
int worker_set_ports(struct worker *worker, const struct worker_port *ports, size_t count);

/**
 * @brief Hand over a task; returns at once.
 *
 * @param worker Worker.
 * @param task Task; the caller's, who leaves it alone until it has ended.
 */
void worker_run(struct worker *worker, struct worker_task *task);
/**
 * @brief Return whether the task has ended and is the caller's again.
 *
 * @param worker Worker.
 * @return True: it has.
 */
bool worker_done(struct worker *worker);
/**
 * @brief End the present task's traffic now (within a few milliseconds), without a drain.
 *
 * @param worker Worker.
 */
void worker_stop(struct worker *worker);

#endif
