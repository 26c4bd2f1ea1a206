/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which transports a port of this node can be opened in.
 */
#ifndef ENGINE_PORT_TRANSPORTS_H
#define ENGINE_PORT_TRANSPORTS_H

#include "documents.h"
#include "node.h"

/* The port's transport number `place`, below DOC_TRANSPORTS_MAX: of its document's list, which is
 * in the order of first use; without a list, of the registry, if the port has what that transport
 * needs. NULL: none. */
const struct transport *port_transport(const struct doc_port *doc, unsigned place);
/* Whether one of the port's transports has one of these TRANSPORT_ capabilities. */
bool port_transport_with(const struct doc_port *doc, unsigned capabilities);

#endif
