/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a phase asks of a port, checked against what the port can do.
 */
#ifndef VERBS_LANE_CHECK_H
#define VERBS_LANE_CHECK_H

#include "lane.h"

#define VERBS_QUEUE_PAIRS_MAX 64

/* A lane with its request, options and path MTU. 0 or a refusal. */
int verbs_lane_check(const struct verbs_lane *lane, struct err *err);

extern const char *const verbs_service_names[], *const verbs_operation_names[];

#endif
