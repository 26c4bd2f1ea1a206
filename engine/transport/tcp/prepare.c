/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "lane.h"
#include "netns.h"
#include "pingpong.h"
#include "request_check.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A socket's unsent bytes are worth at most so much line: more than a sleeping worker oversleeps
 * where cores are fewer than nodes (17-21 ms were seen), so that the line never runs dry. */
#define UNSENT_NS (30 * NS_PER_MS)
#define UNSENT_LEAST 65536.0
#define UNSENT_MOST (4.0 * 1024 * 1024)
#define UNSENT_UNKNOWN_LINE (1024.0 * 1024)
#define REFILL_NS (200 * NS_PER_US) /* where the line rate is not known */

/* --- checks --- */

static int check_request(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    const char *port = request->port->ip.conf->name;
    int rc = request_check_messages(request, "tcp", err);

    if (rc < 0)
        return rc;
    if (tcp_options(phase)->streams > TCP_STREAMS_MAX)
        return err_set(err, -EINVAL, "tcp: %u streams per flow; %d are the most",
                       tcp_options(phase)->streams, TCP_STREAMS_MAX);
    if (request->ranks > PATTERN_RANKS_MAX)
        return err_set(err, -EINVAL, "tcp: %u ranks; %u are the most", request->ranks,
                       PATTERN_RANKS_MAX);
    if (phase->traffic == TRAFFIC_PINGPONG || phase->traffic == TRAFFIC_SCHEDULE) {
        bool steps = phase->traffic == TRAFFIC_SCHEDULE;

        if (tcp_options(phase)->streams > 1)
            return err_set(
                err, -EINVAL, "%s: %s goes by one stream, not %u: leave streams_per_flow out", port,
                steps ? "a step's message" : "a ping-pong message", tcp_options(phase)->streams);
        if (tcp_options(phase)->zero_copy)
            return err_set(err, -EINVAL, "%s: messages of a %s are copied: leave zero_copy out",
                           port, steps ? "schedule" : "ping-pong");
    }
    return request_check_forward(request, "tcp", port, err);
}

/* --- options of a socket --- */

static int set_congestion(const struct tcp_lane *lane, int fd, const char *name, struct err *err)
{
    char available[256] = "";
    int code;
    FILE *file;

    if (name[0] == '\0' ||
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
        return 0;
    code = errno;
    file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
    if (file) {
        if (!fgets(available, sizeof available, file))
            available[0] = '\0';
        available[strcspn(available, "\n")] = '\0';
        fclose(file);
    }
    return err_set(err, -EINVAL, "%s: congestion control `%s`: %s; available: %s",
                   lane->port->ip.conf->name, name,
                   code == ENOENT  ? "this kernel has no such one"
                   : code == EPERM ? "only root may use it (see tcp_allowed_congestion_control)"
                                   : strerror(code),
                   available);
}

static uint32_t unsent_most(const struct tcp_lane *lane)
{
    double line_bps = (double)lane->lane.request.line_rate_bps;
    double bytes = line_bps > 0 ? line_bps / 8 * UNSENT_NS / NS_PER_S : UNSENT_UNKNOWN_LINE;

    if (bytes < UNSENT_LEAST)
        return (uint32_t)UNSENT_LEAST;
    return (uint32_t)(bytes < UNSENT_MOST ? bytes : UNSENT_MOST);
}

int tcp_socket_options(const struct tcp_lane *lane, int fd, struct err *err)
{
    const struct tcp_options *tcp = tcp_options(lane->lane.request.phase);
    uint32_t unsent = unsent_most(lane);
    int one = 1;
    int rc;

    rc = set_congestion(lane, fd, tcp->congestion, err);
    if (rc == 0)
        rc = ip_port_buffer(&lane->port->ip, fd, SO_SNDBUF, tcp->send_buffer, err);
    /* Refused here on both sides: a receiver's sockets are made by the listener, later. */
    if (rc == 0)
        rc = ip_port_buffer(&lane->port->ip, fd, SO_RCVBUF, tcp->receive_buffer, err);
    if (rc)
        return rc;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (tcp->nodelay)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (tcp->zero_copy && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one))
        return err_set(err, -errno, "%s: this kernel does not send without copying: %s",
                       lane->port->ip.conf->name, strerror(errno));
    return 0;
}

/* --- connections --- */

