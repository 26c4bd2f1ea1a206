/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's frame sizes, and how many frames a transfer takes.
 */
#ifndef ENGINE_DPDK_LANE_SIZES_H
#define ENGINE_DPDK_LANE_SIZES_H

#include "lane_state.h"

/* The phase's list of sizes becomes its different sizes and an order. Errors with the sentence. */
int lane_choose_sizes(struct dpdk_lane *lane, struct err *err);
/* Frames that so many flows send in total; UINT64_MAX: until the stop. Every stream starts the list
 * of sizes from its beginning, so with several sizes each stream's part is rounded up. */
uint64_t lane_frames(const struct dpdk_lane *lane, uint64_t flows);

#endif
