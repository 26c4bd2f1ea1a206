/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Placement of a node's workers: their number, their cores, and whether they poll or sleep.
 *
 * A lane is one queue of one port; each lane has one worker, each worker one core.
 *
 * @code{.unparsed}
 * cores are named   they are the workers' alone: poll, unless none is left for the node's main
 *                   thread or `sleep` is set
 * more cores than   poll, each lane on a core of its own; the main thread keeps the others
 * lanes + 1
 * otherwise         one worker that sleeps until its next frame is due, on any core
 * @endcode
 *
 * A lane gets a core on its port's NUMA node where one is free.
 */
#ifndef ENGINE_CPU_PLACEMENT_H
#define ENGINE_CPU_PLACEMENT_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORES_MAX 1024
#define CORES_WORKERS_MAX 64
#define CORES_LANES_MAX 4096

enum worker_policy { WORKER_AUTO, WORKER_SLEEP, WORKER_POLL };

struct core {
    int number;
    int numa; /**< -1: unknown */
};

struct cores_ask {
    enum worker_policy policy;
    const struct core *usable; /**< cores on which this process may run, ascending */
    size_t usable_count;
    const uint32_t *named; /**< configured `cores`, if count > 0 */
    size_t named_count;
    const int *lanes;  /**< NUMA node of each lane's port; -1: none */
    size_t lane_count; /**< at least 1 */
};

struct cores_choice {
    bool sleeps;
    size_t workers;
    int core[CORES_WORKERS_MAX];     /**< core of each worker; -1: any */
    uint8_t worker[CORES_LANES_MAX]; /**< worker of each lane */
};

/**
 * @brief Choose the number of workers, the core of each worker, and the worker of each lane.
 *
 * @param[out] choice Placement.
 * @param ask Policy, cores and lanes to choose from.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -EINVAL: a core does not exist or is listed more than once, or no core is left for the
 *        main thread while workers must poll.
 */
int cores_choose(struct cores_choice *choice, const struct cores_ask *ask, struct err *err);

/**
 * @brief Return the number of queues for each port that has no configured number: the largest
 * number with which each lane still gets a core of its own.
 *
 * @param ask Policy, cores and lanes to choose from.
 * @param ports Number of the node's ports.
 * @return Number of queues, at least 1.
 */
uint32_t cores_queues(const struct cores_ask *ask, size_t ports);

/**
 * @brief List the cores of this machine on which this thread may run.
 *
 * @param[out] cores Cores, ascending.
 * @param all True: first widen the thread's CPU mask as far as the kernel allows.
 * @return Number of cores.
 */
size_t cores_usable(struct core cores[CORES_MAX], bool all);

/**
 * @brief Exclude the workers' cores from the CPU masks of all present threads of this process;
 * threads that these start inherit the mask.
 *
 * To be called before the workers are started.
 *
 * @param choice Placement of the workers.
 */
void cores_yield(const struct cores_choice *choice);

/** @brief Priority of the calling thread on a shared core. */
enum cores_precedence {
    CORES_AS_OTHERS, /**< original priority */
    CORES_IN_TIME,   /**< above other computing threads: a frame leaves when it is due */
    /**
     * @brief Real-time priority: the thread runs at once when data arrive, for tasks of
     * microseconds that other nodes wait for.
     *
     * A kernel that otherwise preempts only at its ticks, 4 ms apart, preempts at once for a
     * real-time thread.
     */
    CORES_AT_ONCE,
};
/**
 * @brief Set the priority of the calling thread on a shared core.
 *
 * @param precedence Priority.
 * @return False: this priority is not permitted; the thread then gets the nearest permitted one.
 */
bool reserve_cores(enum cores_precedence precedence);

#endif
