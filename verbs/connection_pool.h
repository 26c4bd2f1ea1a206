/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's queue pairs from phase to phase: new ones, those that are kept connected for a later
 * phase between the same two ports with the same options, and those that a thread of its own
 * destroys. Main thread only.
 */
#ifndef VERBS_CONNECTION_POOL_H
#define VERBS_CONNECTION_POOL_H

#include "qp.h"

/* Makes the port's pool. 0 or -ENOMEM. */
int connection_pool_open(struct transport_port *port);
/* Waits up to 2 s until all queue pairs are destroyed. False: some are not, and so the port must be
 * left to the end of the process. */
bool connection_pool_close(struct transport_port *port);

/* The queue pair of this config that was kept last, with empty control words; else a new one. 0 or
 * a refusal. */
int connection_pool_acquire(struct transport_port *port, const struct qp_config *config,
                            struct verbs_qp **qp, struct err *err);
/* Keeps it, and of all that are kept the `max` that were used last. */
void connection_pool_keep(struct verbs_qp *qp, size_t max);
/* Gives its memory back at once, and destroys it later. */
void connection_pool_free(struct verbs_qp *qp);

#endif
