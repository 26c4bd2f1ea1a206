/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The partner at a flow's other end: where it is, and what it takes.
 */
#ifndef ENGINE_DPDK_PARTNER_H
#define ENGINE_DPDK_PARTNER_H

#include "lane_state.h"

/* Where the partner at a flow's other end is, whether it can take part, and the largest frame that
 * it takes (without a tag). Errors with the sentence. */
int partner_read(const struct dpdk_lane *lane, const struct lane_flow *flow, uint32_t rank,
                 struct frame_end *end, uint32_t *frame_max, struct err *err);

/* Who sends a flow's frames and who gets them: this rank, and the partner at the flow's other end,
 * by way of the gateway where it is not on the same link. */
void partner_ends(const struct dpdk_lane *lane, const struct lane_flow *flow, uint32_t partner,
                  struct frame_end ends[2]);

/* Every port in place of a partner, where the frames of a phase go to all. */
void partner_all(enum frame_destination destination, struct frame_end *end);

/* The same of the flow's other end, which must take the phase's frames. */
int partner_check(const struct dpdk_lane *lane, const struct lane_flow *flow, uint32_t rank,
                  struct frame_end *end, struct err *err);

/* Asks for the gateway where a partner is reached through it. -EAGAIN: it has not answered yet;
 * -EHOSTUNREACH with the sentence: it does not. The queue is locked. */
int partner_find_gateway(struct dpdk_lane *lane, int64_t now_ns, struct err *err);

#endif
