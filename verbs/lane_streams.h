/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The streams of a lane with their queue pairs: made for a phase, polled, and freed.
 */
#ifndef VERBS_LANE_STREAMS_H
#define VERBS_LANE_STREAMS_H

#include "lane.h"

/* A request's flows, those that it sends before those that it receives, but with counts of their
 * own. -ENOMEM; both are the caller's to free, then, too. */
int verbs_flows_copy(const struct lane_request *request, struct lane_flow **flows,
                     struct flow_side **sides);

/* 0 or a refusal. */
int verbs_lane_make(struct verbs_lane **lane, const struct lane_request *request,
                    const struct verbs_traffic *traffic, struct err *err);
/* Its queue pairs go back to the pool. NULL is none. */
void verbs_lane_free(struct verbs_lane *lane);

/* Worker: the phase's times are known. */
void verbs_lane_start(struct verbs_lane *lane);
/* One round over the streams; returns when the next is due. Sets what the lane says of its end. */
int64_t verbs_lane_work(struct verbs_lane *lane, int64_t now_ns);

#endif
