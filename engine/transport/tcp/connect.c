/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's connections: the lane calls its flows' destinations, their ports accept (port.c), both
 * ends prove that they hold the run's key (handshake.h).
 */
#include "clock.h"
#include "lane.h"
#include "log.h"
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
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
#define SUSPECT_NS (1 * NS_PER_S) /* before that, nobody is worth a system call to be named */
#define CONNECT_TIMEOUT_NS (10 * NS_PER_S) /* the partner's kernel answers for it */
#define READY_TIMEOUT_NS (30 * NS_PER_S)   /* the partner itself, which may be a phase behind */
/* A partner closes a connection whose claim is late while others crowd its listener: it is
 * called again, for so long, first after so little. */
#define RECALL_NS (3 * NS_PER_S)
#define RECALL_FIRST_NS (20 * NS_PER_MS)
#define UNANSWERED "timed out; nothing answers there"

/* --- sentences --- */

/* The address of the other end of a flow; family 0: it has none. */
static struct sockaddr_storage partner_of(const struct tcp_lane *lane, const struct lane_flow *flow)
{
    struct sockaddr_storage partner = {0};

    (void)ip_port_partner(&lane->port->ip, &flow->partner, &partner);
    return partner;
}

void tcp_fault(struct message_lane *base, const struct lane_flow *flow, int why)
{
    const struct tcp_lane *lane = (const struct tcp_lane *)(void *)base;
    struct sockaddr_storage partner = partner_of(lane, flow);
    char here[IP_ADDRESS_TEXT], there[IP_ADDRESS_TEXT];

    err_set(&base->lane.error, -EPIPE, "the connection between %s and %s (rank %u) broke: %s",
            ip_address_text(&lane->port->ip.address, here), ip_address_text(&partner, there),
            flow->src == base->lane.request.rank ? flow->dst : flow->src,
            why ? strerror(why) : "the partner closed it too early");
}

/* A connection that is not there: returns `code`. */
static int refuse_out(const struct tcp_lane *lane, const struct tcp_out *out, int code,
                      const char *why, struct err *err)
{
    struct sockaddr_storage partner = partner_of(lane, out->base.flow);
    char from[IP_ADDRESS_TEXT], to[IP_ADDRESS_TEXT];

    return err_set(err, code, "%s: no connection from %s to %s (rank %u): %s", lane->base.label,
                   ip_address_text(&lane->port->ip.address, from), ip_address_text(&partner, to),
                   out->base.flow->dst, why);
}

static int refuse_in(const struct tcp_lane *lane, const struct tcp_in *in, int code,
                     struct err *err)
{
    struct sockaddr_storage partner = partner_of(lane, in->base.flow);
    char from[IP_ADDRESS_TEXT], to[IP_ADDRESS_TEXT];

    return err_set(err, code, "%s: no connection came from rank %u (%s) to %s", lane->base.label,
                   in->base.flow->src, ip_address_text(&partner, from),
                   ip_address_text(&lane->port->ip.address, to));
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

/* All that the phase asks of a socket that sends. */
static int set_options(const struct tcp_lane *lane, int fd, struct err *err)
{
    const struct tcp_options *tcp = tcp_options(lane->base.lane.request.phase);
    uint32_t unsent = tcp_unsent_most(&lane->base.lane.request);
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
                       lane->base.label, strerror(errno));
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
                       lane->base.label, lane->base.out_count + lane->base.in_count);
    return err_set(err, -errno, "%s: can't make a socket: %s", lane->base.label, strerror(errno));
}

static int connect_out(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    const struct transport_port *port = lane->port;
    struct sockaddr_storage to = partner_of(lane, out->base.flow);
    int rc;

    out->fd = make_socket(lane, err);
    if (out->fd < 0)
        return out->fd;
    rc = set_options(lane, out->fd, err);
    if (rc)
        return rc;
    rc = bind_source(port, out->fd);
    if (rc == 0 && connect(out->fd, (const struct sockaddr *)&to, sizeof to) &&
        errno != EINPROGRESS)
        rc = -errno;
    if (rc == 0)
        rc = tcp_port_watch(lane->port, out->fd);
    return rc == 0 ? 0 : refuse_out(lane, out, rc, strerror(-rc), err);
}

