/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport's table, its options, and a lane from prepare to destroy.
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
#include "log.h"
#include "netns.h"
#include "sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h> /* struct tcp_info is longer than the C library's */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STREAMS_MAX 256
#define PROBE_LINE_BYTES 154.0      /* a latency probe at layer 1: IPv4, with timestamps */
#define REFILL_NS (200 * NS_PER_US) /* where the line rate is not known */
/* A socket's unsent bytes are worth at most so much line: more than a sleeping worker oversleeps
 * where cores are fewer than nodes (17-21 ms were seen), so that the line never runs dry. */
#define UNSENT_NS (30 * NS_PER_MS)
#define UNSENT_LEAST 65536.0
#define UNSENT_MOST (4.0 * 1024 * 1024)
#define UNSENT_UNKNOWN_LINE (1024.0 * 1024)
#define SUSPECT_NS (1 * NS_PER_S) /* before that, nobody is worth a system call to be named */
#define CONNECT_TIMEOUT_NS (10 * NS_PER_S) /* the partner's kernel answers for it */
#define READY_TIMEOUT_NS (30 * NS_PER_S)   /* the partner itself, which may be a phase behind */
/* A partner closes a connection whose claim is late while others crowd its listener: it is called
 * again so often, first after so little, then each time after twice as long: 2.5 s in all. */
#define RECALLS_MOST 7
#define RECALL_FIRST_NS (20 * NS_PER_MS)
#define STATE_SYN_SENT 2 /* TCP_SYN_SENT of the C library's netinet/tcp.h */

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

/* --- options of a socket --- */

static int set_congestion(const struct tcp_lane *lane, int fd, const char *name, struct err *err)
{
    char available[256] = "";
    int code;

    if (name[0] == '\0' ||
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
        return 0;
    code = errno;
    (void)sysfs_line(available, sizeof available,
                     "/proc/sys/net/ipv4/tcp_available_congestion_control");
    return err_set(err, -EINVAL, "%s: congestion control `%s`: %s; available: %s", lane->base.label,
                   name,
                   code == ENOENT  ? "this kernel has no such one"
                   : code == EPERM ? "only root may use it (see tcp_allowed_congestion_control)"
                                   : strerror(code),
                   available);
}

/* What a socket may hold unsent, in bytes. */
static uint32_t unsent_most(const struct lane_request *request)
{
    double line_bps = (double)request->line_rate_bps;
    double bytes = line_bps > 0 ? line_bps / 8 * UNSENT_NS / NS_PER_S : UNSENT_UNKNOWN_LINE;

    if (bytes < UNSENT_LEAST)
        return (uint32_t)UNSENT_LEAST;
    return (uint32_t)(bytes < UNSENT_MOST ? bytes : UNSENT_MOST);
}

/* Sets all that the phase asks of a socket that sends. 0 or a refusal. */
static int set_options(const struct tcp_lane *lane, int fd, struct err *err)
{
    const struct tcp_options *tcp = tcp_options(lane->base.lane.request.phase);
    uint32_t unsent = unsent_most(&lane->base.lane.request);
    int one = 1;
    int rc = set_congestion(lane, fd, tcp->congestion, err);

    if (rc == 0)
        rc = ip_port_buffer(&lane->port->ip, fd, SO_SNDBUF, tcp->send_buffer, err);
    /* Refused here on both sides: a receiver's sockets are made by the listener, later. */
    if (rc == 0)
        rc = ip_port_buffer(&lane->port->ip, fd, SO_RCVBUF, tcp->receive_buffer, err);
    if (rc < 0)
        return rc;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (tcp->nodelay)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (tcp->zero_copy && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) != 0)
        return err_set(err, -errno, "%s: this kernel does not send without copying: %s",
                       lane->base.label, strerror(errno));
    return 0;
}

