/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections of a port: incoming connections and their handshakes, and the connections of a lane's
 * streams. Only a connection that proves the run's key becomes a flow.
 */
#include "tcp_lane.h"

#include "clock.h"
#include "log.h"
#include "netns.h"
#include "sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h> /* its struct tcp_info is longer than the C library's */
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

/* Maximum number of half-open connections, which are those without a verified claim. */
#define HALF_OPEN_MOST 4096u
#define BACKLOG 4096 /* all connections of a phase may arrive before the main thread accepts */
/* A connection without a claim is rejected after this time; a partner on a busy host connects
 * again. */
#define CLAIM_TIMEOUT_NS NS_PER_S
/* Length of a turn. After TURN_REJECTED rejections in one turn the listener pauses until the next
 * turn; up to as many further connections may have been accepted before. */
#define TURN_NS (16 * NS_PER_MS)
#define TURN_REJECTED 64u
#define ACCEPTED_MOST 64 /* connections per call: the main thread has other work, too */
#define EVENTS 64
/* Unsent bytes that a socket may hold, as time at line rate. A sleeping worker may oversleep by 17
 * to 21 ms (measured with fewer cores than nodes); with this reserve the line does not run empty
 * meanwhile. */
#define UNSENT_NS (30 * NS_PER_MS)
#define UNSENT_LEAST 65536.0
#define UNSENT_MOST (4.0 * 1024 * 1024)
#define UNSENT_UNKNOWN_LINE (1024.0 * 1024)
#define SUSPECT_NS (1 * NS_PER_S) /* time after which the sentence names an awaited partner */
/* A partner closes a connection whose claim is late. The connector repeats the connection up to
 * RECALLS_MOST times; the first wait is RECALL_FIRST_NS, and each further one is twice as long: 2.5
 * s in total. */
#define RECALLS_MOST 7
#define RECALL_FIRST_NS (20 * NS_PER_MS)
#define STATE_SYN_SENT 2 /* TCP_SYN_SENT of the C library's netinet/tcp.h */

/* --- handshakes --- */

/* Read the available bytes of a handshake, up to the offset `end`. Return 1 when they are complete,
 * 0 when some are missing, or a negative errno; -ECONNABORTED: the partner has closed the
 * connection.
 */
static int read_handshake(int fd, struct tcp_handshake *shake, unsigned *shaken, unsigned end)
{
    ssize_t got = recv(fd, (uint8_t *)shake + *shaken, end - *shaken, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got < 0 && errno != ECONNRESET)
        return -errno;
    if (got <= 0)
        return -ECONNABORTED;
    *shaken += (unsigned)got;
    return *shaken == end;
}

/* Send the next part of a handshake, up to the offset `end`; return false if the connection is
 * broken. */
static bool send_handshake(int fd, const struct tcp_handshake *shake, unsigned *shaken,
                           unsigned end)
{
    size_t bytes = end - *shaken;
    ssize_t sent = send(fd, (const uint8_t *)shake + *shaken, bytes, MSG_NOSIGNAL);

    *shaken = end;
    return sent == (ssize_t)bytes;
}

/* --- arrivals --- */

static void attach(struct transport_port *port, struct tcp_arrival *arrival, bool proven)
{
    arrival->proven = proven;
    TAILQ_INSERT_TAIL(&port->arrivals[proven], arrival, link);
    port->half_open += !proven;
}

static void detach(struct transport_port *port, struct tcp_arrival *arrival)
{
    TAILQ_REMOVE(&port->arrivals[arrival->proven], arrival, link);
    port->half_open -= !arrival->proven;
}

static void drop(struct transport_port *port, struct tcp_arrival *arrival)
{
    detach(port, arrival);
    if (arrival->fd >= 0)
        close(arrival->fd); /* and epoll forgets it */
    free(arrival);
}

static void reject(struct transport_port *port, struct tcp_arrival *arrival, const char *why)
{
    struct port_facts *facts = &port->ip.facts;
    char text[ADDRESS_TEXT_MAX];

    facts->rejected++;
    snprintf(facts->last_rejected, sizeof facts->last_rejected, "%s: %s",
             address_text(&arrival->from, text), why);
    drop(port, arrival);
}

/* Read the claim from an incoming connection, and verify it. After its claim a partner sends
 * nothing until it gets the proof: a proven connection that becomes readable was closed, or
 * violates the protocol. Return true while the claim is incomplete. */
