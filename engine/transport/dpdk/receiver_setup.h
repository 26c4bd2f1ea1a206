/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's receiver before it receives (rx.h): its flows' streams and what is measured of them.
 */
#ifndef ENGINE_DPDK_RECEIVER_SETUP_H
#define ENGINE_DPDK_RECEIVER_SETUP_H

#include "lane_state.h"

/* In prepare. Errors with the sentence, but -ENOMEM. */
int receiver_make(struct dpdk_lane *lane, struct err *err);
void receiver_free(struct dpdk_lane *lane);

#endif
