/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs.h"

#include "lane.h"
#include "port.h"

/* Between phases there is nothing to do: the device answers the network. */
const struct transport transport_verbs = {
    .name = "verbs",
    .size_unit = "message",
    .pingpong = true,
    .schedules = true,
    .knows_end = true,
    .open = verbs_port_open,
    .facts = verbs_port_facts,
    .link_up = verbs_port_link_up,
    .address = verbs_port_address,
    .prepare = verbs_lane_prepare,
    .settle = verbs_lane_connect,
    .settle_fd = verbs_port_connect_fd,
    .wake_fd = verbs_lane_wake_fd,
    .start = verbs_lane_start,
    .poll = verbs_lane_poll,
    .measure = verbs_lane_flow_metrics,
    .latency = verbs_lane_latency,
    .samples = verbs_lane_samples,
    .hardware = verbs_port_hardware,
    .finish = verbs_lane_destroy,
    .close = verbs_port_close,
};
