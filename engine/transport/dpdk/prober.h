/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's probes (frame_prober.h) as frames: it sends its flows', and answers those that come. Not
 * a hot path: at most a few thousand frames a second.
 */
#ifndef ENGINE_DPDK_PROBER_H
#define ENGINE_DPDK_PROBER_H

#include "lane_state.h"
#include "probe.h"

/* Sends the probe that is due; returns when the next one is. */
int64_t prober_turn(struct dpdk_lane *lane, int64_t now_ns);
/* Takes a sound frame with one of the tags that is meant for this rank: answers it, or measures.
 * False: a forged answer. */
bool prober_take(struct dpdk_lane *lane, const struct rte_mbuf *buffer);

/* Sends one frame beside the load; whether the driver took it. */
bool prober_send(struct dpdk_lane *lane, const struct probe *probe);

/* Whether answers may still come: a transfer does not end before them. Where they may come by
 * another queue that is not known, and silence tells. */
bool prober_waits(const struct dpdk_lane *lane);

#endif