static int make_socket(const struct tcp_lane *lane, struct err *err)
{
    int fd =
        socket(lane->port->ip.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int rc;

    if (fd < 0 && errno == EMFILE)
        return err_set(err, -EMFILE,
                       "%s: this phase needs %u connections, more than the open files that this "
                       "process may have; raise `ulimit -n` or use fewer streams",
                       lane->base.label, lane->base.out_count + lane->base.in_count);
    if (fd < 0)
        return err_set(err, -errno, "%s: can't make a socket: %s", lane->base.label,
                       strerror(errno));
    rc = set_options(lane, fd, err);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

/* --- a connection is called, and proven --- */

/* A connection that is not there: returns `code`. */
static int refuse(const struct tcp_lane *lane, const struct tcp_out *out, int code, const char *why,
                  struct err *err)
{
    struct tcp_ends ends = tcp_port_ends(lane->port, out->base.flow);

    return err_set(err, code, "%s: no connection from %s to %s (rank %u): %s", lane->base.label,
                   ends.here, ends.there, out->base.flow->dst, why);
}

/* Calls a partner from the port's own address, from any free TCP port. */
static int call(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    const struct ip_port *ip = &lane->port->ip;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = lane->port};
    struct sockaddr_storage from = ip->address, to;
    int one = 1, fd = make_socket(lane, err);

    if (fd < 0)
        return fd;
    out->fd = fd;
    (void)ip_port_partner(ip, &out->base.flow->partner, &to);
    ((struct sockaddr_in *)&from)->sin_port = 0; /* IPv6's is at the same place */
    /* The port is chosen at connect, so that it need only be unique for each destination. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (!ip->loopback)
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ip->iface, (socklen_t)strlen(ip->iface));
    if (bind(fd, (const struct sockaddr *)&from, sizeof from) != 0 ||
        (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) ||
        epoll_ctl(lane->port->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return refuse(lane, out, -errno, strerror(errno), err);
    return 0;
}

/* Calls those of the partners, from `first` on, that do not call themselves. */
static int call_all(struct tcp_lane *lane, struct tcp_out *first, unsigned count, struct err *err)
{
    int home, rc = netns_enter(lane->port->ip.conf->netns, &home, err);

    if (rc < 0)
        return rc;
    for (unsigned i = 0; rc == 0 && i < count; i++)
        if (!first[i].is_passive)
            rc = call(lane, &first[i], err);
    netns_leave(home);
    return rc;
}

/* Puts a connection under the eyes of the lane's worker. `index`: of the end among those that send,
 * or behind them among those that receive. */
static int watch(struct tcp_lane *lane, int fd, uint32_t events, unsigned index, unsigned stream)
{
    bool probe = stream >= lane->base.streams && lane->base.probe_fps > 0;
    struct epoll_event event = {.events = events, .data.u32 = index};
    int one = 1;

    if (probe)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return epoll_ctl(probe ? lane->wakes : lane->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* A connection is proven. Its other direction, if it has one, has a descriptor of its own, so that
 * each can be watched, and closed, by itself. Either end may be NULL. */
static int ready(struct tcp_lane *lane, struct tcp_out *out, struct tcp_in *in)
{
    int rc = 0;

    if (out != NULL && in != NULL) {
        int fd = out->fd >= 0 ? out->fd : in->fd;
        int *other = out->fd >= 0 ? &in->fd : &out->fd;

        *other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        rc = *other < 0 ? -errno : 0;
    }
    if (rc == 0 && out != NULL) {
        out->ready = out->writable = true;
        /* Where the partner sends by this connection, too, the way back tells when it is over. */
        rc = watch(lane, out->fd, (uint32_t)EPOLLOUT | EPOLLET | (in == NULL ? EPOLLRDHUP : 0u),
                   (unsigned)(out - lane->outs), out->base.script.stream);
    }
    if (rc == 0 && in != NULL)
        rc = watch(lane, in->fd,
                   lane->base.schedules ? (uint32_t)EPOLLIN | EPOLLRDHUP | EPOLLET : EPOLLIN,
                   lane->base.out_count + (unsigned)(in - lane->ins), in->base.sink.script.stream);
    return rc;
}

/* Reads a part of the handshake of a connection out: 1 whole, 0 not yet, or a failure. */
static int read_answer(struct tcp_lane *lane, struct tcp_out *out, unsigned end, struct err *err)
{
    int rc = tcp_handshake_read(out->fd, &out->shake, &out->shaken, end);

    if (rc == -ECONNABORTED)
        return refuse(lane, out, rc,
                      "it was closed by the partner: it does not know this run's key, has not "
                      "heard from us in time, or others crowd it (its records say so)",
                      err);
    return rc < 0 ? refuse(lane, out, rc, strerror(-rc), err) : rc;
}

/* Takes a connection out as far as its partner has answered: its challenge is answered by the
 * claim, its proof ends the handshake. */
static int advance(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    const struct phase *phase = lane->base.lane.request.phase;
    int rc;

    if (out->shaken < TCP_CLAIM_END) {
        rc = read_answer(lane, out, TCP_CHALLENGE_END, err);
        if (rc <= 0)
            return rc;
        if (out->shake.greeting != htonl(TCP_MAGIC))
            return refuse(lane, out, -EPROTO, "something else listens there", err);
        out->shake.place = (struct tcp_place){.trial = htonl(phase->trial),
                                              .phase = htonl(phase->number),
                                              .src = htonl(out->base.flow->src),
                                              .dst = htonl(out->base.flow->dst),
                                              .tag = htons(phase->tag),
                                              .stream = htons(out->base.script.stream)};
        tcp_claim_make(&out->shake, lane->port->key);
        if (!tcp_handshake_send(out->fd, &out->shake, &out->shaken, TCP_CLAIM_END))
            return refuse(lane, out, -ECONNABORTED, "it broke in the handshake", err);
    }
    rc = read_answer(lane, out, TCP_PROOF_END, err);
    if (rc <= 0)
        return rc;
    if (!tcp_proof_valid(&out->shake, lane->port->key))
        return refuse(lane, out, -EPROTO, "the partner does not hold this run's key", err);
    epoll_ctl(lane->port->epoll, EPOLL_CTL_DEL, out->fd, NULL);
    rc = ready(lane, out, tcp_back(out));
    return rc < 0 ? refuse(lane, out, rc, strerror(-rc), err) : 0;
}

/* The same; where the partner has closed the connection, it is called again later. */
static int advance_or_recall(struct tcp_lane *lane, struct tcp_out *out, int64_t now_ns,
                             struct err *err)
{
    int rc = 0;

    if (out->fd < 0 && now_ns < out->recall_ns)
        return 0;
    if (out->fd < 0)
        rc = call_all(lane, out, 1, err);
    if (rc == 0)
        rc = advance(lane, out, err);
    if (rc != -ECONNABORTED || out->recalls == RECALLS_MOST)
        return rc;
    err->text[0] = '\0';
    close(out->fd); /* and epoll forgets it */
    out->fd = -1;
    out->shaken = 0;
    out->recall_ns = now_ns + (RECALL_FIRST_NS << out->recalls++);
    return 0;
}

/* A check goes on without this pair, so that all are found that can't reach each other: the
 * receiver misses the probe and names it. Why is only known here. */
static void lose(struct tcp_out *out, struct err *why)
{
    log_warning("%s", why->text);
    why->text[0] = '\0';
    if (out->fd >= 0)
        close(out->fd); /* and epoll forgets it */
    out->fd = -1;
    out->ready = true;
    message_out_ended(&out->base);
}

/* --- a connection that has come --- */

/* The place of an arrival in this lane; NULL: there is none, it is taken, or this rank calls. */
static struct tcp_in *place_of(struct tcp_lane *lane, const struct tcp_place *place)
{
    uint32_t src = ntohl(place->src);
    uint32_t flow = src < lane->base.lane.request.ranks ? lane->base.flow_of[1][src] : 0;
    struct tcp_in *in;

    if (flow == 0 || ntohs(place->stream) >= lane->base.stride)
        return NULL;
    in = &lane->ins[(flow - 1) * lane->base.stride + ntohs(place->stream)];
    if (in->base.flow->dst != ntohl(place->dst) || in->fd >= 0 || in->base.ended)
        return NULL;
    return tcp_way(in) == NULL || tcp_way(in)->is_passive ? in : NULL;
}

/* The partner has called: it is answered, and what this rank sends goes by the same connection. */
static int answer(struct tcp_lane *lane, struct tcp_in *in, struct tcp_arrival *arrival,
                  struct err *err)
{
    struct tcp_out *way = tcp_way(in);
    int rc;

    in->fd = arrival->fd;
    if (way == NULL)
        rc = ip_port_buffer(&lane->port->ip, in->fd, SO_RCVBUF,
                            tcp_options(lane->base.lane.request.phase)->receive_buffer, err);
    else
        rc = set_options(lane, in->fd, err);
    if (rc < 0)
        return rc;
    tcp_proof_make(&arrival->shake, lane->port->key);
    /* A partner that has gone shows itself again in poll. */
    (void)tcp_handshake_send(in->fd, &arrival->shake, &arrival->shaken, TCP_PROOF_END);
    rc = ready(lane, way, in);
    if (rc == 0)
        return 0;
    return err_set(err, rc, "%s: can't watch a connection: %s", lane->base.label, strerror(-rc));
}

/* The proven connections that have come for this phase. */
static int adopt_all(struct tcp_lane *lane, struct err *err)
{
    struct tcp_arrival *arrival;
    char text[IP_ADDRESS_TEXT];
    int rc = 0;

    while (rc == 0 &&
           (arrival = tcp_port_take(lane->port, lane->base.lane.request.phase)) != NULL) {
        struct tcp_in *in = place_of(lane, &arrival->shake.place);

        if (in != NULL) {
            rc = answer(lane, in, arrival, err);
        } else {
            log_warning("%s: %s claims a flow from rank %u to %u that this phase does not have",
                        lane->base.label, ip_address_text(&arrival->from, text),
                        ntohl(arrival->shake.place.src), ntohl(arrival->shake.place.dst));
            close(arrival->fd);
        }
        free(arrival);
    }
    return rc;
}

/* --- a lane connects --- */

/* How long a partner's kernel may take, and the partner itself. A check gives up all at once, a
 * little later than it is asked to: its partners begin to wait when they are ready themselves. */
static int64_t limit_of(const struct tcp_lane *lane, bool unanswered)
{
    int64_t asked_ns = lane->base.lane.request.phase->probe_timeout_ns;

    if (!message_lane_checks(&lane->base))
        return unanswered ? CONNECT_TIMEOUT_NS : READY_TIMEOUT_NS;
    if (asked_ns <= 0 || asked_ns > CONNECT_TIMEOUT_NS)
        asked_ns = CONNECT_TIMEOUT_NS;
    return asked_ns + asked_ns / 4;
}

/* A connection out is awaited: names the partner if none is named yet, or its time is up. */
static int await_out(struct tcp_lane *lane, struct tcp_out *out, int64_t waited_ns, struct err *err)
{
    struct tcp_info info;
    /* Not even the partner's kernel answers. */
    bool unanswered =
        out->shaken == 0 && tcp_info_read(out->fd, &info) && info.tcpi_state == STATE_SYN_SENT;
    bool late = waited_ns >= limit_of(lane, unanswered);

    if (late)
        err->text[0] = '\0'; /* it may name one who has longer */
    return refuse(lane, out, late ? -ETIMEDOUT : -EAGAIN,
                  unanswered ? "timed out; nothing answers there"
                             : "it is connected, but the partner is not ready for this phase",
                  err);
}

/* The same of a connection that is to come. */
static int await_in(struct tcp_lane *lane, struct tcp_in *in, int64_t waited_ns, struct err *err)
{
    struct tcp_ends ends = tcp_port_ends(lane->port, in->base.flow);

    return err_set(err, waited_ns >= limit_of(lane, false) ? -ETIMEDOUT : -EAGAIN,
                   "%s: no connection came from rank %u (%s) to %s", lane->base.label,
                   in->base.flow->src, ends.there, ends.here);
}

/* Waits for the partners that are not connected yet. 0: there are none, or a check gives them up.
 */
static int await_partners(struct tcp_lane *lane, int64_t waited_ns, struct err *err)
{
    bool suspects = waited_ns >= SUSPECT_NS || waited_ns >= limit_of(lane, true);
    int rc = 0;

    for (unsigned i = 0; rc != -ETIMEDOUT && i < lane->base.out_count; i++) {
        if (lane->outs[i].ready || lane->outs[i].is_passive)
            continue;
        rc = suspects ? await_out(lane, &lane->outs[i], waited_ns, err) : -EAGAIN;
        if (rc == -ETIMEDOUT && message_lane_checks(&lane->base)) {
            lose(&lane->outs[i], err);
            rc = 0;
        }
    }
    for (unsigned i = 0; rc != -ETIMEDOUT && i < lane->base.in_count; i++) {
        if (lane->ins[i].fd >= 0 || lane->ins[i].base.ended)
            continue;
        rc = suspects ? await_in(lane, &lane->ins[i], waited_ns, err) : -EAGAIN;
        if (rc == -ETIMEDOUT && message_lane_checks(&lane->base)) {
            err->text[0] = '\0';
            message_in_ended(&lane->ins[i].base);
            rc = 0;
        }
    }
    return rc;
}

static int connect_lane(struct lane *base, int64_t now_ns, struct err *err)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    char name[16] = "";
    socklen_t size = sizeof name;
    int rc;

    if (lane->connect_since_ns == 0)
        lane->connect_since_ns = now_ns;
    tcp_port_accept(lane->port, now_ns);
    rc = adopt_all(lane, err);
    for (unsigned i = 0; rc == 0 && i < lane->base.out_count; i++) {
        struct tcp_out *out = &lane->outs[i];

        rc = out->ready || out->is_passive ? 0 : advance_or_recall(lane, out, now_ns, err);
        /* Nothing was heard of the partner but that there is no way to it. */
        if (message_lane_checks(&lane->base) && (rc == -EHOSTUNREACH || rc == -ENETUNREACH ||
                                                 rc == -ECONNREFUSED || rc == -ETIMEDOUT)) {
            lose(out, err);
            rc = 0;
        }
    }
    if (rc == 0)
        rc = await_partners(lane, now_ns - lane->connect_since_ns, err);
    /* In the records' words: what a flow's own connection uses, which the listener need not. */
    if (rc == 0 && lane->base.out_count > 0 &&
        getsockopt(lane->outs[0].fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0)
        snprintf(base->variant, sizeof base->variant, "congestion control %.15s", name);
    return rc;
}

/* --- a lane is made, read and destroyed --- */

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
    while ((arrival = tcp_port_take(lane->port, base->request.phase)) != NULL) {
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
        refill_ns =
            (int64_t)(unsent_most(request) / 4.0 * 8 * NS_PER_S / (double)request->line_rate_bps);
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
        lane->base.prober.plays || lane->base.schedules ? lane->epoll : lane->wakes;
    return 0;
}

/* Checks the partners, and the options on a socket of its own: a lane that only receives makes no
 * other here, and every rank refuses the same phase. */
static int check(struct tcp_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->base.lane.request;
    struct sockaddr_storage partner;
    uint64_t line_bps;
    int fd, rc = 0;

    for (uint32_t i = 0; rc == 0 && i < request->send_count; i++)
        rc = ip_port_check_partner(&lane->port->ip, &request->sends[i].partner,
                                   request->sends[i].dst, &partner, &line_bps, err);
    if (rc < 0)
        return rc;
    fd = make_socket(lane, err);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
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
        .probe_fps = prober_rate(request, PROBE_LINE_BYTES),
    };
    struct tcp_lane *lane;
    int rc;

    if (tcp_options(request->phase)->zero_copy &&
        (traffic == TRAFFIC_PINGPONG || traffic == TRAFFIC_SCHEDULE))
        return err_set(err, -EINVAL, "%s: messages of a %s are copied: leave zero_copy out",
                       plan.label, traffic == TRAFFIC_SCHEDULE ? "schedule" : "ping-pong");
    tcp_key_derive(port->key, request->secret);
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
        rc = call_all(lane, lane->outs, lane->base.out_count, err);
    if (rc == 0)
        *made = &lane->base.lane;
    else
        destroy(&lane->base.lane);
    return rc;
}

static int buffer_bytes(int fd, int option)
{
    int bytes = 0;
    socklen_t size = sizeof bytes;

    getsockopt(fd, SOL_SOCKET, option, &bytes, &size);
    return bytes;
}

enum { OF_SENDER = 1, OF_RECEIVER = 2 };

/* Of the streams of a flow taken together. */
static void read_flow(struct lane *base, const struct lane_flow *flow, struct flow_reading *reading)
{
    const struct tcp_lane *lane = (const struct tcp_lane *)(void *)base;
    bool sends = flow->src == base->request.rank;
    size_t first = (size_t)(flow - (sends ? base->request.sends : base->request.receives));
    double retransmitted = 0, sent = 0, received = 0, out_of_order = 0, delivery = 0, rtt = 0;
    double least_rtt = 0, mss = 0, overhead = 0, buffer = 0;
    unsigned streams = 0;

    message_lane_read_flow(base, flow, reading);
    for (size_t i = first * lane->base.stride; i < first * lane->base.stride + lane->base.streams;
         i++) {
        int fd = sends ? lane->outs[i].fd : lane->ins[i].fd;
        struct tcp_info info;

        if (!tcp_info_read(fd, &info))
            continue;
        retransmitted += info.tcpi_total_retrans;
        sent += info.tcpi_segs_out;
        received += info.tcpi_segs_in;
        out_of_order += info.tcpi_rcv_ooopack;
        delivery += 8.0 * (double)info.tcpi_delivery_rate;
        rtt += info.tcpi_rtt;
        if (streams++ == 0 || info.tcpi_min_rtt < least_rtt)
            least_rtt = info.tcpi_min_rtt;
        mss = sends ? info.tcpi_snd_mss : info.tcpi_rcv_mss;
        overhead = tcp_segment_overhead(fd, &info);
        buffer = buffer_bytes(fd, sends ? SO_SNDBUF : SO_RCVBUF);
    }
    const struct {
        struct flow_metric metric;
        unsigned side;
    } all[] = {
        {{"retransmitted_segments", retransmitted}, OF_SENDER},
        {{"rtt_us", rtt / streams}, OF_SENDER},
        {{"min_rtt_us", least_rtt}, OF_SENDER},
        {{"segments_sent", sent}, OF_SENDER | OF_RECEIVER},
        {{"segments_received", received}, OF_SENDER | OF_RECEIVER},
        {{"out_of_order_segments", out_of_order}, OF_RECEIVER},
        {{"delivery_rate_bps", delivery}, OF_SENDER},
        {{"mss_bytes", mss}, OF_SENDER | OF_RECEIVER},
        {{"segment_overhead_bytes", overhead}, OF_SENDER | OF_RECEIVER},
        {{"send_buffer_bytes", buffer}, OF_SENDER},
        {{"receive_buffer_bytes", buffer}, OF_RECEIVER},
        {{"streams", streams}, OF_SENDER | OF_RECEIVER},
    };

    reading->metric_count = 0;
    for (size_t i = 0; streams > 0 && i < sizeof all / sizeof all[0]; i++)
        if (all[i].side & (sends ? OF_SENDER : OF_RECEIVER))
            reading->metrics[reading->metric_count++] = all[i].metric;
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
    .connect = connect_lane,
    .poll = tcp_lane_poll,
    .read_flow = read_flow,
    .destroy = destroy,
    .close = tcp_port_close,
};
