/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: frames of the lane's own streams, as its pace allows.
 */
#ifndef ENGINE_DPDK_TX_H
#define ENGINE_DPDK_TX_H

#include "lane_state.h"

/* The lane's `send`: the variant for its streams and sizes; before the start; after the stop. */
int64_t (*sender_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t);
const char *sender_variant_name(const struct dpdk_lane *lane);
int64_t sender_wait(struct dpdk_lane *lane, int64_t now_ns);
int64_t sender_rest(struct dpdk_lane *lane, int64_t now_ns);
/* Brings the live counts of a stream's flow up to date with it; not a forwarder's, which sends
 * sizes as they come, and counts them itself. */
void sender_account_stream(struct dpdk_lane *lane, uint32_t number);
/* All streams are accounted: what the load asked for, and of what goes to all, the copies. */
void sender_account_end(struct dpdk_lane *lane);
/* All of a burst is sent: begins the next one, a gap later. False: there is none. */
bool sender_next_burst(struct dpdk_lane *lane, int64_t now_ns);
/* Whether a burst goes on behind the stop until it is whole; not where the stop was moved. */
bool sender_ends_burst(const struct dpdk_lane *lane);
/* Of bursts: the most frames that were due at once, beside the one whose turn it was. As
 * transport.h's flow_metrics. */
unsigned sender_flow_metrics(const struct dpdk_lane *lane, const struct lane_flow *flow,
                             struct flow_metric *out, unsigned room);
/* Sending has ended: notes what the load asked for until `end_ns` and was not sent. */
void sender_missing(struct dpdk_lane *lane, int64_t end_ns);

#endif
