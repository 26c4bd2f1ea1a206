/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This node's ports: surveyed once, then open in one transport at a time.
 */
#ifndef ENGINE_PORTS_H
#define ENGINE_PORTS_H

#include "node.h"

/* Opens this node's ports in turn in each of their transports and reports what they are.
 * The guard has its say first. */
int ports_survey(struct node *node);
/* Opens each port that is wanted in a transport there, closing what is open otherwise: of the other
 * ports what is not in `rest`. */
int ports_use(struct node *node, const struct transport *rest);
void ports_close(struct node *node);
/* Waits until all open ports have a link, names those that have none. */
int ports_await_link(struct node *node);
/* Reports links that went down or came back since the last call. -ECANCELED: one stays down for
 * too long. */
int ports_watch_links(struct node *node);

#endif
