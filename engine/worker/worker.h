/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Worker: one thread that owns the lanes of one or more ports.
 *
 * A worker polls its lanes from the start of a phase until the network has drained, copies their
 * counters at the two ends of the window, and notifies the main thread through an event descriptor.
 * Between phases it serves its ports, so that they answer ARP and ND.
 *
 * On a core of its own a worker polls without pause; where cores are fewer than busy loops (the
 * lab) it sleeps until the next frame is due. It visits its ports in a new random order each round:
 * with a fixed order, drop-tail queues in the switch lock some flows out.
 */
#ifndef ENGINE_WORKER_H
#define ENGINE_WORKER_H

#include "clock.h"
#include "transport.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define INTERVAL_ROOM 16u /**< capacity for marks that wait */

/**
 * @brief Times at which interval marks are made: open_ns, then every step_ns until close_ns
 * (CLOCK_NEVER: until the phase ends).
 *
 * Local time.
 */
struct interval_grid {
    int64_t open_ns;
    int64_t step_ns;
    int64_t close_ns;
};

struct interval_mark {
    int64_t at_ns;   /**< actual time of the mark */
    uint32_t number; /**< number in the grid: 0 is at open_ns */
    uint64_t *bytes; /**< payload by flow, since the phase began */
};

/**
 * @brief Ring of a lane's interval marks (opaque). A mark holds the payload that each flow has
 * received by one of the regular times in the window; marks show short drops of a link's rate.
 *
 * The worker makes marks, the main thread takes them and writes records; neither waits for the
 * other. Counts in a mark are since the start of the phase. So if the ring has no room for a mark,
 * or the worker is late, the next mark covers a longer time and no count is lost.
 */
struct interval_ring;

/**
 * @brief Make a ring of interval marks for a number of flows.
 *
 * @param flows Flows of the lane.
 * @return Ring, for interval_ring_free(); NULL: out of memory.
 */
struct interval_ring *interval_ring_make(uint32_t flows);
/**
 * @brief Free a ring of interval marks.
 *
 * @param ring Ring of marks.
 */
void interval_ring_free(struct interval_ring *ring);
/**
 * @brief Store the received bytes of a lane's flows in an interval mark, if the time of the next
 * mark has come; called by the worker.
 *
 * @param ring Ring of marks.
 * @param grid Times of the marks.
 * @param flows Flows that the lane receives.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @param most Maximum number of flows stored by one call.
 * @return Time of the next mark; `now_ns`: flows of this mark are left, call again; CLOCK_NEVER: no
 *        further mark.
 */
int64_t interval_ring_mark(struct interval_ring *ring, const struct interval_grid *grid,
                           const struct lane_flow *flows, int64_t now_ns, uint32_t most);

/**
 * @brief Return the oldest interval mark in a ring, valid until interval_ring_drop(); called by the
 * main thread.
 *
 * @param ring Ring of marks.
 * @return Mark; NULL: no mark is queued.
 */
const struct interval_mark *interval_ring_first(const struct interval_ring *ring);
/**
 * @brief Remove the oldest interval mark from a ring.
 *
 * @param ring Ring of marks.
 */
void interval_ring_drop(struct interval_ring *ring);

/** @brief Lane of one queue of a port in a phase, with the counts and times that its worker
 * writes. */
struct worker_lane {
    const struct transport *transport;
    struct lane *lane;
    /** @brief Flows of the lane, if several queues share the port's flows; NULL: all flows of the
     * port. */
    struct lane_flow *flows;
    struct port_count count;
    struct interval_ring *interval_ring; /**< NULL: none */
    /** @brief Count of frames for other ranks that arrived at the port; the workers of all its
     * queues add to it. */
    atomic_ullong *foreign;
    uint64_t foreign_counted; /**< frames of this lane that `foreign` includes */
    /**
     * @brief Traffic of the lane so far (struct lane_moved), and the time of these counts;
     * published by the worker during the phase.
     */
    atomic_ullong offered_bytes;
    atomic_ullong delivered_bytes;
    atomic_ullong line_bytes;
    atomic_llong published_ns;
    int64_t polled_ns; /**< time of the last poll */
    bool accounting;   /**< the counts of its flows are being updated, some flows per call */
    bool marking;      /**< an interval mark is due, and is made once the accounting is complete */
    int64_t opened_ns; /**< time at which its counters were copied; 0: not yet */
    int64_t closed_ns;
};

enum task_end {
    TASK_DRAINED, /**< all sent data have arrived, or silence shows that the rest is lost */
    TASK_LIMIT,   /**< the drain's limit was reached */
    TASK_STOPPED, /**< worker_stop */
    TASK_FLOODED, /**< a port received more frames for others than the limit */
};

/**
 * @brief Task of a worker: to poll its lanes during one phase, until the network has drained.
 *
 * Owned by the caller, which must not touch it until worker_done().
 */
struct worker_task {
    struct worker_lane **lanes;
    size_t count;
    const struct phase *phase;
    int64_t nominal_end_ns; /**< end of sending if nothing delays it */
    int64_t drain_timeout_ns;
    int64_t drain_max_ns;
    uint64_t flood_limit;      /**< frames for others at one port; 0: none */
    struct interval_grid grid; /**< for lanes with a ring */
    int64_t interval_due_ns;   /**< next interval result; used by the worker */
    int64_t moved_ns;          /**< time of the last progress; used by the worker */
    int64_t awake_ns;          /**< time at which the worker was at its lanes */
    enum task_end end;         /**< result of the task */
    const struct worker_lane
        *flooded; /**< lane whose port was flooded; NULL: no flooding ended the task */
};

struct worker; /* opaque */

/**
 * @brief Configuration of a worker, which writes 1 to `event_fd` (an eventfd) when a task has
 * ended.
 *
 * `sleeps`: yield the core between bursts. `core`: the worker's core; -1: any.
 */
struct worker_conf {
    bool sleeps;
    int core;
    int event_fd;
    uint64_t seed;
};

/**
 * @brief Start a worker thread.
 *
 * @param[out] worker Worker, for worker_end().
 * @param conf Settings; copied.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno with an error message.
 */
int worker_start(struct worker **worker, const struct worker_conf *conf, struct err *err);
/**
 * @brief Stop a worker's thread and free the worker.
 *
 * @param worker Worker.
 */
void worker_end(struct worker *worker);

/** @brief Port that a worker serves between phases, so that the port answers ARP and ND. */
struct worker_port {
    const struct transport *transport;
    struct transport_port *port;
};
/**
 * @brief Replace the list of ports that a worker serves between phases.
 *
 * When the function returns, the worker no longer touches the old ports. Not while a task runs.
 *
 * @param worker Worker.
 * @param ports Ports; copied.
 * @param count Number of ports.
 * @return 0; -ENOMEM, never for 0 ports.
 */
int worker_set_ports(struct worker *worker, const struct worker_port *ports, size_t count);

/**
 * @brief Start a task on a worker and return at once.
 *
 * @param worker Worker.
 * @param task Task, owned by the caller, which must not touch the task until worker_done() returns
 *        true.
 */
void worker_run(struct worker *worker, struct worker_task *task);
/**
 * @brief Return whether a worker's task has ended and belongs to the caller again.
 *
 * @param worker Worker.
 * @return True: the task has ended.
 */
bool worker_done(struct worker *worker);
/**
 * @brief End the traffic of the present task now (within a few milliseconds), without a drain.
 *
 * @param worker Worker.
 */
void worker_stop(struct worker *worker);

#endif
