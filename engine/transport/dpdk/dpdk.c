/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The dpdk transport: raw Ethernet frames, run to completion.
 *
 *     checksum, signature, sequence, frame   what lies on the wire, as pure functions
 *     guest                                  ARP and neighbour discovery, as pure functions
 *     eal, iface, port                       DPDK, the kernel's interface, a device's queues
 *     lane, partner, prefill                 a phase: its making (lane_state.h: what it keeps)
 *     tx, rx, forward                        its hot paths
 *     message, messages, steps               messages of several frames: there and back, schedules'
 *     probe, prober, arrival                 how long frames were under way
 *     loopback_baseline                      the same where there is no network
 */
#include "lane.h"
#include "loopback_baseline.h"
#include "port.h"
#include "transport.h"

extern const struct transport transport_dpdk;

const struct transport transport_dpdk = {
    .name = "dpdk",
    .size_unit = "frame",
    .pingpong = true,
    .schedules = true,
    .open = port_open,
    .facts = port_facts,
    .link_up = port_link_up,
    .address = port_address,
    .prepare = lane_prepare,
    .settle = lane_settle,
    .wake_fd = lane_wake_fd,
    .start = lane_start,
    .poll = lane_poll,
    .account = lane_account,
    .idle = lane_idle,
    .measure = lane_measure,
    .latency = lane_latency,
    .samples = lane_samples,
    .floor = loopback_baseline_measure,
    .hardware = port_hardware,
    .finish = lane_finish,
    .close = port_close,
};
