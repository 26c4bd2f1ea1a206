/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a port says of itself, and its counters, as the kernel exports them below
 * /sys/class/infiniband.
 */
#ifndef VERBS_PORT_FACTS_H
#define VERBS_PORT_FACTS_H

#include "transport.h"

void verbs_port_facts(struct transport_port *port, struct port_facts *facts);
/* Since port->base was taken; -1: the driver does not count it. */
void verbs_port_hardware(struct transport_port *port, struct port_hardware *counters);

#endif
