/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's flows dealt to its queues, each a lane, and what the queues counted added up again.
 */
#ifndef ENGINE_PORT_QUEUES_H
#define ENGINE_PORT_QUEUES_H

#include "phase_run.h"

/* 0 or -ENOMEM; what was made is the lane's, also in part. */
int port_queues_make(struct phase_lane *lane, uint32_t count);
void port_queues_free(struct phase_lane *lane);

/* The workers are done: sums up what each port's queues counted, and when they began and ended. */
void port_queues_gather(struct phase_run *run);

#endif
