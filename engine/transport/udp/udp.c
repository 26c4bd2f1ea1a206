/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The udp transport: frames are datagrams of one socket of the kernel (socket_lane.h). Sizes are
 * those of frames with FCS; sizes, signature, fill, sequence and judgement are as in dpdk.
 *
 * A datagram with a partner's rank counts only if it came from the partner's socket. A damaged
 * datagram usually has a wrong UDP checksum: the kernel drops it, and the port counts it as an
 * error. The phase's tag in each datagram distinguishes phases.
 */
#include "netns.h"
#include "socket_lane.h"

#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AROUND (14u + FRAME_FCS) /* Ethernet's bytes of a frame */
#define FRAME_LEAST 64u
#define RECEIVE_BYTES (4u << 20) /* receive buffer where the options name none */

struct transport_port {
    struct socket_port socket; /* first */
    int statistics;            /* file with the namespace's UDP counters; -1: none */
    int64_t base_damaged;
};

struct udp_lane {
    struct socket_lane socket; /* first */
    struct mmsghdr messages[FRAME_BURST_MAX];
    struct iovec pieces[FRAME_BURST_MAX];
    struct sockaddr_storage from[FRAME_BURST_MAX];
    uint8_t bytes[FRAME_BURST_MAX][FILL_BYTES];
};

/* --- options -----------------------------------------------------------------------------------*/

struct udp_options {
    struct frame_options frame; /* first */
    uint32_t receive_buffer;    /* SO_RCVBUF in bytes; 0: up to 4 MiB, as the kernel allows */
};

#define MEMBER(type, key, member) OPTION(type, udp_options, key, member)
static const struct option options[] = {
    {MEMBER(OPTION_NUMBER, "receive_buffer", receive_buffer), .max = UINT32_MAX},
    FRAME_OPTIONS(udp_options, frame.),
    {.key = NULL},
};
static const struct option_table option_table = {options, sizeof(struct udp_options)};

/* --- partners ----------------------------------------------------------------------------------*/

static int resolve(struct frame_lane *lane, uint32_t place, void *kept, uint64_t *line_bps,
                   struct err *err)
{
    struct socket_partner *partner = kept;
    int rc =
        ip_port_check_partner(&socket_of(lane)->port->ip, &lane->lane.request.flows[place].partner,
                              frame_partner_rank(lane, place), &partner->name, line_bps, err);

    partner->name_bytes = partner->name.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                              : sizeof(struct sockaddr_in);
    return rc;
}

/* Send an empty datagram to each partner, so that the kernel resolves the partners' MAC addresses,
 * and switches learn this port's address. */
static void announce(struct socket_lane *lane)
{
    const struct lane_request *request = &lane->frame.lane.request;

    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        const struct socket_partner *to = socket_partner(&lane->frame, i);

        if (sendto(lane->port->ip.socket, "", 0, MSG_DONTWAIT, (const struct sockaddr *)&to->name,
                   to->name_bytes) == 0) {
            lane->port->sent++;
            request->count->arp_nd_sent++;
        }
    }
}

/* --- receive -----------------------------------------------------------------------------------*/

static inline uint32_t rx_burst(struct frame_lane *base, frame_t *frames)
{
    struct udp_lane *lane = (struct udp_lane *)base;
    int count = recvmmsg(lane->socket.port->ip.socket, lane->messages, base->conf.receive_burst,
                         MSG_DONTWAIT, NULL);

    if (count <= 0)
        return 0;
    for (int i = 0; i < count; i++) {
        frames[i] = &lane->socket.inbox[i];
        *frames[i] =
            (struct socket_frame){lane->bytes[i], lane->messages[i].msg_len, 0, &lane->from[i]};
        lane->messages[i].msg_hdr.msg_namelen = sizeof lane->from[i];
    }
    lane->socket.port->received += (uint32_t)count;
    return (uint32_t)count;
}

static inline void rx_free(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    (void)lane;
    (void)frames;
    (void)count;
}

static bool is_forged(const struct frame_lane *lane, uint16_t rank,
                      const struct socket_frame *frame)
{
    const struct prober *prober = &lane->prober; /* answers come from the flows' destinations */
    uint32_t source = lane->receiver.flow_of[rank];
    uint32_t destination = prober->count > 0 ? prober->flow_of[rank] : 0;
    uint32_t place = source > 0 ? lane->lane.request.send_count + source : destination;
    const struct sockaddr_storage *from = frame->from, *name;

    if (place == 0)
        return false;
    name = &socket_partner(lane, place - 1)->name;
    /* Both families have the port number at the same offset. */
    return !address_same(name, from) || ((const struct sockaddr_in *)name)->sin_port !=
                                            ((const struct sockaddr_in *)from)->sin_port;
}

static bool rx_see(const struct frame_lane *lane, frame_t frame, struct frame_seen *seen)
{
    const struct signature *signature = (const struct signature *)frame->bytes;

    if (frame->length < SIGNATURE_BYTES)
        return false;
    *seen = (struct frame_seen){
        .signature = signature,
        .length = frame->length,
        .ours = !is_forged(lane, be16toh(signature->src), frame),
    };
    return true;
}

/* Handle a datagram that is not part of the load; an empty datagram is an announcement. */
static void rx_unexpected(struct frame_lane *lane, frame_t frame, int64_t now_ns)
{
    struct port_count *count = lane->lane.request.count;
    struct frame_seen seen;

    if (rx_see(lane, frame, &seen) && seen.ours) {
        frame_lane_unexpected(lane, &seen, now_ns);
        return;
    }
    count->arp_nd_received += frame->length == 0;
    count->foreign += frame->length > 0;
}

