/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Joining a run: from the hello record to the first barrier.
 */
#ifndef ENGINE_JOIN_H
#define ENGINE_JOIN_H

#include "node.h"

/* The control endpoint; hello, peers, the first barrier, ready. */
int join_run(struct node *node);

#endif
