/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The packet transport: raw Ethernet frames through a packet socket of the kernel (socket_lane.h).
 * A frame is Ethernet 14 | signature 18 | fill, as with dpdk's header l2; sizes are those of frames
 * with FCS.
 *
 * Received frames lie in a ring of TPACKET_V2, which delivers each frame at once: TPACKET_V3 keeps
 * them until a block is full or a timer of whole jiffies ends, so that times would be those of the
 * timer. Frames are read in the ring; their slots are returned after each burst. Frames are sent by
 * sendmmsg, which returns how many were accepted: PACKET_TX_RING counts frames as sent that the
 * device refused. See packet(7) and Linux, Documentation/networking/packet_mmap.rst.
 */
#include "socket_lane.h"

#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ETHER_TYPE ETH_P_802_EX1          /* IEEE 802 local experimental EtherType 1 (RFC 9542) */
#define HEAD (ETH_HLEN + SIGNATURE_BYTES) /* bytes before the fill */
#define RING_BYTES (8u << 20)
#define BLOCK_BYTES (64u << 10)
#define SLOT_HEAD 128u /* kernel's bytes before the frame: tpacket2_hdr, sockaddr_ll */

struct transport_port {
    struct socket_port socket; /* first; it has no address */
    uint8_t mac[ETH_ALEN];
    uint64_t ring_drops; /* frames dropped because the ring was full */
    uint8_t *slots;      /* the ring of received frames */
    size_t slot_bytes;   /* a power of two */
    uint32_t count;
    uint32_t next; /* slot that the kernel fills and the lane reads next */
    uint32_t held; /* slots before `next` that were read and not returned */
};

/* Contents of a port's blob, in network byte order. */
struct packet_address {
    uint8_t mac[ETH_ALEN];
    uint64_t line_bps;
} __attribute__((packed));
static_assert(sizeof(struct packet_address) <= BLOB_BYTES_MAX, "it fits");

static const struct option options[] = {FRAME_OPTIONS(frame_options, ), {.key = NULL}};
static const struct option_table option_table = {options, sizeof(struct frame_options)};

static struct transport_port *port_of(const struct frame_lane *lane)
{
    return lane->lane.request.port;
}

/* --- partners ----------------------------------------------------------------------------------*/

static int resolve(struct frame_lane *lane, uint32_t place, void *kept, uint64_t *line_bps,
                   struct err *err)
{
    const struct blob *blob = &lane->lane.request.flows[place].partner;
    const uint16_t type = htobe16(ETHER_TYPE);
    uint8_t *headers = ((struct socket_partner *)kept)->headers;
    struct packet_address peer;

    if (blob->size != sizeof peer)
        return err_set(err, -EINVAL,
                       "%s: rank %u has sent no address of a port of transport packet",
                       lane->conf.name, frame_partner_rank(lane, place));
    memcpy(&peer, blob->bytes, sizeof peer);
    memcpy(headers, peer.mac, ETH_ALEN);
    memcpy(headers + ETH_ALEN, port_of(lane)->mac, ETH_ALEN);
    memcpy(headers + 2 * ETH_ALEN, &type, sizeof type);
    *line_bps = be64toh(peer.line_bps);
    return 0;
}

/* Broadcast an empty frame, so that switches learn the port's address. */
static void announce(struct socket_lane *lane)
{
    const struct lane_request *request = &lane->frame.lane.request;
    struct frame_template head = {0};

    if (request->send_count + request->receive_count == 0)
        return;
    memcpy(head.bytes, socket_partner(&lane->frame, 0)->headers, ETH_HLEN);
    memset(head.bytes, 0xff, ETH_ALEN);
    if (socket_send(&lane->frame, 0, &head, lane->frame.conf.least - FRAME_FCS))
        request->count->arp_nd_sent++;
}

/* --- receive -----------------------------------------------------------------------------------*/

static inline struct tpacket2_hdr *slot_of(const struct transport_port *port, uint32_t number)
{
    return (struct tpacket2_hdr *)(void *)(port->slots + number % port->count * port->slot_bytes);
}

