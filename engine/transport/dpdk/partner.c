/* SPDX-License-Identifier: BSD-3-Clause */
#include "partner.h"

#include "port.h"

#include <errno.h>
#include <string.h>

#define ASK_NS (200 * NS_PER_MS)
#define GATEWAY_NS (5 * NS_PER_S)

struct port_blob {
    uint8_t version;
    uint8_t has_ipv4;
    uint8_t has_ipv6;
    uint8_t mac[FRAME_MAC];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint8_t frame_max[4]; /* big-endian, and so is */
    uint8_t line_bps[8];
} __attribute__((packed));
static_assert(sizeof(struct port_blob) == 41, "the layout of a port's address");
static_assert(sizeof(struct port_blob) <= BLOB_BYTES_MAX, "it fits");

void port_address(struct transport_port *port, struct blob *blob)
{
    const struct arp_nd_responder *responder = &port->responder;
    uint32_t frame_max = htobe32(port->frame_max);
    uint64_t line_bps =
        htobe64(port->conf->line_rate_bps > 0 ? port->conf->line_rate_bps : port_link_bps(port));
    struct port_blob own = {
        .version = 1, .has_ipv4 = responder->has_ipv4, .has_ipv6 = responder->has_ipv6};

    memcpy(own.mac, responder->mac, sizeof own.mac);
    memcpy(own.ipv4, responder->ipv4, sizeof own.ipv4);
    memcpy(own.ipv6, responder->ipv6, sizeof own.ipv6);
    memcpy(own.frame_max, &frame_max, sizeof own.frame_max);
    memcpy(own.line_bps, &line_bps, sizeof own.line_bps);
    blob->size = sizeof own;
    memcpy(blob->bytes, &own, sizeof own);
}

int partner_resolve(struct frame_lane *base, uint32_t place, void *partner, uint64_t *line_bps,
                    struct err *err)
{
    struct dpdk_lane *lane = dpdk_lane_of(base);
    const struct lane_flow *flow = frame_flow(base, place);
    uint32_t rank = frame_partner_rank(base, place);
    const char *name = lane->port->conf->name;
    enum header_kind kind = lane->shape.kind;
    struct frame_end *end = partner;
    struct port_blob peer = {.version = 0};
    uint32_t frame_max;

    if (flow->partner.size == sizeof peer)
        memcpy(&peer, flow->partner.bytes, sizeof peer);
    if (peer.version != 1)
        return err_set(err, -EINVAL, "%s: rank %u has no address of a dpdk port", name, rank);
    if ((kind == HEADER_IPV4_UDP && !peer.has_ipv4) || (kind == HEADER_IPV6_UDP && !peer.has_ipv6))
        return err_set(err, -EINVAL, "%s: its partner, rank %u, has no address for %s frames", name,
                       rank, frame_kind_name(kind));
    end->rank = (uint16_t)rank;
    memcpy(end->mac, peer.mac, sizeof end->mac);
    memcpy(end->ipv4, peer.ipv4, sizeof end->ipv4);
    memcpy(end->ipv6, peer.ipv6, sizeof end->ipv6);
    memcpy(line_bps, peer.line_bps, sizeof *line_bps);
    *line_bps = be64toh(*line_bps);
    memcpy(&frame_max, peer.frame_max, sizeof frame_max);
    frame_max = be32toh(frame_max) + (lane->shape.vlan ? FRAME_VLAN : 0);
    for (uint32_t i = 0; i < base->size_count; i++)
        if (base->sizes[i].frame_bytes > frame_max)
            return err_set(err, -EINVAL,
                           "%s: its partner, rank %u, takes frames of %u bytes at most, not %u",
                           name, rank, frame_max - (lane->shape.vlan ? FRAME_VLAN : 0),
                           base->sizes[i].frame_bytes);
    return 0;
}

void partner_ends(const struct dpdk_lane *lane, uint32_t place, struct frame_end ends[2])
{
    /* A worker that visits the port between phases may learn the gateway at this moment. */
    const struct arp_nd_responder *responder = port_responder_lock(lane->port);

    ends[0].rank = (uint16_t)lane->frame.lane.request.rank;
    memcpy(ends[0].mac, responder->mac, sizeof ends[0].mac);
    memcpy(ends[0].ipv4, responder->ipv4, sizeof ends[0].ipv4);
    memcpy(ends[0].ipv6, responder->ipv6, sizeof ends[0].ipv6);
    ends[1] = *dpdk_partner(lane, place);
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

/* Whether a partner is reached through the gateway: of what is sent, and of what is answered. The
 * responder is locked. */
static bool needs_gateway(const struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->frame.lane.request;
    uint32_t count =
        request->send_count + (lane->frame.prober.answers ? request->receive_count : 0);
    uint32_t i = 0;

    while (i < count && responder_on_link(&lane->port->responder, dpdk_partner(lane, i)))
        i++;
    return i < count;
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
