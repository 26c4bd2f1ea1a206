/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane that plays ping-pong (frame_pingpong.h), a frame at a time. Not a hot path: the next
 * message waits for the last.
 */
#ifndef ENGINE_DPDK_PINGPONG_LANE_H
#define ENGINE_DPDK_PINGPONG_LANE_H

#include "lane_state.h"

/* In prepare, before what receives is made (0 or an error); once partners are known; at the end. */
int pingpong_lane_make(struct dpdk_lane *lane, struct err *err);
void pingpong_lane_build(struct dpdk_lane *lane);
void pingpong_lane_free(struct dpdk_lane *lane);

/* The lane's `send`. Its `receive` is set by pingpong_lane_make. */
int64_t pingpong_lane_send(struct dpdk_lane *lane, int64_t now_ns);

/* LATENCY_PINGPONG of a flow, as transport.h's latency. */
bool pingpong_lane_latency(const struct dpdk_lane *lane, const struct lane_flow *flow,
                           struct latency *sum);

#endif