int tcp_lane_call(struct tcp_lane *lane, struct err *err)
{
    int home, fd;
    int rc = netns_enter(lane->port->ip.conf->netns, &home, err);

    if (rc)
        return rc;
    /* A lane that only receives makes no socket here; its options are tried on one all the same,
     * so that every rank refuses the same phase. */
    fd = rc = make_socket(lane, err);
    if (fd >= 0) {
        rc = set_options(lane, fd, err);
        close(fd);
    }
    for (unsigned i = 0; rc == 0 && i < lane->base.out_count; i++)
        if (!lane->outs[i].is_passive)
            rc = connect_out(lane, &lane->outs[i], err);
    netns_leave(home);
    return rc;
}

/* Calls a partner again that has closed the connection in the handshake. */
static int connect_again(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    int home;
    int rc = netns_enter(lane->port->ip.conf->netns, &home, err);

    if (rc)
        return rc;
    rc = connect_out(lane, out, err);
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
        return refuse_out(lane, out, -errno, strerror(errno), err);
    if (got <= 0)
        return refuse_out(
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
        return refuse_out(lane, out, -EPROTO, "something else listens there", err);
    tcp_claim_make(&out->claim, &place, &out->challenge, lane->port->key);
    if (send(out->fd, &out->claim, sizeof out->claim, MSG_NOSIGNAL) != (ssize_t)sizeof out->claim)
        return refuse_out(lane, out, -ECONNABORTED, "it broke in the handshake", err);
    out->state = TCP_OUT_PROOF;
    return 0;
}

/* `index`: of the end among those that send, or behind them among those that receive. */
static int watch(struct tcp_lane *lane, int fd, uint32_t events, unsigned index, bool probe)
{
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
                 (unsigned)(out - lane->outs), tcp_is_probe(lane, &out->base.script));
}

static int ready_in(struct tcp_lane *lane, struct tcp_in *in)
{
    lane->ins_ready++;
    return watch(lane, in->fd, lane->base.schedules ? EPOLLIN | EPOLLET : EPOLLIN,
                 lane->base.out_count + (unsigned)(in - lane->ins),
                 tcp_is_probe(lane, &in->base.sink.script));
}

/* The same connection's other direction has a descriptor of its own, so that each can be watched,
 * and closed, by itself. */
static int share(int fd, int *other)
{
    *other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *other < 0 ? -errno : 0;
}

static int check_proof(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    int rc = read_answer(lane, out, &out->proof, sizeof out->proof, err);

    if (rc <= 0)
        return rc;
    if (!tcp_proof_valid(&out->proof, &out->claim, &out->challenge, lane->port->key))
        return refuse_out(lane, out, -EPROTO, "the partner does not hold this run's key", err);
    tcp_port_forget(lane->port, out->fd);
    rc = ready_out(lane, out);
    if (rc == 0 && tcp_back(out) != NULL)
        rc = share(out->fd, &tcp_back(out)->fd);
    if (rc == 0 && tcp_back(out) != NULL)
        rc = ready_in(lane, tcp_back(out));
    return rc ? refuse_out(lane, out, rc, strerror(-rc), err) : 0;
}

static void close_out(struct tcp_lane *lane, struct tcp_out *out)
{
    if (out->fd < 0)
        return;
    tcp_port_forget(lane->port, out->fd);
    close(out->fd);
    out->fd = -1;
}

/* A probe goes on without this pair, so that all are found that can't reach each other: the
 * receiver misses the probe and names it. Why is only known here. */
static void lose_out(struct tcp_lane *lane, struct tcp_out *out, struct err *why)
{
    log_warning("%s", why->text);
    why->text[0] = '\0';
    close_out(lane, out);
    out->state = TCP_OUT_LOST;
    lane->outs_ready++;
    message_out_ended(&out->base);
}

