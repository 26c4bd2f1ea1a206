/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Joining a run: from the job document to the first barrier.
 */
#ifndef ENGINE_JOIN_H
#define ENGINE_JOIN_H

#include "node.h"

/**
 * @brief Join the run: the job, its ports and workers, the control endpoint, hello, peers, the
 * first barrier, ready.
 *
 * @param node This node.
 * @return 0, or -ECANCELED.
 */
int join_run(struct node *node);

/**
 * @brief Find a port of the run by its name.
 *
 * @param node This node.
 * @param name Name of the port.
 * @return Port; NULL: there is none.
 */
const struct port_location *node_find_port(const struct node *node, const char *name);

#endif