static bool read_claim(struct transport_port *port, struct tcp_arrival *arrival, uint32_t events)
{
    int rc;

    if (arrival->proven) {
        drop(port, arrival);
        return false;
    }
    rc = read_handshake(arrival->fd, &arrival->shake, &arrival->shaken, TCP_CLAIM_END);
    if (rc < 0 || (rc > 0 && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)) {
        reject(port, arrival, "it was closed before it proved the run's key");
    } else if (rc > 0 && !tcp_is_proven(&arrival->shake, TCP_CONNECTOR, port->key)) {
        reject(port, arrival, "it does not prove this run's key");
    } else if (rc > 0) {
        detach(port, arrival);
        attach(port, arrival, true);
    }
    return rc == 0;
}

static void greet(struct transport_port *port, int fd, const struct sockaddr_storage *from,
                  int64_t now_ns)
{
    struct tcp_arrival *arrival = calloc(1, sizeof *arrival);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = arrival};

    if (arrival == NULL || epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        free(arrival);
        return;
    }
    arrival->fd = fd;
    arrival->from = *from;
    arrival->came_ns = now_ns;
    attach(port, arrival, false);
    tcp_challenge_make(&arrival->shake);
    if (!send_handshake(fd, &arrival->shake, &arrival->shaken, TCP_CHALLENGE_END))
        drop(port, arrival);
}

/* Accept waiting connections. The listener is disabled while the maximum number of connections is
 * half open, while no descriptor is left, and after TURN_REJECTED rejections in a turn; connections
 * in its backlog then do not wake the main thread. */
static void accept_some(struct transport_port *port, int64_t now_ns)
{
    bool rests = false;

    for (unsigned i = 0; i < ACCEPTED_MOST && !rests; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        int fd;

        rests = port->half_open >= port->half_open_most ||
                port->ip.facts.rejected - port->turn_rejected >= TURN_REJECTED;
        if (rests)
            break;
        fd =
            accept4(port->ip.socket, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            break;
        rests = fd < 0 && errno != ECONNABORTED;
        if (fd >= 0)
            greet(port, fd, &from, now_ns);
    }
    if (port->listening == rests) {
        struct epoll_event event = {.events = rests ? 0u : (uint32_t)EPOLLIN, .data.ptr = NULL};

        epoll_ctl(port->epoll, EPOLL_CTL_MOD, port->ip.socket, &event);
        port->listening = !rests;
    }
}

/* Reject connections without a claim after CLAIM_TIMEOUT_NS. On a busy host the claim may have
 * arrived and wait to be read. */
static void reject_silent(struct transport_port *port, int64_t now_ns)
{
    struct tcp_arrival *oldest;

    while ((oldest = TAILQ_FIRST(&port->arrivals[false])) != NULL &&
           /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow a TAILQ */
           now_ns - oldest->came_ns >= CLAIM_TIMEOUT_NS)
        if (read_claim(port, oldest, 0))
            reject(port, oldest, "it sent no proof of the run's key in time");
}

/* Accept waiting connections, read their claims, and reject connections whose claim is not made
 * with the run's key. */
static void accept_all(struct transport_port *port, int64_t now_ns)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(port->epoll, events, EVENTS, 0);
    bool knocking = !port->listening;

    if (now_ns - port->turn_ns >= TURN_NS) {
        port->turn_ns = now_ns;
        port->turn_rejected = port->ip.facts.rejected;
    }
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            knocking = true;
        else if (events[i].data.ptr != port) /* outgoing connections are read by their lane */
            read_claim(port, events[i].data.ptr, events[i].events);
    }
    reject_silent(port, now_ns);
    if (knocking)
        accept_some(port, now_ns);
}

/* Return an incoming connection with a verified claim for the lane's phase; NULL: there is none. */
static struct tcp_arrival *find_arrival(const struct tcp_lane *lane)
{
    const struct phase *phase = lane->base.lane.request.phase;
    struct tcp_arrival *arrival;

    TAILQ_FOREACH(arrival, &lane->port->arrivals[true], link)
    {
        const struct tcp_place *place = &arrival->shake.place;

        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow a TAILQ */
        if (place->trial == htonl(phase->trial) && place->phase == htonl(phase->number) &&
            place->tag == htons(phase->tag))
            break;
    }
    return arrival;
}