/* --- a lane ------------------------------------------------------------------------------------*/

static int prepare(struct lane *base, struct err *err)
{
    struct udp_lane *lane = (struct udp_lane *)base;
    const struct udp_options *own = base->request.phase->options;
    struct ip_port *ip = &base->request.port->socket.ip;
    uint32_t headers = ip->address.ss_family == AF_INET6 ? 48 : 28; /* of IP and UDP */
    uint32_t least = AROUND + headers + SIGNATURE_BYTES, most = ip->facts.frame_max;
    struct frame_conf conf = {
        .header = "udp",
        .outside = AROUND + headers,
        .least = least > FRAME_LEAST ? least : FRAME_LEAST,
        .most = most < FILL_BYTES ? most : FILL_BYTES,
    };
    struct err ignored = {""};
    int rc = socket_make(&lane->socket, &conf, err);

    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < FRAME_BURST_MAX; i++) {
        lane->pieces[i] = (struct iovec){lane->bytes[i], sizeof lane->bytes[i]};
        lane->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &lane->from[i],
            .msg_namelen = sizeof lane->from[i],
            .msg_iov = &lane->pieces[i],
            .msg_iovlen = 1,
        };
    }
    /* The socket serves all phases: it is tuned for the one prepared last. */
    if (own->receive_buffer > 0)
        return ip_port_buffer(ip, ip->socket, SO_RCVBUF, own->receive_buffer, err);
    (void)ip_port_buffer(ip, ip->socket, SO_RCVBUF, RECEIVE_BYTES, &ignored);
    return 0;
}

/* --- a port ------------------------------------------------------------------------------------*/

/* Return how many received datagrams had a wrong UDP checksum, because they were damaged in the
 * network; the count is for all sockets of the namespace. The open file of /proc still reads the
 * namespace in which it was opened. For IPv4 it has a line of names before the line of numbers. */
static int64_t damaged(const struct transport_port *port)
{
    bool v6 = port->socket.ip.address.ss_family == AF_INET6;
    char text[8192] = "";
    const char *at = text;
    long long count = 0;

    (void)!pread(port->statistics, text, sizeof text - 1, 0);
    at = strstr(text, v6 ? "Udp6InCsumErrors" : "Udp: ");
    if (at != NULL && !v6)
        at = strstr(at + 1, "Udp: ");
    if (at != NULL)
        (void)sscanf(at, v6 ? "%*s %lld" : "%*s %*d %*d %*d %*d %*d %*d %lld", &count);
    return count;
}

static void close_port(struct transport_port *port)
{
    ip_port_close(&port->socket.ip);
    if (port->statistics >= 0)
        close(port->statistics);
    free(port);
}

static int open_port(struct transport_port *port, const struct port_conf *conf,
                     const struct transport_run *run, struct err *err)
{
    struct ip_port *ip = &port->socket.ip;
    int home = -1, v4 = IP_PMTUDISC_PROBE, v6 = IPV6_PMTUDISC_PROBE, rc;
    bool is_v6;

    (void)run;
    port->statistics = -1;
    rc = ip_port_open(ip, conf, "udp", SOCK_DGRAM, err);
    if (rc == 0)
        rc = netns_enter(conf->netns, &home, err);
    if (rc != 0)
        return rc;
    is_v6 = ip->address.ss_family == AF_INET6;
    port->statistics = open(is_v6 ? "/proc/thread-self/net/snmp6" : "/proc/thread-self/net/snmp",
                            O_RDONLY | O_CLOEXEC);
    netns_leave(home);
    /* A datagram is one frame, so the kernel may not fragment it. */
    if (is_v6)
        setsockopt(ip->socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof v6);
    else
        setsockopt(ip->socket, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof v4);
    port->base_damaged = damaged(port);
    ip->facts.queues = 1;
    ip->facts.frame_max = ip->facts.mtu + AROUND;
    return 0;
}

/* Read a port's properties. Sent and received frames are those of the socket, because the interface
 * counts other traffic, too. The socket counts a damaged datagram as dropped, but here it counts as
 * an error of the network. */
static void find_facts(struct transport_port *own, struct port_facts *facts, bool with_counters)
{
    const struct socket_port *port = &own->socket;
    struct port_hardware *counters = &facts->hardware;
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof info;
    int64_t bad, drops;

    ip_port_facts(&own->socket.ip, facts, with_counters);
    if (!with_counters)
        return;
    bad = damaged(own) - own->base_damaged;
    (void)getsockopt(port->ip.socket, SOL_SOCKET, SO_MEMINFO, info, &size);
    drops = (int64_t)info[SK_MEMINFO_DROPS] - bad; /* received for the socket, but not delivered */
    counters->received_frames = (int64_t)port->received;
    counters->sent_frames = (int64_t)port->sent;
    /* The interface may have dropped other traffic. */
    if (counters->dropped_send > 0)
        counters->sent_frames -= counters->dropped_send < counters->sent_frames
                                     ? counters->dropped_send
                                     : counters->sent_frames;
    if (counters->dropped_receive >= 0)
        counters->dropped_receive += (drops > 0 ? drops : 0) + (int64_t)port->forward_dropped;
    if (counters->errors >= 0)
        counters->errors += bad;
}

extern const struct transport transport_udp;

/* Between phases the transport has no work: the kernel answers the network. */
const struct transport transport_udp = {
    .name = "udp",
    .capabilities = TRANSPORT_FRAMES | TRANSPORT_NEEDS_IFACE,
    .options = &option_table,
    .port_bytes = sizeof(struct transport_port),
    .lane_bytes = sizeof(struct udp_lane),
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
