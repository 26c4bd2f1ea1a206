/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a phase asks of a port: checked against what the port can do, and made effective.
 */
#ifndef VERBS_LANE_OPTIONS_H
#define VERBS_LANE_OPTIONS_H

#include "lane.h"

#define VERBS_QUEUE_PAIRS_MAX 64

/* Chooses options, mode and sizes of a lane with its request and traffic. 0 or a refusal. */
int verbs_lane_choose(struct verbs_lane *lane, struct err *err);
/* Bytes at layer 1 that a message of so many takes. */
double verbs_line_bytes(const struct verbs_lane *lane, uint32_t bytes);
/* Says how the lane works, in the words of the records. */
void verbs_lane_name_variant(struct verbs_lane *lane);

#endif
