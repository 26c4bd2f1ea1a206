/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run on this node: prepare, join, trials, leave.
 */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include "node.h"

/* The exit status. */
int run_node(struct node *node);

/* Answers a plan document: what its pattern sends. The exit status; err says why it is not 0. */
int run_plan_document(struct node *node, struct err *err);

#endif
