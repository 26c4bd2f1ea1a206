/* SPDX-License-Identifier: BSD-3-Clause */
#include "udp_lane.h"

#include <errno.h>
#include <stdlib.h>

#define RECEIVE_BYTES (4u << 20) /* asked for where the options ask for nothing */
#define FRAME_LEAST 64u
#define AROUND (UDP_ETHERNET + FRAME_FCS)

/* --- hooks of frame_lane.h ---------------------------------------------------------------------*/

static int resolve(struct frame_lane *lane, uint32_t place, void *partner, uint64_t *line_bps,
                   struct err *err)
{
    const struct blob *blob = &frame_flow(lane, place)->partner;
    int rc = ip_port_check_partner(&((struct udp_lane *)lane)->port->ip, blob,
                                   frame_partner_rank(lane, place), partner, err);

    *line_bps = rc == 0 ? ip_port_partner_line_bps(blob) : 0;
    return rc;
}

static void write_template(const struct frame_lane *lane, uint32_t place, uint16_t source,
                           const struct frame_size *size, struct frame_template *template)
{
    struct signature *signature = (struct signature *)template->bytes;

    (void)source;
    (void)size; /* the fill is not written by the frame */
    *signature = (struct signature){.tag = lane->receiver.tag,
                                    .src = lane->receiver.own,
                                    .dst = htobe16((uint16_t)frame_partner_rank(lane, place))};
}

static const char *send_name(const struct frame_lane *lane)
{
    return ((const struct udp_lane *)lane)->segments ? "by segments" : "one by one";
}

static const struct frame_ops ops = {
    .check_size = socket_check_size,
    .resolve = resolve,
    .write_template = write_template,
    .choose_send = udp_choose_send,
    .choose_receive = udp_choose_receive,
    .send_name = send_name,
    .send_single = udp_send_single,
    .is_sound = udp_is_sound,
};

/* --- prepare -----------------------------------------------------------------------------------*/

static struct frame_conf frame_conf(const struct lane_request *request)
{
    const struct transport_port *port = request->port;
    uint32_t least = AROUND + port->headers + SIGNATURE_BYTES, most = port->mtu + AROUND;

    struct frame_conf conf = {
        .ops = &ops,
        .name = port->ip.conf->name,
        .header = "udp",
        .partner_bytes = sizeof(struct sockaddr_storage),
        .outside = AROUND + port->headers,
        .least = least > FRAME_LEAST ? least : FRAME_LEAST,
        .most = most < FILL_BYTES ? most : FILL_BYTES,
    };

    socket_options_conf(request->phase, &conf);
    return conf;
}

static int allocate(struct udp_lane *lane)
{
    struct udp_outbox *outbox = frame_lane_zeros(&lane->frame, 1, sizeof *outbox);
    struct udp_inbox *inbox = frame_lane_zeros(&lane->frame, 1, sizeof *inbox);

    lane->outbox = outbox;
    lane->inbox = inbox;
    if (outbox == NULL || inbox == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < FRAME_BURST_MAX; i++)
        outbox->frames[i].bytes = outbox->heads[i].bytes;
    for (uint32_t i = 0; i < UDP_MESSAGES; i++) {
        inbox->pieces[i] = (struct iovec){inbox->bytes[i], sizeof inbox->bytes[i]};
        inbox->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &inbox->from[i],
            .msg_iov = &inbox->pieces[i],
            .msg_iovlen = 1,
            .msg_control = &inbox->controls[i],
        };
    }
    return 0;
}

/* The socket serves all phases, and is tuned for the one that was prepared last. */
static int tune_socket(struct udp_lane *lane, struct err *err)
{
    const struct udp_options *options = lane->frame.lane.request.phase->options;
    struct ip_port *port = &lane->port->ip;
    struct err ignored = {""};
    int together = lane->segments;

    setsockopt(port->socket, SOL_UDP, UDP_GRO, &together, sizeof together);
    if (options->receive_buffer > 0)
        return ip_port_buffer(port, port->socket, SO_RCVBUF, options->receive_buffer, err);
    (void)ip_port_buffer(port, port->socket, SO_RCVBUF, RECEIVE_BYTES, &ignored);
    return 0;
}

static void destroy(struct lane *base)
{
    struct udp_lane *lane = (struct udp_lane *)base;

    lane->port->forward_dropped += lane->frame.forwarder.tail - lane->frame.forwarder.head;
    lane->port->lanes--;
    frame_lane_free(&lane->frame);
}

static int prepare(struct lane **out, const struct lane_request *request, struct err *err)
{
    const struct udp_options *options = request->phase->options;
    struct frame_conf conf = frame_conf(request);
    struct udp_lane *lane = frame_lane_new(sizeof *lane, request);
    int rc;

    if (lane == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", conf.name);
    lane->frame.lane.wake_fd = request->port->ip.socket;
    lane->frame.forwarder.dropped = &request->port->forward_dropped;
    lane->port = request->port;
    lane->port->lanes++;
    lane->segments = options->offload == UDP_OFFLOAD_ON ||
                     (options->offload == UDP_OFFLOAD_AUTO && lane->port->segments);
    conf.trains = lane->segments;
    if ((rc = allocate(lane)) != 0 || (rc = frame_lane_make(&lane->frame, &conf, err)) != 0 ||
        (rc = tune_socket(lane, err)) != 0) {
        destroy(&lane->frame.lane);
        return err_set(err, rc, "%s: out of memory", conf.name);
    }
    frame_lane_build(&lane->frame);
    *out = &lane->frame.lane;
    return 0;
}

/* An empty datagram to each partner: the kernel asks for their addresses now, and switches learn
 * where this port is. */
static void announce(struct udp_lane *lane)
{
    const struct lane_request *request = &lane->frame.lane.request;

    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        const struct sockaddr_storage *to = udp_partner(&lane->frame, i);

        if (sendto(lane->port->ip.socket, "", 0, MSG_DONTWAIT, (const struct sockaddr *)to,
                   udp_address_bytes(to)) == 0) {
            lane->port->sent++;
            request->count->arp_nd_sent++;
        }
    }
}

/* What earlier phases left behind is thrown away here, unless a worker still receives. */
static int connect_lane(struct lane *base, int64_t now_ns, struct err *err)
{
    struct udp_lane *lane = (struct udp_lane *)base;

    (void)err;
    if (lane->port->lanes == 1)
        socket_drain(&lane->frame, now_ns);
    if (!lane->announced)
        announce(lane);
    lane->announced = true;
    return 0;
}

extern const struct transport transport_udp;

/* Sizes are of frames with FCS, as in dpdk, and so are signature, fill, sequence and their
 * judgement. Between phases there is nothing to do: the kernel answers the network. */
const struct transport transport_udp = {
    .name = "udp",
    .capabilities = TRANSPORT_FRAMES | TRANSPORT_PINGPONG | TRANSPORT_NEEDS_IFACE,
    .options = &udp_option_table,
    .open = udp_port_open,
    .facts = udp_port_facts,
    .prepare = prepare,
    .connect = connect_lane,
    .poll = frame_lane_poll,
    .account = frame_lane_account,
    .read_flow = frame_lane_read_flow,
    .destroy = destroy,
    .close = udp_port_close,
};
