/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet_lane.h"
#include "socket_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- options -----------------------------------------------------------------------------------*/

struct packet_options {
    struct socket_options socket;
};

static const struct option options[] = {SOCKET_OPTIONS(packet_options), {.key = NULL}};
static const struct option_table option_table = {options, sizeof(struct packet_options),
                                                 socket_options_fit};

/* --- a lane's life -----------------------------------------------------------------------------*/

static void destroy(struct lane *base)
{
    struct packet_lane *lane = (struct packet_lane *)base;

    lane->port->forward_dropped += lane->frame.forwarder.tail - lane->frame.forwarder.head;
    lane->port->lanes--;
    frame_lane_free(&lane->frame);
}

static int prepare(struct lane **out, const struct lane_request *request, struct err *err)
{
    struct frame_conf conf = {
        .ops = &packet_ops,
        .name = request->port->ip.conf->name,
        .header = "l2",
        .partner_bytes = sizeof(struct packet_partner),
        .offset = ETH_HLEN,
        .outside = FRAME_FCS,
        .least = ETH_ZLEN + FRAME_FCS,
        .most = request->port->frame_max,
    };
    struct packet_lane *lane = frame_lane_new(sizeof *lane, request);
    int rc;

    if (lane == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", conf.name);
    socket_options_conf(request->phase, &conf);
    lane->frame.lane.wake_fd = request->port->ip.socket;
    lane->frame.forwarder.dropped = &request->port->forward_dropped;
    lane->port = request->port;
    lane->port->lanes++;
    for (uint32_t i = 0; i < FRAME_BURST_MAX; i++)
        lane->outbox[i].bytes = lane->heads[i].bytes;
    if ((rc = frame_lane_make(&lane->frame, &conf, err)) != 0) {
        destroy(&lane->frame.lane);
        return rc;
    }
    frame_lane_build(&lane->frame);
    *out = &lane->frame.lane;
    return 0;
}

/* What earlier phases left behind is thrown away here, unless a worker still receives. */
static int connect_lane(struct lane *base, int64_t now_ns, struct err *err)
{
    struct packet_lane *lane = (struct packet_lane *)base;

    (void)err;
    if (lane->port->lanes == 1)
        socket_drain(&lane->frame, now_ns);
    if (!lane->announced)
        packet_announce(lane);
    lane->announced = true;
    return 0;
}

extern const struct transport transport_packet;

/* Sizes are of frames with FCS, as in dpdk. Between phases there is nothing to do: nobody asks
 * raw frames for addresses. */
const struct transport transport_packet = {
    .name = "packet",
    .capabilities = TRANSPORT_FRAMES | TRANSPORT_PINGPONG | TRANSPORT_NEEDS_IFACE,
    .options = &option_table,
    .open = packet_port_open,
    .facts = packet_port_facts,
    .prepare = prepare,
    .connect = connect_lane,
    .poll = frame_lane_poll,
    .account = frame_lane_account,
    .read_flow = frame_lane_read_flow,
    .destroy = destroy,
    .close = packet_port_close,
};
