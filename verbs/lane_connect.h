/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the two ends of each of a lane's queue pairs find each other: each publishes its info and
 * fetches the partner's. If both have kept their ends of one queue pair, that is all. Else each end
 * is connected to what the partner published; one that was kept is reset before.
 *
 * No message is sent before the barrier that follows, so an end need not know that its partner has
 * connected, too.
 */
#ifndef VERBS_LANE_CONNECT_H
#define VERBS_LANE_CONNECT_H

#include "lane.h"

/* 0: all are connected; -EAGAIN; or it failed. */
int verbs_lane_connect(struct verbs_lane *lane, int64_t now_ns, struct err *err);

#endif
