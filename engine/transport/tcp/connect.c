/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's connections: the lane calls its flows' destinations, their ports accept (port.c), both
 * ends prove that they hold the run's key (handshake.h); and what the kernel knows of them.
 */
#include "tcp_lane.h"

#include "clock.h"
#include "log.h"
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h> /* struct tcp_info is longer than the C library's */
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
#define SUSPECT_NS (1 * NS_PER_S) /* before that, nobody is worth a system call to be named */
#define CONNECT_TIMEOUT_NS (10 * NS_PER_S) /* the partner's kernel answers for it */
#define READY_TIMEOUT_NS (30 * NS_PER_S)   /* the partner itself, which may be a phase behind */
/* A partner closes a connection whose claim is late while others crowd its listener: it is
 * called again, for so long, first after so little. */
#define RECALL_NS (3 * NS_PER_S)
#define RECALL_FIRST_NS (20 * NS_PER_MS)
#define UNANSWERED "timed out; nothing answers there"
#define UNREADY "it is connected, but the partner is not ready for this phase"
#define STATE_SYN_SENT 2 /* TCP_SYN_SENT of the C library's netinet/tcp.h */
#define FRAME_BYTES 38   /* preamble and delimiter 8, Ethernet 14, FCS 4, gap 12 */
#define TCP_HEADER 20
#define TIMESTAMPS 12       /* the option with its padding, RFC 7323 */
#define SEGMENT_BYTES 1448u /* of IPv4 at MTU 1500, with timestamps */

/* --- sentences --- */

/* Both ends of a flow's connection. */
struct ends {
    struct sockaddr_storage partner; /* family 0: it has no address */
    char here[IP_ADDRESS_TEXT], there[IP_ADDRESS_TEXT];
};

static struct ends ends_of(const struct tcp_lane *lane, const struct lane_flow *flow)
{
    struct ends ends = {0};

    (void)ip_port_partner(&lane->port->ip, &flow->partner, &ends.partner);
    ip_address_text(&lane->port->ip.address, ends.here);
    ip_address_text(&ends.partner, ends.there);
    return ends;
}

void tcp_fault(struct message_lane *base, const struct lane_flow *flow, int why)
{
    struct ends ends = ends_of((const struct tcp_lane *)(void *)base, flow);

    err_set(&base->lane.error, -EPIPE, "the connection between %s and %s (rank %u) broke: %s",
            ends.here, ends.there, flow->src == base->lane.request.rank ? flow->dst : flow->src,
            why != 0 ? strerror(why) : "the partner closed it too early");
}

/* A connection that is not there: returns `code`. */
static int refuse(const struct tcp_lane *lane, const struct tcp_out *out, int code, const char *why,
                  struct err *err)
{
    struct ends ends = ends_of(lane, out->base.flow);

    return err_set(err, code, "%s: no connection from %s to %s (rank %u): %s", lane->base.label,
                   ends.here, ends.there, out->base.flow->dst, why);
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
    if (file != NULL) {
        if (fgets(available, sizeof available, file) != NULL)
            available[strcspn(available, "\n")] = '\0';
        fclose(file);
    }
    return err_set(err, -EINVAL, "%s: congestion control `%s`: %s; available: %s", lane->base.label,
                   name,
                   code == ENOENT  ? "this kernel has no such one"
                   : code == EPERM ? "only root may use it (see tcp_allowed_congestion_control)"
                                   : strerror(code),
                   available);
}

uint32_t tcp_unsent_most(const struct lane_request *request)
{
    double line_bps = (double)request->line_rate_bps;
    double bytes = line_bps > 0 ? line_bps / 8 * UNSENT_NS / NS_PER_S : UNSENT_UNKNOWN_LINE;

    if (bytes < UNSENT_LEAST)
        return (uint32_t)UNSENT_LEAST;
    return (uint32_t)(bytes < UNSENT_MOST ? bytes : UNSENT_MOST);
}

