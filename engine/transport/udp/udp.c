/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The udp transport: datagrams through the kernel's sockets, each of which is one frame on the
 * wire.
 *
 *     port      one socket on a kernel interface's address, and what the kernel dropped of it
 *     lane      a phase: its making, its times, its end
 *     send      what is due, by sendmmsg and segmentation offload (UDP_SEGMENT)
 *     receive   what came, by recvmmsg and coalesced datagrams (UDP_GRO): verified and judged
 *     prober    round trips beside the load
 *     pingpong  messages there and back, each a datagram
 *
 * Sizes are of frames with FCS, as in dpdk, and so are signature, fill, sequence and their
 * judgement. Between phases there is nothing to do: the kernel answers the network.
 */
#include "lane.h"

extern const struct transport transport_udp;

const struct transport transport_udp = {
    .name = "udp",
    .capabilities = TRANSPORT_FRAMES | TRANSPORT_PINGPONG | TRANSPORT_NEEDS_IFACE,
    .options = &udp_option_table,
    .open = udp_port_open,
    .facts = udp_port_facts,
    .status = ip_port_status,
    .prepare = udp_lane_prepare,
    .connect = udp_lane_connect,
    .start = udp_lane_start,
    .poll = udp_lane_poll,
    .flow_metrics = udp_lane_flow_metrics,
    .latency = udp_lane_latency,
    .hardware = udp_port_hardware,
    .destroy = udp_lane_destroy,
    .close = udp_port_close,
};