/* False: it was closed for so long that the reason must be another. */
static bool recall_later(struct tcp_lane *lane, struct tcp_out *out, int64_t now_ns)
{
    if (out->closed_ns == 0) {
        out->closed_ns = now_ns;
        out->recall_gap_ns = RECALL_FIRST_NS;
    }
    if (now_ns - out->closed_ns >= RECALL_NS)
        return false;
    close_out(lane, out);
    out->state = TCP_OUT_CHALLENGE;
    out->answer_bytes = 0;
    out->recall_ns = now_ns + out->recall_gap_ns;
    out->recall_gap_ns *= 2;
    return true;
}

static int advance_out(struct tcp_lane *lane, struct tcp_out *out, int64_t now_ns, struct err *err)
{
    int rc = 0;

    if (out->is_passive)
        return 0;
    if (out->state < TCP_OUT_READY && out->fd < 0) {
        if (now_ns < out->recall_ns)
            return 0;
        rc = connect_again(lane, out, err);
    }
    if (rc == 0 && out->state == TCP_OUT_CHALLENGE)
        rc = send_claim(lane, out, err);
    if (rc == 0 && out->state == TCP_OUT_PROOF)
        rc = check_proof(lane, out, err);
    if (rc == -ECONNABORTED && recall_later(lane, out, now_ns)) {
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
    uint32_t flow =
        place->src < lane->base.lane.request.ranks ? lane->base.flow_of[1][place->src] : 0;
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
    struct tcp_proof proof;
    int rc;

    if (tcp_way(in) == NULL)
        rc = ip_port_buffer(&lane->port->ip, in->fd, SO_RCVBUF,
                            tcp_options(lane->base.lane.request.phase)->receive_buffer, err);
    else
        rc = set_options(lane, in->fd, err);
    if (rc)
        return rc;
    tcp_proof_make(&proof, &arrival->claim, &arrival->challenge, lane->port->key);
    /* A partner that has gone shows itself again in poll. */
    (void)!send(in->fd, &proof, sizeof proof, MSG_NOSIGNAL);
    rc = ready_in(lane, in);
    if (rc == 0 && tcp_way(in) != NULL)
        rc = share(in->fd, &tcp_way(in)->fd);
    if (rc == 0 && tcp_way(in) != NULL)
        rc = ready_out(lane, tcp_way(in));
    return rc ? err_set(err, rc, "%s: can't watch a connection: %s", lane->base.label,
                        strerror(-rc))
              : 0;
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

        if (in == NULL) {
            log_warning("%s: %s claims a flow from rank %u to %u that this phase does not have",
                        lane->base.label, ip_address_text(&arrival->from, text), arrival->place.src,
                        arrival->place.dst);
            close(arrival->fd);
        } else {
            if (in->lost) { /* given up, and it calls after all */
                in->lost = in->base.ended = in->base.sink.ended = false;
                lane->ins_ready--;
                lane->base.ins_ended--;
            }
            in->fd = arrival->fd;
            rc = answer(lane, in, arrival, err);
        }
        free(arrival);
    }
    return rc;
}

/* --- the lane --- */

/* Not even the partner's kernel answers. */
static bool is_unanswered(const struct tcp_out *out)
{
    return out->state == TCP_OUT_CHALLENGE && out->fd >= 0 && tcp_connecting(out->fd);
}

/* One sentence about the partner that is waited for, those that this lane calls first; -ETIMEDOUT
 * when that has lasted too long, else -EAGAIN. */
static int await_partner(const struct tcp_lane *lane, int64_t waited_ns, struct err *err)
{
    int unconnected = waited_ns >= CONNECT_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;
    int unready = waited_ns >= READY_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;

    for (unsigned i = 0; i < lane->base.out_count; i++)
        if (is_unanswered(&lane->outs[i]))
            return refuse_out(lane, &lane->outs[i], unconnected, UNANSWERED, err);
    for (unsigned i = 0; i < lane->base.out_count; i++)
        if (lane->outs[i].state < TCP_OUT_READY && !lane->outs[i].is_passive)
            return refuse_out(lane, &lane->outs[i], unready,
                              "it is connected, but the partner is not ready for this phase", err);
    for (unsigned i = 0; i < lane->base.in_count; i++)
        if (lane->ins[i].fd < 0 && !lane->ins[i].lost)
            return refuse_in(lane, &lane->ins[i], unready, err);
    return -EAGAIN;
}

