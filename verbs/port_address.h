/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The addresses of a port: its GIDs, the IP address for rdma_cm, and what partners are told.
 */
#ifndef VERBS_PORT_ADDRESS_H
#define VERBS_PORT_ADDRESS_H

#include "port.h"

/* Fills the table of GIDs, the automatic choice, the interface and its IP address. */
int verbs_port_read_addresses(struct transport_port *port, struct err *err);
/* By its index; NULL: the table has no such entry. */
const struct verbs_gid *verbs_port_gid(const struct transport_port *port, int index);

/* `cm_port`: where rdma_cm listens, network byte order. */
void verbs_address_write(const struct transport_port *port, uint16_t cm_port, struct blob *blob);
/* A partner's. False: not one of this transport. */
bool verbs_address_read(struct verbs_address *address, const struct blob *blob);

#endif
