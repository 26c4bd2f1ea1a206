/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "lane.h"
#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SUSPECT_NS (1 * NS_PER_S) /* before that, nobody is worth a system call to be named */
#define CONNECT_TIMEOUT_NS (10 * NS_PER_S) /* the partner's kernel answers for it */
#define SETTLE_TIMEOUT_NS (30 * NS_PER_S)  /* the partner itself, which may be a phase behind */

/* --- connections out --- */

static int refuse_out(const struct tcp_lane *lane, const struct tcp_out *out, int code,
                      const char *why, struct err *err)
{
    const struct transport_port *port = lane->port;
    char from[TCP_ADDRESS_TEXT];
    char to[TCP_ADDRESS_TEXT];

    return err_set(err, code, "%s: no connection from %s to %s (rank %u): %s", port->conf->name,
                   tcp_address_text(&port->address, from),
                   tcp_address_text(&out->flow->partner, to), out->flow->flow->dst, why);
}

/* Reads an answer of `size` bytes as far as it is there: 1 whole, 0 not yet, or a failure. */
static int read_answer(struct tcp_lane *lane, struct tcp_out *out, size_t size, struct err *err)
{
    ssize_t got = recv(out->fd, out->answer.bytes + out->answer_bytes, size - out->answer_bytes,
                       MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got < 0)
        return refuse_out(lane, out, -errno, strerror(errno), err);
    if (got == 0)
        return refuse_out(lane, out, -ECONNREFUSED,
                          "it was closed by the partner, which does not know this run's key", err);
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
        return refuse_out(lane, out, -EPIPE, "it broke in the handshake", err);
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

static int check_proof(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    int rc = read_answer(lane, out, sizeof out->answer.proof, err);

    if (rc <= 0)
        return rc;
    if (!tcp_proof_valid(&out->answer.proof, &out->claim, &out->challenge, lane->port->key))
        return refuse_out(lane, out, -EPROTO, "the partner does not hold this run's key", err);
    out->state = TCP_OUT_READY;
    out->writable = true;
    lane->outs_ready++;
    tcp_port_forget(lane->port, out->fd);
    rc = watch(lane, out->fd,
               EPOLLOUT | EPOLLRDHUP | EPOLLET | (lane->pingpong != NULL ? EPOLLIN : 0u),
               (unsigned)(out - lane->outs));
    return rc ? refuse_out(lane, out, rc, strerror(-rc), err) : 0;
}

static int advance_out(struct tcp_lane *lane, struct tcp_out *out, struct err *err)
{
    int rc = 0;

    if (out->state == TCP_OUT_CHALLENGE)
        rc = answer_challenge(lane, out, err);
    if (rc == 0 && out->state == TCP_OUT_PROOF)
        rc = check_proof(lane, out, err);
    return rc;
}

/* --- connections in --- */

/* The place of an arrival in this lane; NULL: there is none, or it is taken. */
static struct tcp_in *place_of(struct tcp_lane *lane, const struct tcp_place *place)
{
    if (place->stream >= lane->stride)
        return NULL;
    for (unsigned i = place->stream; i < lane->in_count; i += lane->stride) {
        struct tcp_in *in = &lane->ins[i];

        if (in->flow->src == place->src && in->flow->dst == place->dst)
            return in->fd < 0 ? in : NULL;
    }
    return NULL;
}

static int adopt(struct tcp_lane *lane, struct tcp_arrival *arrival, struct err *err)
{
    struct tcp_in *in = place_of(lane, &arrival->place);
    struct tcp_proof proof;
    char text[TCP_ADDRESS_TEXT];
    int rc;

    if (!in) {
        log_warning("%s: %s claims a flow from rank %u to %u that this phase does not have",
                    lane->port->conf->name, tcp_address_text(&arrival->from, text),
                    arrival->place.src, arrival->place.dst);
        close(arrival->fd);
        return 0;
    }
    in->fd = arrival->fd;
    rc = tcp_socket_buffer(lane, in->fd, SO_RCVBUF, lane->lane.request.phase->tcp.receive_buffer,
                           err);
    if (rc)
        return rc;
    tcp_proof_make(&proof, &arrival->claim, &arrival->challenge, lane->port->key);
    /* A partner that has gone shows itself again in poll. */
    (void)!send(in->fd, &proof, sizeof proof, MSG_NOSIGNAL);
    lane->ins_ready++;
    rc = watch(lane, in->fd, lane->pingpong != NULL ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN,
               lane->out_count + (unsigned)(in - lane->ins));
    return rc ? err_set(err, rc, "%s: can't watch a connection: %s", lane->port->conf->name,
                        strerror(-rc))
              : 0;
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

static int miss_in(const struct tcp_lane *lane, const struct tcp_in *in, int code, struct err *err)
{
    struct sockaddr_storage partner;
    char from[TCP_ADDRESS_TEXT] = "?";
    char to[TCP_ADDRESS_TEXT];

    if (tcp_port_partner(lane->port, &in->flow->partner, &partner))
        tcp_address_text(&partner, from);
    return err_set(err, code, "%s: no connection came from rank %u (%s) to %s",
                   lane->port->conf->name, in->flow->src, from,
                   tcp_address_text(&lane->port->address, to));
}

/* One sentence about whoever is waited for, those that this lane calls first; -ETIMEDOUT when that
 * has lasted too long, else -EAGAIN. */
static int await_partner(const struct tcp_lane *lane, int64_t waited_ns, struct err *err)
{
    int unconnected = waited_ns >= CONNECT_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;
    int unready = waited_ns >= SETTLE_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;

    for (unsigned i = 0; i < lane->out_count; i++)
        if (lane->outs[i].state == TCP_OUT_CHALLENGE && tcp_connecting(lane->outs[i].fd))
            return refuse_out(lane, &lane->outs[i], unconnected, "timed out; nothing answers there",
                              err);
    for (unsigned i = 0; i < lane->out_count; i++)
        if (lane->outs[i].state != TCP_OUT_READY)
            return refuse_out(lane, &lane->outs[i], unready,
                              "it is connected, but the partner is not ready for this phase", err);
    for (unsigned i = 0; i < lane->in_count; i++)
        if (lane->ins[i].fd < 0)
            return miss_in(lane, &lane->ins[i], unready, err);
    return -EAGAIN;
}

int tcp_lane_settle(struct lane *lane, int64_t now_ns, struct err *err)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;
    int rc;

    if (l->settle_since_ns == 0)
        l->settle_since_ns = now_ns;
    tcp_reception_work(l->port, now_ns);
    rc = adopt_all(l, err);
    for (unsigned i = 0; rc == 0 && l->outs_ready < l->out_count && i < l->out_count; i++)
        rc = advance_out(l, &l->outs[i], err);
    if (rc || (l->outs_ready == l->out_count && l->ins_ready == l->in_count))
        return rc;
    return now_ns - l->settle_since_ns >= SUSPECT_NS
               ? await_partner(l, now_ns - l->settle_since_ns, err)
               : -EAGAIN;
}
