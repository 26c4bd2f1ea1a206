/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport's table, its options, and how a lane is made.
 *
 * - A flow is `streams` connections to the partner's listener, opened in prepare and proved with
 *   the run's key in connect. Other connections never count as flows.
 * - A message takes exactly its size on the stream (message.h). Receivers verify every byte:
 *   payload_bytes are stream bytes that were right and in their place, without the end mark.
 * - A load at layer 1 becomes a payload rate by what a full segment costs on the line (1,448 of
 *   1,538 bytes at MTU 1500 on IPv4). A flow that fell behind may catch up one second: its
 *   congestion control spreads that.
 * - At stop each stream finishes its message, sends an end mark and shuts down.
 *
 * Between phases there is nothing to do: the kernel answers the network.
 */
#include "tcp_lane.h"

#include "clock.h"
#include "flow_rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STREAMS_MAX 256
#define PROBE_LINE_BYTES 154.0      /* a latency probe at layer 1: IPv4, with timestamps */
#define REFILL_NS (200 * NS_PER_US) /* where the line rate is not known */

#define MEMBER(type, key, member) OPTION(type, tcp_options, key, member)

/* What depends on the kernel is checked when a phase is prepared. */
static const struct option options[] = {
    {MEMBER(OPTION_NUMBER, "streams", streams), .min = 1, .max = STREAMS_MAX, .initial = 1},
    {MEMBER(OPTION_NUMBER, "send_buffer", send_buffer), .max = UINT32_MAX},
    {MEMBER(OPTION_NUMBER, "receive_buffer", receive_buffer), .max = UINT32_MAX},
    {MEMBER(OPTION_TEXT, "congestion", congestion)},
    {MEMBER(OPTION_BOOL, "nodelay", nodelay), .initial = true},
    {MEMBER(OPTION_BOOL, "zero_copy", zero_copy)},
    {.key = NULL},
};

static const struct option_table option_table = {options, sizeof(struct tcp_options), NULL};

/* An orderly end waits for nothing here (everybody has everything by then, or the phase was
 * given up), so a reset frees both ends at once, without TIME_WAIT. */
static void close_now(int fd)
{
    struct linger reset = {.l_onoff = 1};

    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}

static void destroy(struct lane *base)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    struct tcp_arrival *arrival;

    for (unsigned i = 0; lane->outs != NULL && i < lane->base.out_count; i++)
        close_now(lane->outs[i].fd);
    for (unsigned i = 0; lane->ins != NULL && i < lane->base.in_count; i++) {
        close_now(lane->ins[i].fd);
        free(lane->ins[i].ring);
    }
    while ((arrival = tcp_acceptor_take(lane->port, base->request.phase)) != NULL) {
        close(arrival->fd);
        free(arrival);
    }
    if (lane->epoll >= 0)
        close(lane->epoll);
    if (lane->wakes >= 0)
        close(lane->wakes);
    message_lane_free(&lane->base);
    free(lane->buffer);
    free(lane);
}

