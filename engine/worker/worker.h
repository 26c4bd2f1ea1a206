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

#include "worker_task.h"

#include <stddef.h>

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

/**
 * @brief Ports that the worker lets answer the network between phases; replaces the ports before.
 *
 * When it returns the worker no longer touches the old ones. Not while a task runs. -ENOMEM; none
 * (count 0) never fails.
 */
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
