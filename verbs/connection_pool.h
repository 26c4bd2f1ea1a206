/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's queue pairs from phase to phase: those that are in use, those that are kept connected
 * for later (qp_cache.h), and those that are being destroyed (qp_destroyer.h). Main thread only.
 */
#ifndef VERBS_CONNECTION_POOL_H
#define VERBS_CONNECTION_POOL_H

#include "qp.h"

/* Begins the port's pool, and listens for rdma_cm. */
void connection_pool_open(struct transport_port *port);
/* False: some queue pairs still refer to the port, which must be left to the end of the process. */
bool connection_pool_close(struct transport_port *port);

/* A kept one of this config, with empty control words; else a new one. 0 or a refusal. */
int connection_pool_acquire(struct transport_port *port, const struct qp_config *config,
                            struct verbs_qp **qp, struct err *err);
/* A new one in place of a kept one whose partner has not kept its own. */
int connection_pool_replace(struct verbs_qp **qp, struct err *err);
/* Keeps it, and of all that are kept the `max` that were used last. */
void connection_pool_keep(struct verbs_qp *qp, size_t max);

#endif
