/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's sender before it sends (tx.h): its streams, their frames and order, its pace.
 */
#ifndef ENGINE_DPDK_SENDER_SETUP_H
#define ENGINE_DPDK_SENDER_SETUP_H

#include "lane_state.h"

/* In prepare. -ENOMEM. */
int sender_make(struct dpdk_lane *lane);
/* Once partners are known: templates, and the phase's frame in every buffer. */
void sender_build(struct dpdk_lane *lane);
/* At the start: the streams' order and the schedule, which begins at a random moment. Returns a
 * seed for what else the lane chooses at random. */
uint64_t sender_begin(struct dpdk_lane *lane);
void sender_free(struct sender *sender);

#endif
