/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PCI ports that leave their kernel driver for DPDK during the run (doc/how-to/bind.md).
 */
#ifndef ENGINE_PORT_BINDING_H
#define ENGINE_PORT_BINDING_H

#include "node.h"

/* The job says `bind`, and this is a port that leaves its kernel driver for dpdk. */
bool port_binding_wanted(const struct node *node, const struct node_port *port);
/* The same, and some port of the node is used through its kernel driver before. */
bool port_binding_waits(const struct node *node, const struct node_port *port);
/* Finds the interfaces of PCI ports that kernel transports use, and fails now for what could not
 * be bound later. */
int port_binding_survey(struct node *node, struct err *err);
/* Before a port is opened: binds all ports that are to be bound; there is no way back. */
int port_binding_for(struct node *node, const struct node_port *port,
                     const struct transport *transport, struct err *err);
/* At the end, the ports being closed: restores what this node has bound. 0, or what failed, with
 * the sentence in node->err. */
int port_binding_end(struct node *node);

#endif