/* Sends from the port's own address, from any free TCP port. */
static int bind_source(const struct transport_port *port, int fd)
{
    struct sockaddr_storage from = port->ip.address;
    int one = 1;

    if (from.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&from)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&from)->sin_port = 0;
    /* The port is chosen at connect, so that it need only be unique for each destination. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (!port->ip.loopback)
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, port->ip.iface,
                   (socklen_t)strlen(port->ip.iface));
    return bind(fd, (const struct sockaddr *)&from, sizeof from) ? -errno : 0;
}

static int make_socket(struct tcp_lane *lane, struct err *err)
{
    const struct transport_port *port = lane->port;
    int fd = socket(port->ip.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        return fd;
    if (errno == EMFILE)
        return err_set(err, -EMFILE,
                       "%s: this phase needs %u connections, more than the open files that this "
                       "process may have; raise `ulimit -n` or use fewer streams",
                       port->ip.conf->name, lane->out_count + lane->in_count);
    return err_set(err, -errno, "%s: can't make a socket: %s", port->ip.conf->name,
                   strerror(errno));
}

static int connect_out(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    const struct transport_port *port = lane->port;
    const struct sockaddr_storage *to = &out->flow->partner;
    int rc;

    out->fd = make_socket(lane, err);
    if (out->fd < 0)
        return out->fd;
    rc = tcp_socket_options(lane, out->fd, err);
    if (rc)
        return rc;
    rc = bind_source(port, out->fd);
    if (rc == 0 && connect(out->fd, (const struct sockaddr *)to, sizeof *to) &&
        errno != EINPROGRESS)
        rc = -errno;
    if (rc == 0)
        rc = tcp_port_watch(lane->port, out->fd);
    return rc == 0 ? 0 : tcp_refuse_out(lane, out, rc, strerror(-rc), err);
}

static int connect_all(struct tcp_lane *lane, struct err *err)
{
    int home, fd;
    int rc = netns_enter(lane->port->ip.conf->netns, &home, err);

    if (rc)
        return rc;
    /* A lane that only receives makes no socket here; its options are tried on one all the same,
     * so that every rank refuses the same phase. */
    fd = rc = make_socket(lane, err);
    if (fd >= 0) {
        rc = tcp_socket_options(lane, fd, err);
        close(fd);
    }
    for (unsigned i = 0; rc == 0 && i < lane->out_count; i++)
        if (!tcp_is_passive(&lane->outs[i]))
            rc = connect_out(lane, &lane->outs[i], err);
    netns_leave(home);
    return rc;
}

int tcp_connect_again(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    int home;
    int rc = netns_enter(lane->port->ip.conf->netns, &home, err);

    if (rc)
        return rc;
    rc = connect_out(lane, out, err);
    netns_leave(home);
    return rc;
}

/* --- the lane --- */

static void plan_sizes(struct tcp_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;

    for (uint32_t i = 0; i < phase->size_count; i++) {
        lane->sizes[i] = phase->sizes[i];
        if (tcp_lane_is_probe(lane) && lane->sizes[i] > TCP_PROBE_BYTES)
            lane->sizes[i] = TCP_PROBE_BYTES;
    }
    lane->streams = tcp_options(phase)->streams > 0 && !tcp_lane_is_probe(lane)
                        ? tcp_options(phase)->streams
                        : 1;
    lane->stride = lane->streams;
    if (tcp_probes_rate(&lane->lane.request) > 0 && lane->mode != &tcp_forward_mode)
        lane->stride++;
}

/* The script of one connection of a flow: one of its streams, or its probes. */
static struct tcp_script make_script(const struct tcp_lane *lane, const struct lane_flow *flow,
                                     unsigned stream)
{
    const struct phase *phase = lane->lane.request.phase;
    struct tcp_script script = {
        .sizes = lane->sizes,
        .size_count = phase->size_count,
        .drawn = pingpong_drawn(phase, flow),
        .total = flow_load_bytes(phase, lane->sizes, lane->streams, stream),
        .stream = (uint16_t)stream,
        .tag = phase->tag,
        .src = (uint16_t)flow->src,
        .dst = (uint16_t)flow->dst,
    };

    if (stream >= lane->streams)
        tcp_probes_script(&script);
    return script;
}

static void plan_streams(struct tcp_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;

    for (unsigned i = 0; i < lane->out_count; i++) {
        struct tcp_out *out = &lane->outs[i];

        out->flow = &lane->flows[i / lane->stride];
        out->flow->flow = &request->sends[i / lane->stride];
        out->flow->outs = &lane->outs[i - i % lane->stride];
        out->flow->open++;
        out->fd = -1;
        out->source.script = make_script(lane, out->flow->flow, i % lane->stride);
        tcp_cursor_start(&out->source.at, &out->source.script);
    }
    for (unsigned i = 0; i < lane->in_count; i++) {
        struct tcp_in *in = &lane->ins[i];

        in->flow = &request->receives[i / lane->stride];
        in->fd = -1;
        in->sink.side = in->flow->side;
        in->sink.script = make_script(lane, in->flow, i % lane->stride);
        tcp_cursor_start(&in->sink.at, &in->sink.script);
        lane->flow_from[in->flow->src] = i / lane->stride + 1;
    }
}

