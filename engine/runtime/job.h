/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The job document: this node, its ports and its workers.
 */
#ifndef ENGINE_JOB_H
#define ENGINE_JOB_H

#include "node.h"

/* Reads the job document, finds this node and its ports in it, starts its workers. */
int job_read(struct node *node);
/* By a port's name; NULL when there is none. */
const struct port_location *job_find_place(const struct node *node, const char *name);
int job_start_workers(struct node *node);
/* The worker of a port's queue, by its number. */
size_t job_worker_of(const struct node *node, uint32_t port, uint32_t queue);

#endif