/* What the lane has beside its base. */
static int make_rest(struct tcp_lane *lane)
{
    const struct lane_request *request = &lane->base.lane.request;
    int64_t refill_ns = REFILL_NS;

    if (request->line_rate_bps > 0)
        refill_ns = (int64_t)(tcp_unsent_most(request) / 4.0 * 8 * NS_PER_S /
                              (double)request->line_rate_bps);
    lane->base.refill_ns = refill_ns < NS_PER_MS ? refill_ns : NS_PER_MS;
    lane->outs = lane->base.outs;
    lane->ins = lane->base.ins;
    for (unsigned i = 0; i < lane->base.out_count; i++) {
        const struct message_out *out = &lane->outs[i].base;

        lane->outs[i].fd = -1;
        lane->outs[i].is_passive =
            out->use == MESSAGE_ANSWER ||
            (lane->base.schedules && out->pair != NULL && out->flow->src > out->flow->dst);
    }
    for (unsigned i = 0; i < lane->base.in_count; i++)
        lane->ins[i].fd = -1;
    for (unsigned i = 0; lane->base.forwards && i < lane->base.in_count; i++)
        if ((lane->ins[i].ring = malloc(TCP_READ_BYTES)) == NULL)
            return -ENOMEM;
    if ((lane->buffer = malloc(TCP_READ_BYTES)) == NULL)
        return -ENOMEM;
    if ((lane->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (lane->base.probe_fps > 0 && (lane->wakes = epoll_create1(EPOLL_CLOEXEC)) < 0))
        return -errno;
    lane->base.lane.wait = tcp_lane_wait;
    lane->base.lane.wake_fd =
        lane->base.pingpong != NULL || lane->base.schedules ? lane->epoll : lane->wakes;
    return 0;
}

/* Checks the partners and the options, on a socket of its own: a lane that only receives makes no
 * other here, and every rank refuses the same phase. */
static int check(struct tcp_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->base.lane.request;
    struct ip_port *ip = &lane->port->ip;
    struct sockaddr_storage partner;
    int fd, rc = 0;

    for (uint32_t i = 0; rc == 0 && i < request->send_count; i++)
        rc = ip_port_check_partner(ip, &request->sends[i].partner, request->sends[i].dst, &partner,
                                   err);
    if (rc < 0)
        return rc;
    fd = socket(ip->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, -errno, "%s: can't make a socket: %s", lane->base.label,
                       strerror(errno));
    rc = tcp_set_options(lane, fd, err);
    close(fd);
    return rc;
}

static int prepare(struct lane **made, const struct lane_request *request, struct err *err)
{
    struct transport_port *port = request->port;
    enum traffic traffic = request->phase->traffic;
    const struct message_plan plan = {
        .transport = "tcp",
        .label = port->ip.conf->name,
        .streams_key = "streams_per_flow",
        .streams = tcp_options(request->phase)->streams,
        .check_bytes = MESSAGE_CHECK_BYTES,
        .probe_fps = flow_load_probe_rate(request, PROBE_LINE_BYTES),
    };
    struct tcp_lane *lane;
    int rc;

    if (tcp_options(request->phase)->zero_copy &&
        (traffic == TRAFFIC_PINGPONG || traffic == TRAFFIC_SCHEDULE))
        return err_set(err, -EINVAL, "%s: messages of a %s are copied: leave zero_copy out",
                       plan.label, traffic == TRAFFIC_SCHEDULE ? "schedule" : "ping-pong");
    /* The key by which connections are proved is made once, from the run's, now that it is known.
     */
    if (!port->keyed)
        tcp_key_derive(port->key, request->secret);
    port->keyed = true;
    lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", plan.label);
    lane->port = port;
    lane->epoll = lane->wakes = -1;
    rc = message_lane_make(&lane->base, request, &tcp_hooks, &plan, err);
    if (rc == 0 && (rc = make_rest(lane)) < 0)
        err_set(err, rc, "%s: can't make a lane: %s", plan.label, strerror(-rc));
    if (rc == 0)
        rc = check(lane, err);
    if (rc == 0)
        rc = tcp_lane_call(lane, 0, err);
    if (rc == 0)
        *made = &lane->base.lane;
    else
        destroy(&lane->base.lane);
    return rc;
}

extern const struct transport transport_tcp;

const struct transport transport_tcp = {
    .name = "tcp",
    .capabilities =
        TRANSPORT_PINGPONG | TRANSPORT_SCHEDULES | TRANSPORT_KNOWS_END | TRANSPORT_NEEDS_IFACE,
    .options = &option_table,
    .open = tcp_port_open,
    .facts = tcp_port_facts,
    .prepare = prepare,
    .connect = tcp_lane_connect,
    .poll = tcp_lane_poll,
    .read_flow = tcp_lane_read_flow,
    .destroy = destroy,
    .close = tcp_port_close,
};
