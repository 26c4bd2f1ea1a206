/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The job document: this node, its ports and its workers.
 */
#ifndef ENGINE_JOB_H
#define ENGINE_JOB_H

#include "node.h"

/**
 * @brief Read the job document, find this node and its ports in it, start its workers.
 *
 * @param node This node.
 * @return 0, or -ECANCELED.
 */
int job_read(struct node *node);
/**
 * @brief Find a port by its name.
 *
 * @param node This node.
 * @param name Name of the port.
 * @return Port; NULL: there is none.
 */
const struct port_location *job_find_place(const struct node *node, const char *name);
/**
 * @brief Start the workers of the job.
 *
 * @param node This node.
 * @return 0, or -ECANCELED.
 */
int job_start_workers(struct node *node);
/**
 * @brief Return the worker of a port's queue.
 *
 * @param node This node.
 * @param port Port, from 0.
 * @return Number of the worker.
 */
size_t job_worker_of(const struct node *node, uint32_t port, uint32_t queue);

#endif
