/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting queue pairs by rdma_cm (`connect: cm`): the source calls the sink's port, and shows a
 * token that the sink has published in its info, so that only a partner of this run is let in.
 * Main thread only; nothing here blocks.
 */
#ifndef VERBS_CM_H
#define VERBS_CM_H

#include "lane.h"

/* Listens, if the machine has rdma_cm and the port an address; without them only `connect: cm` is
 * refused, later. */
void verbs_cm_listen(struct transport_port *port);
void verbs_cm_close(struct transport_port *port);
/* Where the port listens, network byte order; 0: it does not. */
uint16_t verbs_cm_port(const struct transport_port *port);
/* Readable when there is something to settle; -1: never. */
int verbs_cm_fd(const struct transport_port *port);
/* Takes what callers and partners have said. */
void verbs_cm_work(struct transport_port *port);

/* What an end publishes for its caller; 0: it calls itself, or rdma_cm is not used. */
uint64_t verbs_cm_token(const struct verbs_endpoint *endpoint);
/* Calls, or begins to wait for the call. 0 or a refusal. */
int verbs_cm_begin(struct verbs_endpoint *endpoint, struct err *err);
/* 0: connected; -EAGAIN; or it failed. */
int verbs_cm_advance(struct verbs_endpoint *endpoint, struct err *err);

/* settle.c: an end gets its qp; an end goes, and its pair forgets it. */
int verbs_endpoint_acquire(struct verbs_endpoint *endpoint, struct err *err);
void verbs_link_end(struct verbs_endpoint *endpoint);
void verbs_link_lend(struct verbs_endpoint *endpoint);

#endif
