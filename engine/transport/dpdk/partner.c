/* SPDX-License-Identifier: BSD-3-Clause */
#include "partner.h"

#include <errno.h>
#include <string.h>

int partner_read(const struct dpdk_lane *lane, const struct lane_flow *flow, uint32_t rank,
                 struct frame_end *end, uint32_t *frame_max, struct err *err)
{
    const char *name = lane->port->conf->name;
    bool has_ip[2] = {false, false};

    end->rank = (uint16_t)rank;
    if (!port_read_address(&flow->partner, end, has_ip, frame_max))
        return err_set(err, -EINVAL, "%s: rank %u has no address of a dpdk port", name, rank);
    if ((lane->shape.kind == HEADER_IPV4_UDP && !has_ip[0]) ||
        (lane->shape.kind == HEADER_IPV6_UDP && !has_ip[1]))
        return err_set(err, -EINVAL, "%s: its partner, rank %u, has no address for %s frames", name,
                       rank, frame_kind_name(lane->shape.kind));
    return 0;
}

void partner_ends(const struct dpdk_lane *lane, const struct lane_flow *flow, uint32_t partner,
                  struct frame_end ends[2])
{
    const struct guest *guest = &lane->port->guest;
    struct err ignored = {""};
    uint32_t frame_max;

    ends[0].rank = (uint16_t)lane->lane.request.rank;
    memcpy(ends[0].mac, guest->mac, sizeof ends[0].mac);
    memcpy(ends[0].ipv4, guest->ipv4, sizeof ends[0].ipv4);
    memcpy(ends[0].ipv6, guest->ipv6, sizeof ends[0].ipv6);
    (void)partner_read(lane, flow, partner, &ends[1], &frame_max, &ignored);
    if (!guest_on_link(guest, &ends[1]))
        memcpy(ends[1].mac, guest->gateway_mac, sizeof ends[1].mac);
}
