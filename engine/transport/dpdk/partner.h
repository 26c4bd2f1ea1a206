/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Addresses: what a port tells its partners, and where the partners of a lane are.
 */
#ifndef ENGINE_DPDK_PARTNER_H
#define ENGINE_DPDK_PARTNER_H

#include "dpdk_lane.h"

/** @brief Write what partners must know of the port. */
void port_address(struct transport_port *port, struct blob *blob);

/** @brief Keep where the partner of a flow is: frame_lane.h's hook. */
int partner_resolve(struct frame_lane *lane, uint32_t place, void *partner, uint64_t *line_bps,
                    struct err *err);

/** @brief Find who sends a flow's frames and who gets them: this rank, and the partner at the
 * flow's other end, by way of the gateway where it is not on the same link. */
void partner_ends(const struct dpdk_lane *lane, uint32_t place, struct frame_end ends[2]);

/** @brief Put every port in place of a partner, where the frames of a phase go to all. */
void partner_all(enum frame_destination destination, struct frame_end *end);

/**
 * @brief Ask for the gateway where a partner is reached through it. The queue is locked.
 * @return 0, -EAGAIN: it has not answered yet; -EHOSTUNREACH with the sentence: it does not.
 */
int partner_find_gateway(struct dpdk_lane *lane, int64_t now_ns, struct err *err);

#endif
