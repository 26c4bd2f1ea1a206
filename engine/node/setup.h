/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a node needs before it reads its first document, and the end of it.
 */
#ifndef ENGINE_SETUP_H
#define ENGINE_SETUP_H

#include "node.h"
#include "options.h"

int setup_node(struct node *node, const struct options *options, struct err *err);

/* 0, or -EPIPE when records could not be written. */
int tear_down_node(struct node *node);

#endif