/* Return whether a frame to this port had a VLAN tag. The kernel removes the tag before this socket
 * gets the frame, but marks the frame as another host's. */
static bool was_tagged(const struct transport_port *port, const struct tpacket2_hdr *slot)
{
    const struct sockaddr_ll *from =
        (const void *)((const uint8_t *)slot + TPACKET_ALIGN(sizeof *slot));

    return from->sll_pkttype == PACKET_OTHERHOST &&
           memcmp((const uint8_t *)slot + slot->tp_mac, port->mac, ETH_ALEN) == 0;
}

/* Receive a burst of frames from the ring. A frame with a VLAN tag is foreign: its length is set to
 * 0. */
static inline uint32_t rx_burst(struct frame_lane *lane, frame_t *frames)
{
    struct transport_port *port = port_of(lane);
    uint32_t count = 0;

    while (count < lane->conf.receive_burst) {
        struct tpacket2_hdr *slot = slot_of(port, port->next);
        uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);

        if ((status & TP_STATUS_USER) == 0)
            break;
        frames[count] = &socket_of(lane)->inbox[count];
        *frames[count++] = (struct socket_frame){
            .bytes = (uint8_t *)slot + slot->tp_mac,
            .length = was_tagged(port, slot) ? 0 : slot->tp_snaplen,
        };
        port->next = (port->next + 1) % port->count;
    }
    port->held = count;
    port->socket.received += count;
    return count;
}

/* Return the ring slots of a burst to the kernel, including those of forwarded frames, of which
 * only the length is still needed. The socket would stay readable as long as the slot before `next`
 * is not returned. */
