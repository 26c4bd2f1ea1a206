/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The dpdk transport: raw Ethernet frames, run to completion.
 *
 *     checksum, signature, sequence, frame   what lies on the wire, as pure functions
 *     arp_nd_responder                       ARP and neighbour discovery, as pure functions
 *     eal, iface, port_device                DPDK, the kernel's interface, a device and its queues
 *     port, port_address, port_queue         a port: facts, address, control frames
 *     lane, lane_request, lane_sizes,        a phase: its preparation, start and poll
 *     sender_setup, receiver_setup,          (lane_state.h: what a lane keeps)
 *     partner, prefill
 *     tx, rx, forward                        its hot paths
 *     probe, prober, arrival, pingpong_lane  latency: one-way delay and round trips
 */
#include "lane.h"
#include "port.h"
#include "port_address.h"
#include "transport.h"

extern const struct transport transport_dpdk;

static void facts_of(struct transport_port *port, struct port_facts *facts)
{
    port_facts(port, facts);
    port_address(port, &facts->address);
}

const struct transport transport_dpdk = {
    .name = "dpdk",
    .capabilities =
        TRANSPORT_FRAMES | TRANSPORT_PINGPONG | TRANSPORT_TAKES_DEVICE | TRANSPORT_BURSTS,
    .options = &dpdk_option_table,
    .open = port_open,
    .facts = facts_of,
    .status = port_status,
    .prepare = lane_prepare,
    .connect = lane_connect,
    .start = lane_start,
    .poll = lane_poll,
    .account = lane_account,
    .mark_window = lane_mark_window,
    .account_some = lane_account_some,
    .idle = lane_idle,
    .flow_metrics = lane_flow_metrics,
    .latency = lane_latency,
    .hardware = port_hardware,
    .destroy = lane_destroy,
    .close = port_close,
};
