/* SPDX-License-Identifier: BSD-3-Clause */
#include "partner.h"
#include "port_address.h"

#include <errno.h>
#include <string.h>

#define ASK_NS (200 * NS_PER_MS)
#define GATEWAY_NS (5 * NS_PER_S)

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
    /* A worker that visits the port between phases may learn the gateway at this moment. */
    const struct arp_nd_responder *responder = port_responder_lock(lane->port);
    struct err ignored = {""};
    uint32_t frame_max;

    ends[0].rank = (uint16_t)lane->lane.request.rank;
    memcpy(ends[0].mac, responder->mac, sizeof ends[0].mac);
    memcpy(ends[0].ipv4, responder->ipv4, sizeof ends[0].ipv4);
    memcpy(ends[0].ipv6, responder->ipv6, sizeof ends[0].ipv6);
    (void)partner_read(lane, flow, partner, &ends[1], &frame_max, &ignored);
    if (!responder_on_link(responder, &ends[1]))
        memcpy(ends[1].mac, responder->gateway_mac, sizeof ends[1].mac);
    port_responder_unlock(lane->port);
}

void partner_all(enum frame_destination destination, struct frame_end *end)
{
    static const uint8_t macs[][FRAME_MAC] = {
        [DESTINATION_BROADCAST] = FRAME_BROADCAST, [DESTINATION_MULTICAST] = FRAME_MULTICAST};

    if (destination == DESTINATION_PORT)
        return;
    memcpy(end->mac, macs[destination], sizeof end->mac);
    end->rank = FRAME_RANK_ALL;
}

int partner_check(const struct dpdk_lane *lane, const struct lane_flow *flow, uint32_t rank,
                  struct frame_end *end, struct err *err)
{
    uint32_t frame_max = 0;
    int rc = partner_read(lane, flow, rank, end, &frame_max, err);

    for (uint32_t i = 0; rc == 0 && i < lane->order_count; i++) {
        uint32_t frame_bytes = lane->sizes[lane->order[i]].frame_bytes;

        if (frame_bytes > frame_max + (lane->shape.vlan ? FRAME_VLAN : 0))
            rc = err_set(err, -EINVAL,
                         "%s: its partner, rank %u, takes frames of %u bytes at most, not %u",
                         lane->port->conf->name, rank, frame_max, frame_bytes);
    }
    return rc;
}

/* Whether any partner is reached through the gateway. The responder is locked. */
static bool needs_gateway(const struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct err ignored = {""};
    uint32_t frame_max;

    for (uint32_t i = 0; i < request->send_count; i++) {
        struct frame_end end = {.rank = 0};

        (void)partner_read(lane, &request->sends[i], request->sends[i].dst, &end, &frame_max,
                           &ignored);
        if (!responder_on_link(&lane->port->responder, &end))
            return true;
    }
    for (uint32_t i = 0; lane->prober.answers && i < request->receive_count; i++) {
        struct frame_end end = {.rank = 0};

        (void)partner_read(lane, &request->receives[i], request->receives[i].src, &end, &frame_max,
                           &ignored);
        if (!responder_on_link(&lane->port->responder, &end))
            return true;
    }
    return false;
}

int partner_find_gateway(struct dpdk_lane *lane, int64_t now_ns, struct err *err)
{
    struct transport_port *port = lane->port;
    struct arp_nd_responder *responder = port_responder_lock(port);
    bool found = responder->gateway_known || !needs_gateway(lane);
    uint8_t frame[RESPONDER_FRAME_MAX];
    uint32_t length = found ? 0 : responder_request(responder, frame);

    port_responder_unlock(port);
    if (found)
        return 0;
    if (now_ns - lane->connecting_ns > GATEWAY_NS)
        return err_set(err, -EHOSTUNREACH, "%s: the gateway %s does not answer within 5 s",
                       port->conf->name, port->conf->gateway);
    if (now_ns - lane->asked_ns >= ASK_NS) {
        queue_send(lane->queue, frame, length);
        lane->asked_ns = now_ns;
    }
    return -EAGAIN;
}