static inline void rx_free(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    struct transport_port *port = port_of(lane);

    (void)frames;
    (void)count;
    for (; port->held > 0; port->held--)
        __atomic_store_n(&slot_of(port, port->next + port->count - port->held)->tp_status,
                         TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

static bool is_forged(const struct frame_lane *lane, uint16_t rank,
                      const struct socket_frame *frame)
{
    (void)lane;
    (void)rank;
    (void)frame;
    return false; /* as in dpdk, a sound signature is enough */
}

static bool rx_see(const struct frame_lane *lane, frame_t frame, struct frame_seen *seen)
{
    *seen = (struct frame_seen){
        .signature = (const struct signature *)(frame->bytes + ETH_HLEN),
        .length = frame->length,
        .mac = frame->bytes + ETH_ALEN,
        .ours = memcmp(frame->bytes, port_of(lane)->mac, ETH_ALEN) == 0,
    };
    return frame->length >= HEAD;
}

/* Handle a received frame that is not part of the load; a broadcast frame is another port's
 * announcement. */
static void rx_unexpected(struct frame_lane *lane, frame_t frame, int64_t now_ns)
{
    static const uint8_t all[ETH_ALEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct frame_seen seen;

    if (!rx_see(lane, frame, &seen))
        lane->lane.request.count->foreign++;
    else if (memcmp(frame->bytes, all, sizeof all) == 0)
        lane->lane.request.count->arp_nd_received++;
    else
        frame_lane_unexpected(lane, &seen, now_ns);
}

/* --- a lane and its port -----------------------------------------------------------------------*/

static int prepare(struct lane *lane, struct err *err)
{
    struct frame_conf conf = {
        .header = "l2",
        .offset = ETH_HLEN,
        .outside = FRAME_FCS,
        .least = ETH_ZLEN + FRAME_FCS,
        .most = lane->request.port->socket.ip.facts.frame_max,
    };

    return socket_make((struct socket_lane *)lane, &conf, err);
}

static void close_port(struct transport_port *port)
{
    if (port->slots != NULL)
        munmap(port->slots, RING_BYTES);
    ip_port_close(&port->socket.ip);
    free(port);
}

/* Make the ring of received frames. The socket is bound last, so that no frame misses the ring. The
 * socket bypasses the queueing discipline: frames that a full device does not take stay in the
 * lane, which sends them later. */
static int open_ring(struct transport_port *port)
{
    const struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                        .sll_protocol = htobe16(ETHER_TYPE),
                                        .sll_ifindex = port->socket.ip.ifindex};
    struct tpacket_req request = {.tp_block_size = BLOCK_BYTES,
                                  .tp_block_nr = RING_BYTES / BLOCK_BYTES};
    int version = TPACKET_V2, on = 1, fd = port->socket.ip.socket;
    void *memory;

    for (port->slot_bytes = 2048; port->slot_bytes < SLOT_HEAD + port->socket.ip.facts.frame_max;)
        port->slot_bytes *= 2;
    request.tp_frame_size = (unsigned)port->slot_bytes;
    request.tp_frame_nr = port->count = (uint32_t)(RING_BYTES / port->slot_bytes);
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0)
        return -errno;
    memory = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    port->slots = memory;
    return bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
}

static int open_device(struct transport_port *port, struct err *err)
{
    struct ip_port *ip = &port->socket.ip;
    struct port_facts *facts = &ip->facts;
    struct packet_address own;
    uint32_t frame_max;
    int rc;

    memcpy(port->mac, ip->link.mac, sizeof port->mac);
    frame_max = ip->link.mtu + ETH_HLEN + FRAME_FCS;
    facts->frame_max = frame_max < FILL_BYTES ? frame_max : FILL_BYTES;
    facts->queues = 1;
    memcpy(own.mac, port->mac, sizeof own.mac);
    own.line_bps = htobe64(ip->conf->line_rate_bps > 0 ? ip->conf->line_rate_bps : facts->link_bps);
    facts->address.size = sizeof own;
    memcpy(facts->address.bytes, &own, sizeof own);
    if ((rc = open_ring(port)) != 0)
        return err_set(err, rc, "%s: can't make a ring of frames on interface '%s': %s",
                       ip->conf->name, ip->iface, strerror(-rc));
    return 0;
}

static int open_port(struct transport_port *port, const struct port_conf *conf,
                     const struct transport_run *run, struct err *err)
{
    int rc = ip_port_open(&port->socket.ip, conf, "packet", SOCK_RAW, err);

    (void)run;
    return rc == 0 ? open_device(port, err) : rc;
}

/* Read a port's properties. Sent and received frames are those of the socket, because the interface
 * counts other traffic, too. A frame that finds the ring full counts as dropped by this host. */
static void find_facts(struct transport_port *own, struct port_facts *facts, bool with_counters)
{
    const struct socket_port *port = &own->socket;
    struct port_hardware *counters = &facts->hardware;
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;

    ip_port_facts(&own->socket.ip, facts, with_counters);
    if (!with_counters)
        return;
    counters->dropped_send = ip_port_dropped(&port->ip, counters, (int64_t)port->sent);
    counters->sent_frames =
        (int64_t)port->sent - (counters->dropped_send > 0 ? counters->dropped_send : 0);
    counters->received_frames = (int64_t)port->received;
    if (getsockopt(port->ip.socket, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
        own->ring_drops += stats.tp_drops; /* reading resets the counter */
    if (counters->dropped_receive >= 0)
        counters->dropped_receive += (int64_t)(own->ring_drops + port->forward_dropped);
}

extern const struct transport transport_packet;

/* Between phases there is nothing to do: raw frames need no address resolution. */
const struct transport transport_packet = {
    .name = "packet",
    .capabilities = TRANSPORT_FRAMES | TRANSPORT_NEEDS_IFACE,
    .options = &option_table,
    .port_bytes = sizeof(struct transport_port),
    .lane_bytes = sizeof(struct socket_lane),
    .open = open_port,
    .facts = find_facts,
    .prepare = prepare,
    .connect = socket_connect,
    .poll = frame_lane_poll,
    .account = frame_lane_account,
    .read_flow = frame_lane_read_flow,
    .destroy = socket_destroy,
    .close = close_port,
};
