/* SPDX-License-Identifier: BSD-3-Clause */
#include "netns.h"
#include "packet_lane.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RING_BYTES (8u << 20)
#define BLOCK_BYTES (64u << 10)
#define SLOT_HEAD 128u /* of the kernel's, before the frame: tpacket2_hdr, sockaddr_ll */

/* What partners must know, in network byte order. */
struct packet_address {
    uint8_t mac[ETH_ALEN];
    uint64_t line_bps;
} __attribute__((packed));
static_assert(sizeof(struct packet_address) <= BLOB_BYTES_MAX, "it fits");

static int read_link(struct transport_port *port, const struct port_conf *conf, struct err *err)
{
    struct port_facts *facts = &port->ip.facts;
    struct packet_address own;
    struct link_state link;
    int rc;

    if (conf->iface == NULL)
        return err_set(err, -EINVAL, "%s: packet needs an interface (iface)", conf->name);
    snprintf(port->ip.iface, sizeof port->ip.iface, "%s", conf->iface);
    if ((rc = ip_port_link(&port->ip, &link, err)) != 0)
        return rc;
    if (link.type != ARPHRD_ETHER || !(link.flags & IFF_UP))
        return err_set(err, -ENETDOWN, "%s: interface '%s' is %s", conf->name, conf->iface,
                       link.type != ARPHRD_ETHER ? "no Ethernet interface"
                                                 : "down: 'ip link set IFACE up'");
    memcpy(port->mac, link.mac, sizeof port->mac);
    link.mtu += ETH_HLEN + FRAME_FCS;
    port->frame_max = link.mtu < FILL_BYTES ? link.mtu : FILL_BYTES;
    facts->queues = 1;
    facts->frame_max = port->frame_max;
    memcpy(own.mac, port->mac, sizeof own.mac);
    own.line_bps = htobe64(conf->line_rate_bps > 0 ? conf->line_rate_bps : facts->link_bps);
    facts->address.size = sizeof own;
    memcpy(facts->address.bytes, &own, sizeof own);
    return 0;
}

/* Bound last, so that no frame passes the ring by. What a full device refuses is kept and sent
 * again: no queueing discipline is needed before it. */
static int open_ring(struct transport_port *port)
{
    const struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                        .sll_protocol = htobe16(PACKET_TYPE),
                                        .sll_ifindex = port->ip.ifindex};
    struct packet_ring *ring = &port->ring;
    struct tpacket_req request = {.tp_block_size = BLOCK_BYTES,
                                  .tp_block_nr = RING_BYTES / BLOCK_BYTES};
    int version = TPACKET_V2, on = 1, fd = port->ip.socket;
    void *memory;

    for (ring->slot_bytes = 2048; ring->slot_bytes < SLOT_HEAD + port->frame_max;)
        ring->slot_bytes *= 2;
    request.tp_frame_size = (unsigned)ring->slot_bytes;
    request.tp_frame_nr = ring->count = (uint32_t)(RING_BYTES / ring->slot_bytes);
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0)
        return -errno;
    memory = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    ring->slots = memory;
    return bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
}

static int open_inside(struct transport_port *port, const struct port_conf *conf, struct err *err)
{
    int rc = read_link(port, conf, err);

    if (rc != 0)
        return rc;
    port->ip.socket = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    rc = port->ip.socket < 0 ? -errno : open_ring(port);
    return rc == 0 ? 0
                   : err_set(err, rc,
                             "%s: the kernel gives no packet socket on '%s': %s; raw frames need "
                             "CAP_NET_RAW: run as root, or use tcp or udp",
                             conf->name, port->ip.iface, strerror(-rc));
}

int packet_port_open(struct transport_port **out, const struct port_conf *conf,
                     const struct transport_run *run, struct err *err)
{
    struct transport_port *port = calloc(1, sizeof *port);
    int home = -1, rc;

    (void)run;
    if (port == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", conf->name);
    port->ip = (struct ip_port){.conf = conf, .transport = "packet", .netlink = -1, .socket = -1};
    if ((rc = netns_enter(conf->netns, &home, err)) == 0) {
        rc = open_inside(port, conf, err);
        netns_leave(home);
    }
    *out = rc == 0 ? port : NULL;
    if (rc != 0)
        packet_port_close(port);
    return rc;
}

void packet_port_close(struct transport_port *port)
{
    if (port->ring.slots != NULL)
        munmap(port->ring.slots, RING_BYTES);
    ip_port_close(&port->ip);
    free(port);
}

/* What passed is the socket's own: the interface's counters are of the kernel's other traffic, too.
 * Its drops of what is sent are attempts: no more were dropped than did not leave. A full ring is
 * this host's drop. */
void packet_port_facts(struct transport_port *port, struct port_facts *facts, bool asked)
{
    struct port_hardware *counters = &facts->hardware;
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;
    int64_t missing;

    ip_port_facts(&port->ip, facts, asked);
    if (!asked)
        return;
    missing = (int64_t)port->sent - (port->ip.conf->shared ? 0 : counters->sent_frames);
    if (counters->dropped_send > missing)
        counters->dropped_send = missing > 0 ? missing : 0;
    counters->sent_frames = (int64_t)port->sent - counters->dropped_send;
    counters->received_frames = (int64_t)port->received;
    if (getsockopt(port->ip.socket, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
        port->ring_drops += stats.tp_drops; /* reading resets */
    if (counters->dropped_receive >= 0)
        counters->dropped_receive += (int64_t)(port->ring_drops + port->forward_dropped);
}

int packet_resolve(struct frame_lane *lane, uint32_t place, void *kept, uint64_t *line_bps,
                   struct err *err)
{
    const struct blob *blob = &frame_flow(lane, place)->partner;
    uint32_t rank = frame_partner_rank(lane, place);
    struct packet_partner *partner = kept;
    struct packet_address peer;

    if (blob->size != sizeof peer)
        return err_set(err, -EINVAL, "%s: rank %u has no address of a packet port", lane->conf.name,
                       rank);
    memcpy(&peer, blob->bytes, sizeof peer);
    partner->rank = (uint16_t)rank;
    memcpy(partner->mac, peer.mac, sizeof partner->mac);
    *line_bps = be64toh(peer.line_bps);
    return 0;
}
