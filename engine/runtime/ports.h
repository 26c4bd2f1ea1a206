/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief This node's ports: surveyed once, then open in one transport at a time.
 */
#ifndef ENGINE_PORTS_H
#define ENGINE_PORTS_H

#include "node.h"

/**
 * @brief Open this node's ports in turn in each of their transports and report what they are; the
 * guard is asked first.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the sentence.
 */
int ports_survey(struct node *node);
/**
 * @brief Open each port that is wanted in a transport there, closing what is open otherwise: of the
 * other ports what is not in `rest`.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the sentence.
 */
int ports_use(struct node *node, const struct transport *rest);
/**
 * @brief Close all ports.
 *
 * @param node This node.
 */
void ports_close(struct node *node);
/**
 * @brief Wait until all open ports have a link; names those that have none.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the sentence.
 */
int ports_await_link(struct node *node);
/**
 * @brief Report links that went down or came back since the last call.
 *
 * @param node This node.
 * @return 0; -ENOLINK: one stays down for too long, and node->err has the sentence.
 */
int ports_watch_links(struct node *node);

#endif
