/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's functions in the transport's table (transport.h): its preparation, its start, its
 * poll, and what it measured.
 */
#ifndef ENGINE_DPDK_LANE_H
#define ENGINE_DPDK_LANE_H

#include "lane_state.h"

int lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err);
int lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
void lane_start(struct lane *lane, int64_t now_ns);
int64_t lane_poll(struct lane *lane, int64_t now_ns);
void lane_account(struct lane *lane);
void lane_mark_window(struct lane *lane);
bool lane_account_some(struct lane *lane);
void lane_idle(struct transport_port *port, int64_t now_ns);
unsigned lane_flow_metrics(struct lane *lane, const struct lane_flow *flow, struct flow_metric *out,
                           unsigned room);
bool lane_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                  struct latency *sum);
void lane_destroy(struct lane *lane);

#endif