int tcp_set_options(const struct tcp_lane *lane, int fd, struct err *err)
{
    const struct tcp_options *tcp = tcp_options(lane->base.lane.request.phase);
    uint32_t unsent = tcp_unsent_most(&lane->base.lane.request);
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

/* --- calling --- */

static int make_socket(const struct tcp_lane *lane, struct err *err)
{
    int fd =
        socket(lane->port->ip.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        return fd;
    if (errno == EMFILE)
        return err_set(err, -EMFILE,
                       "%s: this phase needs %u connections, more than the open files that this "
                       "process may have; raise `ulimit -n` or use fewer streams",
                       lane->base.label, lane->base.out_count + lane->base.in_count);
    return err_set(err, -errno, "%s: can't make a socket: %s", lane->base.label, strerror(errno));
}

/* Sends from the port's own address, from any free TCP port. */
static int bind_source(const struct ip_port *port, int fd)
{
    struct sockaddr_storage from = port->address;
    int one = 1;

    if (from.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&from)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&from)->sin_port = 0;
    /* The port is chosen at connect, so that it need only be unique for each destination. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (!port->loopback)
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, port->iface, (socklen_t)strlen(port->iface));
    return bind(fd, (const struct sockaddr *)&from, sizeof from);
}

static int call(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = lane->port};
    struct ends ends = ends_of(lane, out->base.flow);
    int rc;

    out->fd = make_socket(lane, err);
    if (out->fd < 0)
        return out->fd;
    rc = tcp_set_options(lane, out->fd, err);
    if (rc < 0)
        return rc;
    if (bind_source(&lane->port->ip, out->fd) != 0 ||
        (connect(out->fd, (const struct sockaddr *)&ends.partner, sizeof ends.partner) != 0 &&
         errno != EINPROGRESS) ||
        epoll_ctl(lane->port->epoll, EPOLL_CTL_ADD, out->fd, &event) != 0)
        return refuse(lane, out, -errno, strerror(errno), err);
    return 0;
}

static bool is_to_be_called(const struct tcp_out *out, int64_t now_ns)
{
    return out->fd < 0 && out->state < TCP_OUT_READY && !out->is_passive &&
           now_ns >= out->recall_ns;
}

int tcp_lane_call(struct tcp_lane *lane, int64_t now_ns, struct err *err)
{
    unsigned first = 0;
    int home, rc;

    while (first < lane->base.out_count && !is_to_be_called(&lane->outs[first], now_ns))
        first++;
    if (first == lane->base.out_count)
        return 0;
    rc = netns_enter(lane->port->ip.conf->netns, &home, err);
    if (rc < 0)
        return rc;
    for (unsigned i = first; rc == 0 && i < lane->base.out_count; i++)
        if (is_to_be_called(&lane->outs[i], now_ns))
            rc = call(lane, &lane->outs[i], err);
    netns_leave(home);
    return rc;
}

/* --- connections out --- */

/* Reads an answer of `size` bytes as far as it is there: 1 whole, 0 not yet, or a failure. */
static int read_answer(struct tcp_lane *lane, struct tcp_out *out, void *answer, size_t size,
                       struct err *err)
{
    ssize_t got = recv(out->fd, (uint8_t *)answer + out->answer_bytes, size - out->answer_bytes,
                       MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got < 0 && errno != ECONNRESET)
        return refuse(lane, out, -errno, strerror(errno), err);
    if (got <= 0)
        return refuse(
            lane, out, -ECONNABORTED,
            "it was closed by the partner: it does not know this run's key, has not heard "
            "from us in time, or others crowd it (its records say so)",
            err);
    out->answer_bytes += (unsigned)got;
    if (out->answer_bytes < size)
        return 0;
    out->answer_bytes = 0;
    return 1;
}

static int send_claim(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    const struct phase *phase = lane->base.lane.request.phase;
    struct tcp_place place = {
        .trial = phase->trial,
        .phase = phase->number,
        .src = out->base.flow->src,
        .dst = out->base.flow->dst,
        .tag = phase->tag,
        .stream = out->base.script.stream,
    };
    int rc = read_answer(lane, out, &out->challenge, sizeof out->challenge, err);

    if (rc <= 0)
        return rc;
    if (!tcp_challenge_valid(&out->challenge))
        return refuse(lane, out, -EPROTO, "something else listens there", err);
    tcp_claim_make(&out->claim, &place, &out->challenge, lane->port->key);
    if (send(out->fd, &out->claim, sizeof out->claim, MSG_NOSIGNAL) != (ssize_t)sizeof out->claim)
        return refuse(lane, out, -ECONNABORTED, "it broke in the handshake", err);
    out->state = TCP_OUT_PROOF;
    return 0;
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

static int ready_out(struct tcp_lane *lane, struct tcp_out *out)
{
    uint32_t events = EPOLLOUT | EPOLLET;

    out->state = TCP_OUT_READY;
    out->writable = true;
    lane->outs_ready++;
    /* Where the partner sends by this connection, too, the way back tells when it is over. */
    return watch(lane, out->fd, tcp_back(out) == NULL ? events | EPOLLRDHUP : events,
                 (unsigned)(out - lane->outs), out->base.script.stream);
}

static int ready_in(struct tcp_lane *lane, struct tcp_in *in)
{
    uint32_t events = EPOLLIN | EPOLLRDHUP;

    lane->ins_ready++;
    return watch(lane, in->fd, lane->base.schedules ? events | EPOLLET : EPOLLIN,
                 lane->base.out_count + (unsigned)(in - lane->ins), in->base.sink.script.stream);
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
    if (rc == 0 && out != NULL)
        rc = ready_out(lane, out);
    if (rc == 0 && in != NULL)
        rc = ready_in(lane, in);
    return rc;
}

static int check_proof(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    int rc = read_answer(lane, out, &out->proof, sizeof out->proof, err);

    if (rc <= 0)
        return rc;
    if (!tcp_proof_valid(&out->proof, &out->claim, &out->challenge, lane->port->key))
        return refuse(lane, out, -EPROTO, "the partner does not hold this run's key", err);
    epoll_ctl(lane->port->epoll, EPOLL_CTL_DEL, out->fd, NULL);
    rc = ready(lane, out, tcp_back(out));
    return rc < 0 ? refuse(lane, out, rc, strerror(-rc), err) : 0;
}

static void close_out(struct tcp_out *out)
{
    if (out->fd >= 0)
        close(out->fd); /* and epoll forgets it */
    out->fd = -1;
}

/* A check goes on without this pair, so that all are found that can't reach each other: the
 * receiver misses the probe and names it. Why is only known here. */
static void lose_out(struct tcp_lane *lane, struct tcp_out *out, struct err *why)
{
    log_warning("%s", why->text);
    why->text[0] = '\0';
    close_out(out);
    out->state = TCP_OUT_LOST;
    lane->outs_ready++;
    message_out_ended(&out->base);
}

/* Calls a partner that has closed it later, after a wait that doubles. False: it was closed for so
 * long that the reason must be another. */
static bool recall_later(struct tcp_out *out, int64_t now_ns)
{
    int64_t closed_ns = now_ns - out->closed_ns;

    if (out->closed_ns == 0) {
        out->closed_ns = now_ns;
        closed_ns = 0;
    }
    if (closed_ns >= RECALL_NS)
        return false;
    close_out(out);
    out->state = TCP_OUT_CHALLENGE;
    out->answer_bytes = 0;
    out->recall_ns = now_ns + (closed_ns > RECALL_FIRST_NS ? closed_ns : RECALL_FIRST_NS);
    return true;
}

static int advance_out(struct tcp_lane *lane, struct tcp_out *out, int64_t now_ns, struct err *err)
{
    int rc = 0;

    if (out->fd < 0)
        return 0;
    if (out->state == TCP_OUT_CHALLENGE)
        rc = send_claim(lane, out, err);
    if (rc == 0 && out->state == TCP_OUT_PROOF)
        rc = check_proof(lane, out, err);
    if (rc == -ECONNABORTED && recall_later(out, now_ns)) {
        err->text[0] = '\0';
        return 0;
    }
    /* Nothing was heard of the partner but that there is no way to it. */
    if (!message_lane_checks(&lane->base) ||
        (rc != -EHOSTUNREACH && rc != -ENETUNREACH && rc != -ECONNREFUSED && rc != -ETIMEDOUT))
        return rc;
    lose_out(lane, out, err);
    return 0;
}

/* --- connections in --- */

/* The place of an arrival in this lane; NULL: there is none, it is taken, or this rank calls. */
static struct tcp_in *place_of(struct tcp_lane *lane, const struct tcp_place *place)
{
    uint32_t ranks = lane->base.lane.request.ranks;
    uint32_t flow = place->src < ranks ? lane->base.flow_of[1][place->src] : 0;
    struct tcp_in *in;

    if (flow == 0 || place->stream >= lane->base.stride)
        return NULL;
    in = &lane->ins[(flow - 1) * lane->base.stride + place->stream];
    if (in->base.flow->dst != place->dst || in->fd >= 0)
        return NULL;
    return tcp_way(in) == NULL || tcp_way(in)->is_passive ? in : NULL;
}

/* The partner has called: it is answered, and what this rank sends goes by the same connection. */
static int answer(struct tcp_lane *lane, struct tcp_in *in, const struct tcp_arrival *arrival,
                  struct err *err)
{
    struct tcp_out *way = tcp_way(in);
    struct tcp_proof proof;
    int rc;

    if (in->lost) { /* given up, and it calls after all */
        in->lost = in->base.ended = in->base.sink.ended = false;
        lane->ins_ready--;
        lane->base.ins_ended--;
    }
    in->fd = arrival->fd;
    if (way == NULL)
        rc = ip_port_buffer(&lane->port->ip, in->fd, SO_RCVBUF,
                            tcp_options(lane->base.lane.request.phase)->receive_buffer, err);
    else
        rc = tcp_set_options(lane, in->fd, err);
    if (rc < 0)
        return rc;
    tcp_proof_make(&proof, &arrival->claim, &arrival->challenge, lane->port->key);
    /* A partner that has gone shows itself again in poll. */
    (void)!send(in->fd, &proof, sizeof proof, MSG_NOSIGNAL);
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
           (arrival = tcp_acceptor_take(lane->port, lane->base.lane.request.phase)) != NULL) {
        struct tcp_in *in = place_of(lane, &arrival->place);

        if (in != NULL) {
            rc = answer(lane, in, arrival, err);
        } else {
            log_warning("%s: %s claims a flow from rank %u to %u that this phase does not have",
                        lane->base.label, ip_address_text(&arrival->from, text), arrival->place.src,
                        arrival->place.dst);
            close(arrival->fd);
        }
        free(arrival);
    }
    return rc;
}

/* --- the lane --- */

static bool read_info(int fd, struct tcp_info *info)
{
    socklen_t size = sizeof *info;

    memset(info, 0, sizeof *info);
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0;
}

/* Not even the partner's kernel answers. */
static bool is_unanswered(const struct tcp_out *out)
{
    struct tcp_info info;

    return out->state == TCP_OUT_CHALLENGE && read_info(out->fd, &info) &&
           info.tcpi_state == STATE_SYN_SENT;
}

/* Names one partner that is waited for: -EAGAIN, or -ETIMEDOUT when that has lasted too long. A
 * check gives those up instead: who is connected, and who should call, has a little longer, as it
 * waits itself, or its own timeout has ended before. */
static int await_partners(struct tcp_lane *lane, int64_t waited_ns, struct err *err)
{
    bool checks = message_lane_checks(&lane->base), named = false;
    int64_t asked_ns = lane->base.lane.request.phase->probe_timeout_ns;

    if (asked_ns <= 0 || asked_ns > CONNECT_TIMEOUT_NS)
        asked_ns = CONNECT_TIMEOUT_NS;
    if (waited_ns < (checks && asked_ns < SUSPECT_NS ? asked_ns : SUSPECT_NS))
        return -EAGAIN;
    for (unsigned i = 0; i < lane->base.out_count; i++) {
        struct tcp_out *out = &lane->outs[i];
        int64_t limit_ns = checks ? asked_ns + asked_ns / 2 : READY_TIMEOUT_NS;
        bool unanswered;

        if (out->state >= TCP_OUT_READY || out->is_passive)
            continue;
        unanswered = is_unanswered(out);
        if (unanswered)
            limit_ns = checks ? asked_ns : CONNECT_TIMEOUT_NS;
        if (named && waited_ns < limit_ns)
            continue;
        named = waited_ns < limit_ns;
        if (!named)
            err->text[0] = '\0'; /* it may name one who has longer */
        (void)refuse(lane, out, -ETIMEDOUT, unanswered ? UNANSWERED : UNREADY, err);
        if (!named && !checks)
            return -ETIMEDOUT;
        if (!named)
            lose_out(lane, out, err);
    }
    for (unsigned i = 0; i < lane->base.in_count; i++) {
        struct tcp_in *in = &lane->ins[i];
        struct ends ends;

        if (in->fd >= 0 || in->lost)
            continue;
        if (checks && waited_ns >= asked_ns + asked_ns / 4) {
            in->lost = true; /* a forwarder has nothing to wait for */
            lane->ins_ready++;
            message_in_ended(&in->base);
            continue;
        }
        ends = ends_of(lane, in->base.flow);
        if (!named)
            err_set(err, -EAGAIN, "%s: no connection came from rank %u (%s) to %s",
                    lane->base.label, in->base.flow->src, ends.there, ends.here);
        named = true;
        if (!checks && waited_ns >= READY_TIMEOUT_NS)
            return -ETIMEDOUT;
    }
    return -EAGAIN;
}

static bool is_connected(const struct tcp_lane *lane)
{
    return lane->outs_ready == lane->base.out_count && lane->ins_ready == lane->base.in_count;
}

/* In the records' words: what a flow's own connection uses, which the port's listener need not. */
static void describe(struct tcp_lane *lane)
{
    struct lane *base = &lane->base.lane;
    char name[16] = "";
    socklen_t size = sizeof name;

    if (lane->base.out_count > 0 &&
        getsockopt(lane->outs[0].fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0)
        snprintf(base->variant, sizeof base->variant, "congestion control %.15s", name);
}

int tcp_lane_connect(struct lane *base, int64_t now_ns, struct err *err)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    char last[TCP_REJECTED_TEXT];
    int64_t waited_ns;
    uint64_t rejected;
    size_t length;
    int rc;

    if (lane->connect_since_ns == 0) {
        lane->connect_since_ns = now_ns;
        lane->rejected_before = tcp_port_rejected(lane->port, last);
    }
    waited_ns = now_ns - lane->connect_since_ns;
    tcp_acceptor_work(lane->port, now_ns);
    rc = adopt_all(lane, err);
    if (rc == 0 && lane->outs_ready < lane->base.out_count)
        rc = tcp_lane_call(lane, now_ns, err);
    for (unsigned i = 0; rc == 0 && i < lane->base.out_count; i++)
        if (lane->outs[i].state < TCP_OUT_READY)
            rc = advance_out(lane, &lane->outs[i], now_ns, err);
    if (rc == 0 && !is_connected(lane))
        rc = await_partners(lane, waited_ns, err);
    if ((rc == 0 || rc == -EAGAIN) && is_connected(lane)) {
        describe(lane);
        return 0;
    }
    if (rc != -EAGAIN && rc != -ETIMEDOUT)
        return rc;
    /* The lane may wait because of others that keep its partner away. */
    rejected = tcp_port_rejected(lane->port, last) - lane->rejected_before;
    length = strlen(err->text);
    if (rejected > 0 && length > 0)
        snprintf(err->text + length, sizeof err->text - length,
                 "; meanwhile %llu connections without this run's key were dropped here, the last "
                 "from %s",
                 (unsigned long long)rejected, last);
    return rc;
}

/* --- what the kernel knows of a connection --- */

/* Layer-1 bytes of a full segment beside its payload. */
static double segment_overhead(int fd, const struct tcp_info *info)
{
    int domain = AF_INET;
    socklen_t size = sizeof domain;

    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return FRAME_BYTES + (domain == AF_INET6 ? 40 : 20) + TCP_HEADER +
           (info->tcpi_options & TCPI_OPT_TIMESTAMPS ? TIMESTAMPS : 0);
}

double tcp_payload_share(int fd, uint32_t *segment)
{
    struct tcp_info info;

    *segment = SEGMENT_BYTES;
    if (!read_info(fd, &info) || info.tcpi_snd_mss == 0)
        return SEGMENT_BYTES / 1538.0;
    *segment = info.tcpi_snd_mss;
    return info.tcpi_snd_mss / (info.tcpi_snd_mss + segment_overhead(fd, &info));
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
void tcp_lane_read_flow(struct lane *base, const struct lane_flow *flow,
                        struct flow_reading *reading)
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

        if (!read_info(fd, &info))
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
        overhead = segment_overhead(fd, &info);
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