/* Messages of steps answer each other: by one connection they carry the acknowledgements of those
 * that came, which would be packets of their own. */
static void plan_reverse(struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->out_count; i++) {
        struct tcp_out *out = &lane->outs[i];
        uint32_t flow = lane->flow_from[out->flow->flow->dst];

        if (flow == 0)
            continue;
        out->reverse = &lane->ins[flow - 1];
        out->reverse->reverse = out;
    }
}

static int allocate(struct tcp_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;

    lane->out_count = request->send_count * lane->stride;
    lane->in_count = request->receive_count * lane->stride;
    /* One more of each: an empty list is not NULL. */
    lane->flows = calloc(request->send_count + 1, sizeof *lane->flows);
    lane->outs = calloc(lane->out_count + 1, sizeof *lane->outs);
    lane->ins = calloc(lane->in_count + 1, sizeof *lane->ins);
    lane->flow_from = calloc(PATTERN_RANKS_MAX, sizeof *lane->flow_from);
    lane->buffer = malloc(TCP_READ_BYTES);
    if (!lane->flows || !lane->outs || !lane->ins || !lane->flow_from || !lane->buffer) {
        lane->out_count = lane->in_count = 0;
        return -ENOMEM;
    }
    plan_streams(lane);
    if (lane->mode == &tcp_schedule_mode)
        plan_reverse(lane);
    lane->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (lane->epoll < 0)
        return -errno;
    return lane->mode->make != NULL ? lane->mode->make(lane) : 0;
}

static const struct tcp_mode *mode_of(const struct lane_request *request)
{
    if (request->phase->traffic == TRAFFIC_PINGPONG)
        return &tcp_pingpong_mode;
    if (request->phase->traffic == TRAFFIC_SCHEDULE)
        return &tcp_schedule_mode;
    return request_forwards(request) ? &tcp_forward_mode : &tcp_stream_mode;
}

int tcp_lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err)
{
    struct tcp_lane *l;
    int rc = check_request(request, err);

    if (rc)
        return rc;
    tcp_port_use_key(request->port, request->secret);
    l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, -ENOMEM, "%s: out of memory", request->port->ip.conf->name);
    l->lane.request = *request;
    l->port = request->port;
    l->mode = mode_of(request);
    l->epoll = -1;
    l->refill_ns = REFILL_NS;
    if (request->line_rate_bps > 0)
        l->refill_ns =
            (int64_t)(unsent_most(l) / 4.0 * 8 * NS_PER_S / (double)request->line_rate_bps);
    if (l->refill_ns > NS_PER_MS)
        l->refill_ns = NS_PER_MS;
    plan_sizes(l);
    rc = allocate(l);
    if (rc)
        err_set(err, rc, "%s: can't make a lane: %s", l->port->ip.conf->name, strerror(-rc));
    for (uint32_t i = 0; rc == 0 && i < request->send_count; i++)
        rc = ip_port_check_partner(&l->port->ip, &request->sends[i].partner, request->sends[i].dst,
                                   &l->flows[i].partner, err);
    if (rc == 0)
        rc = connect_all(l, err);
    if (rc) {
        tcp_lane_destroy(&l->lane);
        return rc;
    }
    l->lane.wake_fd = -1;
    if (l->mode->wakes)
        l->lane.wake_fd = l->epoll;
    else if (l->probes != NULL)
        l->lane.wake_fd = tcp_probes_fd(l);
    *lane = &l->lane;
    return 0;
}

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

void tcp_lane_destroy(struct lane *lane)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;

    for (unsigned i = 0; i < l->out_count; i++)
        close_now(l->outs[i].fd);
    for (unsigned i = 0; i < l->in_count; i++)
        close_now(l->ins[i].fd);
    tcp_acceptor_forget(l->port, lane->request.phase);
    if (l->mode->free != NULL)
        l->mode->free(l);
    if (l->epoll >= 0)
        close(l->epoll);
    free(l->flows);
    free(l->outs);
    free(l->ins);
    free(l->flow_from);
    free(l->buffer);
    free(l);
}