/* --- options of a socket --- */

/* TCP_NOTSENT_LOWAT limits the unsent bytes of a socket. Then a paced flow has nearly none. An
 * unpaced flow has as many when the window closes as when it opened, so that buffered bytes do not
 * increase the offered load of the window. */
uint32_t tcp_unsent_most(const struct lane_request *request)
{
    double line_bps = (double)request->line_rate_bps;
    double bytes = line_bps > 0 ? line_bps / 8 * UNSENT_NS / NS_PER_S : UNSENT_UNKNOWN_LINE;

    if (bytes < UNSENT_LEAST)
        return (uint32_t)UNSENT_LEAST;
    return (uint32_t)(bytes < UNSENT_MOST ? bytes : UNSENT_MOST);
}

/* Set the phase's options on a socket. Return 0, or a negative errno with an error message. */
static int set_options(const struct tcp_lane *lane, int fd, struct err *err)
{
    const struct tcp_options *tcp = tcp_options(lane->base.lane.request.phase);
    const char *name = tcp->congestion, *label = lane->base.label;
    uint32_t unsent = tcp_unsent_most(&lane->base.lane.request);
    char available[256] = "";
    int one = 1, rc;

    if (name[0] != '\0' &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0) {
        rc = errno;
        (void)sysfs_line(available, sizeof available,
                         "/proc/sys/net/ipv4/tcp_available_congestion_control");
        return err_set(err, -EINVAL, "%s: congestion control `%s`: %s; available: %s", label, name,
                       rc == ENOENT  ? "this kernel does not have it"
                       : rc == EPERM ? "only root may use it (see tcp_allowed_congestion_control)"
                                     : strerror(rc),
                       available);
    }
    rc = ip_port_buffer(&lane->port->ip, fd, SO_SNDBUF, tcp->send_buffer, err);
    /* Both sides refuse a buffer size here: a receiver's sockets are accepted later. */
    if (rc == 0)
        rc = ip_port_buffer(&lane->port->ip, fd, SO_RCVBUF, tcp->receive_buffer, err);
    if (rc < 0)
        return rc;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
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
                       lane->base.label, message_lane_ends(&lane->base));
    if (fd < 0)
        return err_set(err, -errno, "%s: can't make a socket: %s", lane->base.label,
                       strerror(errno));
    rc = set_options(lane, fd, err);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

bool tcp_info_read(int fd, struct tcp_info *info)
{
    socklen_t size = sizeof *info;

    memset(info, 0, sizeof *info);
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0;
}

/* --- outgoing connections --- */

struct tcp_names tcp_end_names(const struct message_end *end)
{
    const struct lane_request *request = &end->lane->lane.request;
    const struct lane_flow *flow = end->flow;
    const struct ip_port *ip = &request->port->ip;
    struct tcp_names names = {.rank = flow->src == request->rank ? flow->dst : flow->src};
    struct sockaddr_storage partner;

    (void)ip_port_partner(ip, &flow->partner, &partner);
    address_text(&ip->address, names.here);
    address_text(&partner, names.there);
    return names;
}

/* Set the error message for a missing connection; `why` is the reason, if this rank connects.
 * Return `code`. */
static int refuse(const struct tcp_end *end, int code, const char *why, struct err *err)
{
    const char *label = end->base.lane->label;
    struct tcp_names names = tcp_end_names(&end->base);

    if (!end->base.sends)
        return err_set(err, code, "%s: no connection came from rank %u (%s) to %s", label,
                       names.rank, names.there, names.here);
    return err_set(err, code, "%s: no connection from %s to %s (rank %u): %s", label, names.here,
                   names.there, names.rank, why);
}

/* Connect to a partner from the port's own address and any free TCP port. */
static int call(struct tcp_lane *lane, struct tcp_end *out, struct err *err)
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
        return refuse(out, -errno, strerror(errno), err);
    return 0;
}