/* Probes only: gives up partners that do not answer, or did not call. The latter have a little
 * longer: their own timeout has ended before. A probe is a trial's first phase, so no partner is a
 * phase behind. */
static void lose_late(struct tcp_lane *lane, int64_t waited_ns)
{
    int64_t asked_ns = lane->base.lane.request.phase->probe_timeout_ns;
    /* No longer than await_partner waits, which would fail the trial for one of them. */
    int64_t limit_ns =
        asked_ns > 0 && asked_ns < CONNECT_TIMEOUT_NS ? asked_ns : CONNECT_TIMEOUT_NS;
    struct err why = {0};

    for (unsigned i = 0; waited_ns >= limit_ns && i < lane->base.out_count; i++) {
        struct tcp_out *out = &lane->outs[i];
        bool unanswered = is_unanswered(out);

        /* A partner that is connected waits itself, for our call. */
        if (out->state >= TCP_OUT_READY || (!unanswered && waited_ns < limit_ns + limit_ns / 2))
            continue;
        (void)refuse_out(lane, out, -ETIMEDOUT,
                         unanswered ? UNANSWERED
                                    : "timed out; it is connected, but the partner does not "
                                      "answer",
                         &why);
        lose_out(lane, out, &why);
    }
    for (unsigned i = 0; waited_ns >= limit_ns + limit_ns / 4 && i < lane->base.in_count; i++) {
        struct tcp_in *in = &lane->ins[i];

        if (in->fd >= 0 || in->lost)
            continue;
        in->lost = true; /* a forwarder has nothing to wait for */
        lane->ins_ready++;
        message_in_ended(&in->base);
    }
}

static bool is_connected(const struct tcp_lane *lane)
{
    return lane->outs_ready == lane->base.out_count && lane->ins_ready == lane->base.in_count;
}

/* In the records' words: what a flow's own connection uses, which the port's listener need not. */
static void describe(struct tcp_lane *lane)
{
    char name[sizeof tcp_options(lane->base.lane.request.phase)->congestion] = "";
    socklen_t size = sizeof name;

    if (lane->base.out_count > 0 &&
        getsockopt(lane->outs[0].fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0)
        snprintf(lane->base.lane.variant, sizeof lane->base.lane.variant,
                 "congestion control %.15s", name);
}

int tcp_lane_connect(struct lane *lane, int64_t now_ns, struct err *err)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;
    char last[TCP_REJECTED_TEXT];
    int64_t waited_ns;
    uint64_t rejected;
    size_t length;
    int rc;

    if (l->connect_since_ns == 0) {
        l->connect_since_ns = now_ns;
        l->rejected_before = tcp_port_rejected(l->port, last, sizeof last);
    }
    waited_ns = now_ns - l->connect_since_ns;
    tcp_acceptor_work(l->port, now_ns);
    rc = adopt_all(l, err);
    for (unsigned i = 0; rc == 0 && l->outs_ready < l->base.out_count && i < l->base.out_count; i++)
        rc = advance_out(l, &l->outs[i], now_ns, err);
    if (rc == 0 && message_lane_checks(&l->base))
        lose_late(l, waited_ns);
    if (rc == 0 && is_connected(l))
        describe(l);
    if (rc || is_connected(l))
        return rc;
    if (waited_ns < SUSPECT_NS)
        return -EAGAIN;
    rc = await_partner(l, waited_ns, err);
    /* The lane may wait because of others that keep its partner away. */
    rejected = tcp_port_rejected(l->port, last, sizeof last) - l->rejected_before;
    length = strlen(err->text);
    if (rejected > 0)
        snprintf(err->text + length, sizeof err->text - length,
                 "; meanwhile %llu connections without this run's key were dropped here, the last "
                 "from %s",
                 (unsigned long long)rejected, last);
    return rc;
}
