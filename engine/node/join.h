/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Joining a run: from the hello record to the first barrier.
 */
#ifndef ENGINE_JOIN_H
#define ENGINE_JOIN_H

#include "node.h"

/**
 * @brief Join the run: the control endpoint, hello, peers, the first barrier, ready.
 *
 * @param node This node.
 * @return 0, or -ECANCELED.
 */
int join_run(struct node *node);

#endif
