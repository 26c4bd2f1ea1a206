/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport: the kernel's TCP over a kernel interface, by sockets in the interface's own
 * network namespace. No privilege is needed where the port is in the process's own namespace.
 *
 * - A flow is `streams` connections to the partner's listener, opened in prepare and proved with
 *   the run's key in connect. Other connections never count as flows.
 * - A message is a block of exactly its size on the stream (wire.h). Receivers verify every byte:
 *   payload_bytes are stream bytes that were right and in their place, without the end mark.
 * - A load at layer 1 becomes a payload rate by what a full segment costs on the line (1,448 of
 *   1,538 bytes at MTU 1500 on IPv4). A flow that fell behind may catch up one second: its
 *   congestion control spreads that.
 * - At stop each stream finishes its block, sends an end mark and shuts down.
 *
 * Between phases there is nothing to do: the kernel answers the network.
 */
#include "lane.h"

extern const struct transport transport_tcp;

const struct transport transport_tcp = {
    .name = "tcp",
    .capabilities =
        TRANSPORT_PINGPONG | TRANSPORT_SCHEDULES | TRANSPORT_KNOWS_END | TRANSPORT_NEEDS_IFACE,
    .options = &tcp_option_table,
    .open = tcp_port_open,
    .facts = tcp_port_facts,
    .status = tcp_port_status,
    .prepare = tcp_lane_prepare,
    .connect = tcp_lane_connect,
    .start = tcp_lane_start,
    .wait = tcp_schedule_wait,
    .poll = tcp_lane_poll,
    .flow_metrics = tcp_lane_flow_metrics,
    .latency = tcp_pingpong_latency,
    .hardware = ip_port_hardware,
    .destroy = tcp_lane_destroy,
    .close = tcp_port_close,
};
