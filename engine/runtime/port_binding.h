/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PCI ports that leave their kernel driver for DPDK during the run (doc/how-to/bind.md). The node
 * asks for it, by an event of kind `bind`, and waits: the controller, or a person, binds them with
 * scripts/python/switchbench/hosts/port_binding.py and restores them after the run. All of a node's
 * ports leave at once, before dpdk opens the first. Kernel transports come before: there is no way
 * back within a run.
 */
#ifndef ENGINE_PORT_BINDING_H
#define ENGINE_PORT_BINDING_H

#include "node.h"

/* DPDK takes this port's PCI device from its kernel driver: it works through those of some NICs. */
bool port_binding_leaves_kernel(const struct doc_port *port);
/* The job says `bind`, and this is a port that leaves its kernel driver for dpdk. */
bool port_binding_wanted(const struct node *node, const struct node_port *port);
/* The same, it has not left, and some port of the node is used through its kernel driver before. */
bool port_binding_waits(const struct node *node, const struct node_port *port);
/* Finds the interface of a PCI port that kernel transports use. */
int port_binding_find_interface(struct node_port *port, struct err *err);
/* Before a port is opened: waits until all ports that are to be bound are. */
int port_binding_for(struct node *node, const struct node_port *port,
                     const struct transport *transport, struct err *err);

#endif
