/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: each frame is verified, judged by its sequence number, and counted once.
 */
#ifndef ENGINE_DPDK_RX_H
#define ENGINE_DPDK_RX_H

#include "lane_state.h"

/* The lane's `receive`: the variant for its header kind and role. */
uint32_t (*receiver_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t);
/* Judges a sound frame by its sequence, off the hot path; whether it is delivered. */
bool receiver_judge(const struct receiver *receiver, struct received *frame, int64_t now_ns);
/* Brings the live counts of a stream's flow up to date with it. */
void receiver_account_stream(struct dpdk_lane *lane, uint32_t number);
/* Where the load falls: what tells a flow's last lost frame. With several addresses: learning
 * frames that were due too long before they could be sent. As transport.h's flow_metrics. */
unsigned receiver_flow_metrics(const struct dpdk_lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room);

#endif
