/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a phase asks of one flow, for the transports that send messages at a pace in bytes of
 * payload (tcp, verbs): how much, how quickly, and how much it had asked for at a time.
 */
#ifndef ENGINE_FLOW_RATE_H
#define ENGINE_FLOW_RATE_H

#include "pacer.h"
#include "transport.h"

#define FLOW_LOAD_GATHER_NS 1000000 /**< what is due within this time may be sent together */

/**
 * @brief Payload of one of a flow's `streams`; FLOW_ENDLESS: until the stop.
 *
 * `sizes`: the phase's, as the lane sends them (a probe's are small).
 */
uint64_t flow_load_bytes(const struct phase *phase, const uint32_t *sizes, unsigned streams,
                         unsigned stream);

/**
 * @brief Payload bytes a second of one of the flows that the lane sends; 0: as fast as it goes.
 *
 * `payload_share`: of what the messages take at layer 1.
 */
double flow_load_rate(const struct lane_request *request, const struct lane_flow *flow,
                      const uint32_t *sizes, double payload_share);

/**
 * @brief Begins a pace at that rate.
 *
 * A sender that comes late may catch up with `catch_up` bytes at the most.
 */
void flow_load_pace(struct pace *pace, const struct phase *phase, double rate, double catch_up);

/**
 * @brief Brings side->intended up to date.
 *
 * What is unlimited asked for what was sent; and a message that was begun in time was asked for
 * whole.
 *
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void flow_load_account(const struct lane *lane, const struct pace *pace, struct flow_side *side,
                       int64_t now_ns);

/**
 * @brief Messages a second that probe the round trip of each of the lane's flows beside a stream,
 * each of so many bytes at layer 1; 0: none.
 *
 * Whether there are any depends on the phase alone, so that both ends of a flow agree.
 */
double flow_load_probe_rate(const struct lane_request *request, double line_bytes);

#endif