int tcp_lane_check(struct tcp_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->base.lane.request;
    struct sockaddr_storage partner;
    uint64_t line_bps;
    int fd, rc = 0;

    for (uint32_t i = 0; rc == 0 && i < request->send_count; i++)
        rc = ip_port_check_partner(&lane->port->ip, &request->flows[i].partner,
                                   request->flows[i].dst, &partner, &line_bps, err);
    if (rc < 0)
        return rc;
    /* A lane that only receives checks them, too, so that every rank refuses the same phase. */
    fd = make_socket(lane, err);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

/* Add a proven connection to the epoll set of the lane's worker. If the partner sends on this
 * connection, too, the receiving end reports when the partner closes it. */
static int watch(struct tcp_lane *lane, struct tcp_end *end)
{
    bool probe = message_end_probes(&end->base);
    unsigned number =
        end->base.sends ? (unsigned)(end - (struct tcp_end *)lane->base.outs)
                        : lane->base.out_count + (unsigned)(end - (struct tcp_end *)lane->base.ins);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    end->connected = true;
    end->open = end->base.sends;
    if (end->base.sends)
        event.events = EPOLLOUT | (uint32_t)EPOLLET | (tcp_other_way(end) ? 0u : EPOLLRDHUP);
    else if (lane->base.schedules)
        event.events |= (uint32_t)EPOLLET | EPOLLRDHUP;
    return epoll_ctl(probe ? lane->wakes : lane->epoll, EPOLL_CTL_ADD, end->fd, &event) ? -errno
                                                                                        : 0;
}

/* Use a proven connection for a stream end, and for the end of the opposite direction if there is
 * one. Each end has a descriptor of its own, so that it can be watched and closed separately. */
static int share(struct tcp_lane *lane, struct tcp_end *end)
{
    struct tcp_end *other = tcp_other_way(end);
    int rc;

    if (other != NULL && (other->fd = fcntl(end->fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return -errno;
    rc = watch(lane, end);
    return rc == 0 && other != NULL ? watch(lane, other) : rc;
}

/* Continue the handshake of an outgoing connection: answer the partner's challenge with the claim,
 * then verify its proof. Return 0 if there is no error so far; -EPROTO with an error message;
 * another negative errno without a message. */
static int shake_hands(struct tcp_lane *lane, struct tcp_end *out, struct err *err)
{
    const struct phase *phase = lane->base.lane.request.phase;
    struct tcp_handshake *shake = &out->shake;
    int rc;

    if (out->shaken < TCP_CLAIM_END) {
        rc = read_handshake(out->fd, shake, &out->shaken, TCP_CHALLENGE_END);
        if (rc <= 0)
            return rc;
        if (shake->greeting != htonl(TCP_MAGIC))
            return refuse(out, -EPROTO, "another program listens there", err);
        shake->place = (struct tcp_place){.trial = htonl(phase->trial),
                                          .phase = htonl(phase->number),
                                          .src = htonl(out->base.flow->src),
                                          .dst = htonl(out->base.flow->dst),
                                          .tag = htons(phase->tag),
                                          .stream = htons(out->base.stream.script.stream)};
        tcp_prove(shake, TCP_CONNECTOR, lane->port->key);
        if (!send_handshake(out->fd, shake, &out->shaken, TCP_CLAIM_END))
            return -ECONNABORTED;
    }
    rc = read_handshake(out->fd, shake, &out->shaken, TCP_PROOF_END);
    if (rc <= 0)
        return rc;
    if (!tcp_is_proven(shake, TCP_ACCEPTOR, lane->port->key))
        return refuse(out, -EPROTO, "the partner does not hold this run's key", err);
    epoll_ctl(lane->port->epoll, EPOLL_CTL_DEL, out->fd, NULL);
    return share(lane, out);
}

static void hang_up(struct tcp_end *end)
{
    if (end->fd >= 0)
        close(end->fd); /* and epoll forgets it */
    end->fd = -1;
}

/* Give up a connection in a connectivity check, so that the check continues and finds all
 * unreachable pairs. The receiver misses the probe, and its record names the pair. Only the
 * connecting rank knows the reason, and logs it. Return 0. */
static int lose(struct tcp_end *end, struct err *why)
{
    if (end->base.sends)
        log_warning("%s", why->text);
    why->text[0] = '\0';
    hang_up(end);
    message_end_over(&end->base);
    return 0;
}

/* Continue the setup of an outgoing connection: connect, and take part in the handshake. If the
 * partner has closed the connection, connect again later. */
static int advance(struct tcp_lane *lane, struct tcp_end *out, int64_t now_ns, struct err *err)
{
    int rc = 0;

    if (out->fd < 0 && now_ns < out->recall_ns)
        return 0;
    if (out->fd < 0)
        rc = call(lane, out, err);
    if (rc == 0)
        rc = shake_hands(lane, out, err);
    if (rc == -ECONNABORTED && out->recalls < RECALLS_MOST) {
        hang_up(out);
        out->shaken = 0;
        out->recall_ns = now_ns + (RECALL_FIRST_NS << out->recalls++);
        return 0;
    }
    if (rc < 0)
        refuse(
            out, rc,
            rc == -ECONNABORTED
                ? "the partner closed the connection: it does not hold this run's key, did not get "
                  "this node's proof in time, or has too many open connections (see its records)"
                : strerror(-rc),
            err);
    /* A connectivity check continues without an unreachable partner. */
    if (message_lane_checks(&lane->base) &&
        (rc == -EHOSTUNREACH || rc == -ENETUNREACH || rc == -ECONNREFUSED || rc == -ETIMEDOUT))
        return lose(out, err);
    return rc;
}

/* --- incoming connections --- */

/* Return the stream end of this lane that an incoming connection claims. NULL: there is no such
 * end, it already has a connection, or this rank has to connect it. */
static struct tcp_end *place_of(struct tcp_lane *lane, const struct tcp_place *place)
{
    uint32_t src = ntohl(place->src), stream = ntohs(place->stream);
    uint32_t flow = src < lane->base.lane.request.ranks ? lane->base.flow_of[1][src] : 0;
    const struct tcp_end *way;
    struct tcp_end *in;

    if (flow == 0 || stream >= lane->base.stride)
        return NULL;
    in = tcp_lane_end(lane, lane->base.out_count + (flow - 1) * lane->base.stride + stream);
    way = tcp_other_way(in);
    if (in->base.flow->dst != ntohl(place->dst) || in->fd >= 0 || in->base.ended)
        return NULL;
    return way == NULL || way->is_passive ? in : NULL;
}

/* Accept a partner's connection: send the proof, and use the connection for its stream ends. */
static int answer(struct tcp_lane *lane, struct tcp_end *in, struct tcp_arrival *arrival,
                  struct err *err)
{
    int rc;

    epoll_ctl(lane->port->epoll, EPOLL_CTL_DEL, arrival->fd, NULL);
    in->fd = arrival->fd;
    arrival->fd = -1;
    rc = set_options(lane, in->fd, err);
    if (rc < 0)
        return rc;
    tcp_prove(&arrival->shake, TCP_ACCEPTOR, lane->port->key);
    /* poll finds a partner that has gone. */
    (void)send_handshake(in->fd, &arrival->shake, &arrival->shaken, TCP_PROOF_END);
    rc = share(lane, in);
    return rc == 0 ? 0
                   : err_set(err, rc, "%s: can't watch a connection: %s", lane->base.label,
                             strerror(-rc));
}

/* Take over all proven connections that claim streams of this lane. */
static int adopt_all(struct tcp_lane *lane, struct err *err)
{
    struct tcp_arrival *arrival;
    char text[ADDRESS_TEXT_MAX];
    int rc = 0;

    while (rc == 0 && (arrival = find_arrival(lane)) != NULL) {
        const struct tcp_place *place = &arrival->shake.place;
        struct tcp_end *in = place_of(lane, place);

        if (in != NULL)
            rc = answer(lane, in, arrival, err);
        else
            log_warning("%s: rejected a connection from %s: it claims a flow from rank %u to %u, "
                        "which this phase does not have",
                        lane->base.label, address_text(&arrival->from, text), ntohl(place->src),
                        ntohl(place->dst));
        drop(lane->port, arrival);
    }
    return rc;
}

void tcp_lane_hang_up(struct tcp_lane *lane)
{
    struct tcp_arrival *arrival;

    while ((arrival = find_arrival(lane)) != NULL)
        drop(lane->port, arrival);
}

/* --- a lane connects --- */

/* Return whether an end has no connection yet, from this rank or from the partner. */
static bool is_awaited(const struct tcp_end *end)
{
    return !end->connected && !end->base.ended && !end->is_passive;
}

int tcp_lane_connect(struct lane *base, int64_t now_ns, struct err *err)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    const unsigned count = message_lane_ends(&lane->base);
    int64_t limit_ns = base->request.phase->probe_timeout_ns, waited_ns;
    char name[16] = "";
    socklen_t size = sizeof name;
    bool late, waits = false;
    int home, rc = netns_enter(lane->port->ip.conf->netns, &home, err);

    if (rc < 0)
        return rc;
    if (lane->connect_since_ns == 0)
        lane->connect_since_ns = now_ns;
    waited_ns = now_ns - lane->connect_since_ns;
    /* A check gives up all awaited ends at once, a quarter of the time limit late: its partners
     * begin to wait when they are ready themselves. */
    late = message_lane_checks(&lane->base) && limit_ns > 0 && waited_ns >= limit_ns / 4 * 5;
    accept_all(lane->port, now_ns);
    rc = adopt_all(lane, err);
    for (unsigned i = 0; rc == 0 && i < lane->base.out_count; i++)
        if (is_awaited(tcp_lane_end(lane, i)))
            rc = advance(lane, tcp_lane_end(lane, i), now_ns, err);
    netns_leave(home);
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        struct tcp_end *end = tcp_lane_end(lane, i);
        struct tcp_info info;

        if (!is_awaited(end))
            continue;
        if (late || waited_ns >= SUSPECT_NS) /* the sentence names one partner */
            refuse(end, -EAGAIN,
                   end->base.sends && end->shaken == 0 && tcp_info_read(end->fd, &info) &&
                           info.tcpi_state == STATE_SYN_SENT
                       ? "timed out; nothing answers there"
                       : "the connection is open, but the partner is not ready for this phase",
                   err);
        if (late)
            lose(end, err);
        waits |= !late;
    }
    if (rc < 0 || waits)
        return rc < 0 ? rc : -EAGAIN;
    /* A flow's own connection may use another congestion control than the listener. */
    if (lane->base.out_count > 0 &&
        getsockopt(tcp_lane_end(lane, 0)->fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0)
        snprintf(base->variant, sizeof base->variant, "congestion control %.15s", name);
    return 0;
}

/* --- the port --- */

/* Raise the process's limit of open files to the hard limit: many flows need many descriptors, and
 * the soft limit of 1,024 is meant for programs that use select(). Return the maximum of
 * connections without a claim: a quarter of the limit. */
static unsigned raise_descriptor_limit(void)
{
    struct rlimit limit = {0};

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_max / 4 < HALF_OPEN_MOST ? (unsigned)limit.rlim_max / 4 : HALF_OPEN_MOST;
}

int tcp_port_open(struct transport_port *port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    socklen_t size = sizeof((struct port_facts *)NULL)->congestion;
    char text[ADDRESS_TEXT_MAX];
    int rc;

    (void)run;
    port->epoll = -1;
    port->listening = true;
    TAILQ_INIT(&port->arrivals[false]);
    TAILQ_INIT(&port->arrivals[true]);
    port->half_open_most = raise_descriptor_limit();
    message_payload_init();
    rc = ip_port_open(&port->ip, conf, "tcp", SOCK_STREAM, err);
    if (rc == 0 && ((port->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
                    listen(port->ip.socket, BACKLOG) != 0 ||
                    epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->ip.socket, &event) != 0))
        rc = err_set(err, -errno, "%s: can't listen on %s: %s", conf->name,
                     address_text(&port->ip.address, text), strerror(errno));
    if (rc < 0)
        return rc;
    port->ip.facts.connect_fd = port->epoll;
    /* The namespace's default, which /proc/sys does not show outside of it. */
    getsockopt(port->ip.socket, IPPROTO_TCP, TCP_CONGESTION, port->ip.facts.congestion, &size);
    return 0;
}

void tcp_port_close(struct transport_port *port)
{
    for (unsigned i = 0; i < 2; i++)
        while (!TAILQ_EMPTY(&port->arrivals[i]))
            /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow a TAILQ */
            drop(port, TAILQ_FIRST(&port->arrivals[i]));
    ip_port_close(&port->ip);
    if (port->epoll >= 0)
        close(port->epoll);
    sodium_memzero(port->key, sizeof port->key);
    free(port);
}

void tcp_port_facts(struct transport_port *port, struct port_facts *facts, bool counters)
{
    reject_silent(port, clock_now());
    ip_port_facts(&port->ip, facts, counters);
}
