/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forwarding: delivered frames are sent on to the next hop of a chain.
 */
#ifndef ENGINE_DPDK_FORWARD_H
#define ENGINE_DPDK_FORWARD_H

#include "lane_state.h"

/* Sends a burst of delivered frames on, and keeps what the driver does not take now. */
void forwarder_pass(struct dpdk_lane *lane, const struct forward_entry *entries, uint32_t count,
                    int64_t now_ns);
/* The lane's `send`: sends what was kept, and returns when to do so again. */
int64_t forwarder_send(struct dpdk_lane *lane, int64_t now_ns);
/* Drops what was kept. */
void forwarder_drop(struct dpdk_lane *lane);

#endif
