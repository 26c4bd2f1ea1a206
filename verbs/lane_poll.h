/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker's rounds over the streams of a lane.
 */
#ifndef VERBS_LANE_POLL_H
#define VERBS_LANE_POLL_H

#include "lane.h"

/* The phase's times are known. */
void verbs_lane_start(struct verbs_lane *lane);
/* One round; returns when the next is due. Sets what the lane says of its end. */
int64_t verbs_lane_work(struct verbs_lane *lane, int64_t now_ns);

#endif
