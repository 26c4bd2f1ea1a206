/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "lane.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SUSPECT_NS (1 * NS_PER_S) /* before that, nobody is worth a system call to be named */
#define CONNECT_TIMEOUT_NS (10 * NS_PER_S) /* the partner's kernel answers for it */
#define SETTLE_TIMEOUT_NS (30 * NS_PER_S)  /* the partner itself, which may be a phase behind */
/* A partner closes a connection whose claim is late while others crowd its listener: it is
 * called again, for so long, first after so little. */
#define RECALL_NS (3 * NS_PER_S)
#define RECALL_FIRST_NS (20 * NS_PER_MS)

/* --- connections out --- */

static int refuse_out(const struct tcp_lane *lane, const struct tcp_out *out, int code,
                      const char *why, struct err *err)
{
    const struct transport_port *port = lane->port;
    char from[IP_ADDRESS_TEXT];
    char to[IP_ADDRESS_TEXT];

    return err_set(err, code, "%s: no connection from %s to %s (rank %u): %s", port->ip.conf->name,
                   ip_address_text(&port->ip.address, from),
                   ip_address_text(&out->flow->partner, to), out->flow->flow->dst, why);
}

/* Reads an answer of `size` bytes as far as it is there: 1 whole, 0 not yet, or a failure. */
static int read_answer(struct tcp_lane *lane, struct tcp_out *out, size_t size, struct err *err)
{
    ssize_t got = recv(out->fd, out->answer.bytes + out->answer_bytes, size - out->answer_bytes,
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

static int answer_challenge(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    struct tcp_place place = {
        .trial = phase->trial,
        .phase = phase->number,
        .src = out->flow->flow->src,
        .dst = out->flow->flow->dst,
        .tag = phase->tag,
        .stream = out->source.script.stream,
    };
    int rc = read_answer(lane, out, sizeof out->answer.challenge, err);

    if (rc <= 0)
        return rc;
    out->challenge = out->answer.challenge;
    if (!tcp_challenge_valid(&out->challenge))
        return refuse_out(lane, out, -EPROTO, "something else listens there", err);
    tcp_claim_make(&out->claim, &place, &out->challenge, lane->port->key);
    if (send(out->fd, &out->claim, sizeof out->claim, MSG_NOSIGNAL) != (ssize_t)sizeof out->claim)
        return refuse_out(lane, out, -ECONNABORTED, "it broke in the handshake", err);
    out->state = TCP_OUT_PROOF;
    return 0;
}

static int watch(struct tcp_lane *lane, int fd, uint32_t events, unsigned index)
{
    struct epoll_event event = {.events = events, .data.u32 = index};
    unsigned place = index < lane->out_count ? index : index - lane->out_count;

    if (tcp_is_probe(lane, place))
        return tcp_probes_watch(lane, fd, index);
    return epoll_ctl(lane->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* What is to be heard of a connection out. */
static uint32_t out_events(const struct tcp_lane *lane, const struct tcp_out *out)
{
    /* What comes by one that has a way back says there when it is over. */
    uint32_t more = lane->pingpong != NULL ? EPOLLIN : 0u;

    return EPOLLOUT | EPOLLET | (out->twin == NULL ? (uint32_t)EPOLLRDHUP : 0u) | more;
}

/* What is to be heard of a connection in. */
static uint32_t in_events(const struct tcp_lane *lane)
{
    if (lane->pingpong != NULL)
        return EPOLLIN | EPOLLOUT | EPOLLET;
    return lane->steps != NULL ? EPOLLIN | EPOLLET : EPOLLIN;
}

static int ready_out(struct tcp_lane *lane, struct tcp_out *out)
{
    out->state = TCP_OUT_READY;
    out->writable = true;
    lane->outs_ready++;
    return watch(lane, out->fd, out_events(lane, out), (unsigned)(out - lane->outs));
}

static int ready_in(struct tcp_lane *lane, struct tcp_in *in)
{
    lane->ins_ready++;
    return watch(lane, in->fd, in_events(lane), lane->out_count + (unsigned)(in - lane->ins));
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
    int rc = read_answer(lane, out, sizeof out->answer.proof, err);

    if (rc <= 0)
        return rc;
    if (!tcp_proof_valid(&out->answer.proof, &out->claim, &out->challenge, lane->port->key))
        return refuse_out(lane, out, -EPROTO, "the partner does not hold this run's key", err);
    tcp_port_forget(lane->port, out->fd);
    rc = ready_out(lane, out);
    if (rc == 0 && out->twin != NULL)
        rc = share(out->fd, &out->twin->fd);
    if (rc == 0 && out->twin != NULL)
        rc = ready_in(lane, out->twin);
    return rc ? refuse_out(lane, out, rc, strerror(-rc), err) : 0;
}

/* Nothing was heard of the partner but that there is no way to it. */
static bool is_unreachable(int code)
{
    return code == -EHOSTUNREACH || code == -ENETUNREACH || code == -ECONNREFUSED ||
           code == -ETIMEDOUT;
}

static bool is_probe(const struct tcp_lane *lane)
{
    return lane->lane.request.phase->traffic == TRAFFIC_PROBE;
}

/* A probe goes on without this pair, so that all are found that can't reach each other: the
 * receiver misses the probe and names it. Why is only known here. */
static void lose_out(struct tcp_lane *lane, struct tcp_out *out, struct err *why)
{
    log_warning("%s", why->text);
    why->text[0] = '\0';
    if (out->fd >= 0) {
        tcp_port_forget(lane->port, out->fd);
        close(out->fd);
        out->fd = -1;
    }
    out->state = TCP_OUT_LOST;
    out->ended = true;
    out->flow->open--;
    lane->outs_ready++;
    lane->outs_ended++;
}

/* False: it was closed for so long that the reason must be another. */
static bool hang_up(struct tcp_lane *lane, struct tcp_out *out, int64_t now_ns)
{
    if (out->closed_ns == 0) {
        out->closed_ns = now_ns;
        out->recall_gap_ns = RECALL_FIRST_NS;
    }
    if (now_ns - out->closed_ns >= RECALL_NS)
        return false;
    tcp_port_forget(lane->port, out->fd);
    close(out->fd);
    out->fd = -1;
    out->state = TCP_OUT_CHALLENGE;
    out->answer_bytes = 0;
    out->recall_ns = now_ns + out->recall_gap_ns;
    out->recall_gap_ns *= 2;
    return true;
}

static int advance_out(struct tcp_lane *lane, struct tcp_out *out, int64_t now_ns, struct err *err)
{
    int rc = 0;

    if (tcp_is_called(out))
        return 0;
    if (out->state < TCP_OUT_READY && out->fd < 0) {
        if (now_ns < out->recall_ns)
            return 0;
        rc = tcp_connect_again(lane, out, err);
    }
    if (rc == 0 && out->state == TCP_OUT_CHALLENGE)
        rc = answer_challenge(lane, out, err);
    if (rc == 0 && out->state == TCP_OUT_PROOF)
        rc = check_proof(lane, out, err);
    if (rc == -ECONNABORTED && hang_up(lane, out, now_ns)) {
        err->text[0] = '\0';
        return 0;
    }
    if (!is_probe(lane) || !is_unreachable(rc))
        return rc;
    lose_out(lane, out, err);
    return 0;
}

/* --- connections in --- */

/* A probe's that had been given up calls after all. */
static void find_again(struct tcp_lane *lane, struct tcp_in *in)
{
    in->lost = false;
    in->sink.ended = false;
    lane->ins_ready--;
    lane->ins_whole--;
}

/* This rank makes the connection that it is to come by. */
static bool calls(const struct tcp_in *in)
{
    return in->twin != NULL && !tcp_is_called(in->twin);
}

/* The place of an arrival in this lane; NULL: there is none, or it is taken. */
static struct tcp_in *place_of(struct tcp_lane *lane, const struct tcp_place *place)
{
    if (place->stream >= lane->stride)
        return NULL;
    for (unsigned i = place->stream; i < lane->in_count; i += lane->stride) {
        struct tcp_in *in = &lane->ins[i];

        if (in->flow->src == place->src && in->flow->dst == place->dst)
            return in->fd < 0 && !calls(in) ? in : NULL;
    }
    return NULL;
}

/* The partner has called: it is answered, and what this rank sends goes by the same connection. */
static int answer(struct tcp_lane *lane, struct tcp_in *in, const struct tcp_arrival *arrival,
                  struct err *err)
{
    struct tcp_proof proof;
    int rc;

    if (in->twin == NULL)
        rc = ip_port_buffer(&lane->port->ip, in->fd, SO_RCVBUF,
                            lane->lane.request.phase->tcp.receive_buffer, err);
    else
        rc = tcp_socket_options(lane, in->fd, err);
    if (rc)
        return rc;
    tcp_proof_make(&proof, &arrival->claim, &arrival->challenge, lane->port->key);
    /* A partner that has gone shows itself again in poll. */
    (void)!send(in->fd, &proof, sizeof proof, MSG_NOSIGNAL);
    rc = ready_in(lane, in);
    if (rc == 0 && in->twin != NULL)
        rc = share(in->fd, &in->twin->fd);
    if (rc == 0 && in->twin != NULL)
        rc = ready_out(lane, in->twin);
    return rc ? err_set(err, rc, "%s: can't watch a connection: %s", lane->port->ip.conf->name,
                        strerror(-rc))
              : 0;
}

static int adopt(struct tcp_lane *lane, struct tcp_arrival *arrival, struct err *err)
{
    struct tcp_in *in = place_of(lane, &arrival->place);
    char text[IP_ADDRESS_TEXT];

    if (!in) {
        log_warning("%s: %s claims a flow from rank %u to %u that this phase does not have",
                    lane->port->ip.conf->name, ip_address_text(&arrival->from, text),
                    arrival->place.src, arrival->place.dst);
        close(arrival->fd);
        return 0;
    }
    if (in->lost)
        find_again(lane, in);
    in->fd = arrival->fd;
    return answer(lane, in, arrival, err);
}

static int adopt_all(struct tcp_lane *lane, struct err *err)
{
    struct tcp_arrival *arrival;
    int rc = 0;

    while (rc == 0 &&
           (arrival = tcp_reception_take(lane->port, lane->lane.request.phase)) != NULL) {
        rc = adopt(lane, arrival, err);
        free(arrival);
    }
    return rc;
}

/* --- the lane --- */

static int time_out(const struct tcp_lane *lane, const struct tcp_out *out, int code,
                    struct err *err)
{
    return refuse_out(lane, out, code, "timed out; nothing answers there", err);
}

static bool is_unanswered(const struct tcp_out *out)
{
    return out->state == TCP_OUT_CHALLENGE && out->fd >= 0 && tcp_connecting(out->fd);
}

static int miss_in(const struct tcp_lane *lane, const struct tcp_in *in, int code, struct err *err)
{
    struct sockaddr_storage partner;
    char from[IP_ADDRESS_TEXT] = "?";
    char to[IP_ADDRESS_TEXT];

    if (ip_port_partner(&lane->port->ip, &in->flow->partner, &partner))
        ip_address_text(&partner, from);
    return err_set(err, code, "%s: no connection came from rank %u (%s) to %s",
                   lane->port->ip.conf->name, in->flow->src, from,
                   ip_address_text(&lane->port->ip.address, to));
}

/* One sentence about whoever is waited for, those that this lane calls first; -ETIMEDOUT when that
 * has lasted too long, else -EAGAIN. */
static int await_partner(const struct tcp_lane *lane, int64_t waited_ns, struct err *err)
{
    int unconnected = waited_ns >= CONNECT_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;
    int unready = waited_ns >= SETTLE_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;

    for (unsigned i = 0; i < lane->out_count; i++)
        if (is_unanswered(&lane->outs[i]))
            return time_out(lane, &lane->outs[i], unconnected, err);
    for (unsigned i = 0; i < lane->out_count; i++)
        if (lane->outs[i].state < TCP_OUT_READY && !tcp_is_called(&lane->outs[i]))
            return refuse_out(lane, &lane->outs[i], unready,
                              "it is connected, but the partner is not ready for this phase", err);
    for (unsigned i = 0; i < lane->in_count; i++)
        if (lane->ins[i].fd < 0 && !lane->ins[i].lost)
            return miss_in(lane, &lane->ins[i], unready, err);
    return -EAGAIN;
}

/* Not even the partner's kernel answers; or the partner itself does not, for longer than it waits
 * for our call. */
static bool is_late(const struct tcp_out *out, int64_t waited_ns, int64_t limit_ns)
{
    if (out->state >= TCP_OUT_READY)
        return false;
    return waited_ns >= limit_ns + limit_ns / 2 || is_unanswered(out);
}

/* Probes only: gives up those who do not answer, or did not call. These had a little longer: their
 * own patience has ended before. A probe is a trial's first phase, so nobody is a phase behind. */
static void lose_late(struct tcp_lane *lane, int64_t waited_ns)
{
    int64_t asked_ns = lane->lane.request.phase->probe_patience_ns;
    /* No longer than await_partner waits, which would fail the trial for one of them. */
    int64_t limit_ns =
        asked_ns > 0 && asked_ns < CONNECT_TIMEOUT_NS ? asked_ns : CONNECT_TIMEOUT_NS;
    struct err why = {0};

    for (unsigned i = 0; waited_ns >= limit_ns && i < lane->out_count; i++) {
        struct tcp_out *out = &lane->outs[i];

        if (!is_late(out, waited_ns, limit_ns))
            continue;
        (void)(is_unanswered(out) ? time_out(lane, out, -ETIMEDOUT, &why)
                                  : refuse_out(lane, out, -ETIMEDOUT,
                                               "timed out; it is connected, "
                                               "but the partner does not answer",
                                               &why));
        lose_out(lane, out, &why);
    }
    for (unsigned i = 0; waited_ns >= limit_ns + limit_ns / 4 && i < lane->in_count; i++) {
        struct tcp_in *in = &lane->ins[i];

        if (in->fd >= 0 || in->lost)
            continue;
        in->lost = true;
        in->sink.ended = true; /* a relay has nothing to wait for */
        lane->ins_ready++;
        lane->ins_whole++;
    }
}

/* Who waits here for a partner may wait because of others who keep it away. */
static void mention_rejected(const struct tcp_lane *lane, struct err *err)
{
    char last[TCP_REJECTED_TEXT];
    uint64_t count = tcp_port_rejected(lane->port, last, sizeof last) - lane->rejected_before;
    size_t length = strlen(err->text);

    if (count > 0)
        snprintf(err->text + length, sizeof err->text - length,
                 "; meanwhile %llu connections without this run's key were dropped here, the last "
                 "from %s",
                 (unsigned long long)count, last);
}

static bool is_settled(const struct tcp_lane *lane)
{
    return lane->outs_ready == lane->out_count && lane->ins_ready == lane->in_count;
}

/* In the records' words: what a flow's own connection uses, which the port's listener need not. */
static void describe(struct tcp_lane *lane)
{
    char name[sizeof lane->lane.request.phase->tcp.congestion] = "";
    socklen_t size = sizeof name;

    if (lane->out_count > 0 &&
        getsockopt(lane->outs[0].fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0)
        snprintf(lane->lane.variant, sizeof lane->lane.variant, "congestion control %.15s", name);
}

int tcp_lane_settle(struct lane *lane, int64_t now_ns, struct err *err)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;
    char last[TCP_REJECTED_TEXT];
    int64_t waited_ns;
    int rc;

    if (l->settle_since_ns == 0) {
        l->settle_since_ns = now_ns;
        l->rejected_before = tcp_port_rejected(l->port, last, sizeof last);
    }
    waited_ns = now_ns - l->settle_since_ns;
    tcp_reception_work(l->port, now_ns);
    rc = adopt_all(l, err);
    for (unsigned i = 0; rc == 0 && l->outs_ready < l->out_count && i < l->out_count; i++)
        rc = advance_out(l, &l->outs[i], now_ns, err);
    if (rc == 0 && is_probe(l))
        lose_late(l, waited_ns);
    if (rc == 0 && is_settled(l))
        describe(l);
    if (rc || is_settled(l))
        return rc;
    if (waited_ns < SUSPECT_NS)
        return -EAGAIN;
    rc = await_partner(l, waited_ns, err);
    mention_rejected(l, err);
    return rc;
}
