/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_address.h"

#include "port.h"

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

bool port_read_address(const struct blob *blob, struct frame_end *end, bool has_ip[2],
                       uint32_t *frame_max)
{
    struct port_blob peer;

    if (blob->size != sizeof peer)
        return false;
    memcpy(&peer, blob->bytes, sizeof peer);
    memcpy(end->mac, peer.mac, sizeof end->mac);
    memcpy(end->ipv4, peer.ipv4, sizeof end->ipv4);
    memcpy(end->ipv6, peer.ipv6, sizeof end->ipv6);
    memcpy(frame_max, peer.frame_max, sizeof peer.frame_max);
    *frame_max = be32toh(*frame_max);
    has_ip[0] = peer.has_ipv4;
    has_ip[1] = peer.has_ipv6;
    return peer.version == 1;
}

uint64_t port_read_line_bps(const struct blob *blob)
{
    struct port_blob peer;
    uint64_t line_bps;

    memcpy(&peer, blob->bytes, sizeof peer);
    memcpy(&line_bps, peer.line_bps, sizeof line_bps);
    return be64toh(line_bps);
}
