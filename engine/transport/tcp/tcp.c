/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp.h"

#include "lane.h"
#include "port.h"

/* Between phases there is nothing to do: the kernel answers the network. */
const struct transport transport_tcp = {
    .name = "tcp",
    .size_unit = "message",
    .pingpong = true,
    .schedules = true,
    .knows_end = true,
    .open = tcp_port_open,
    .facts = tcp_port_facts,
    .link_up = tcp_port_link_up,
    .address = tcp_port_address,
    .prepare = tcp_lane_prepare,
    .settle = tcp_lane_settle,
    .settle_fd = tcp_port_settle_fd,
    .start = tcp_lane_start,
    .wake_fd = tcp_lane_wake_fd,
    .rest = tcp_steps_rest,
    .poll = tcp_lane_poll,
    .measure = tcp_lane_measure,
    .latency = tcp_pingpong_latency,
    .samples = tcp_pingpong_samples,
    .rejected = tcp_port_rejected,
    .hardware = tcp_port_hardware,
    .finish = tcp_lane_finish,
    .close = tcp_port_close,
};
