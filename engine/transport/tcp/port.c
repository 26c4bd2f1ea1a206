/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_lane.h"

#include "clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

/* Connections whose claim has not come. */
#define HALF_OPEN_MOST 4096u
#define HALF_OPEN_LEAST 64u
#define BACKLOG 4096 /* a whole phase's connections may come before the main thread looks */
/* As long as a partner waits for the connection itself. */
#define CLAIM_TIMEOUT_NS (10 * NS_PER_S)
/* A partner on a busy host may take so long to make its claim: it stays however many others come.
 * A connection that is silent for longer counts as rejected, and makes room where others wait. */
#define SILENT_NS NS_PER_S
/* After so many rejections in a turn the listener rests until the next one; as many again may have
 * been accepted before. */
#define TURN_NS (16 * NS_PER_MS)
#define TURN_REJECTED 64u
#define ACCEPTED_MOST 64 /* at once: the main thread has more to do */
#define EVENTS 64

/* --- handshakes --- */

int tcp_handshake_read(int fd, struct tcp_handshake *shake, unsigned *shaken, unsigned end)
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

bool tcp_handshake_send(int fd, const struct tcp_handshake *shake, unsigned *shaken, unsigned end)
{
    size_t bytes = end - *shaken;
    ssize_t sent = send(fd, (const uint8_t *)shake + *shaken, bytes, MSG_NOSIGNAL);

    *shaken = end;
    return sent == (ssize_t)bytes;
}

struct tcp_ends tcp_port_ends(const struct transport_port *port, const struct lane_flow *flow)
{
    struct sockaddr_storage partner;
    struct tcp_ends ends;

    (void)ip_port_partner(&port->ip, &flow->partner, &partner);
    ip_address_text(&port->ip.address, ends.here);
    ip_address_text(&partner, ends.there);
    return ends;
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
    close(arrival->fd); /* and epoll forgets it */
    free(arrival);
}

static void reject(struct transport_port *port, struct tcp_arrival *arrival, const char *why)
{
    port->rejected++;
    port->rejected_from = arrival->from;
    port->rejected_why = why;
    drop(port, arrival);
}

/* Reads what has come from a connection that waits. Behind its claim it has nothing to say before
 * its proof: it was closed by its owner, a partner that gave up, or it is not one of ours. True:
 * its claim is still to come. */
static bool read_claim(struct transport_port *port, struct tcp_arrival *arrival, uint32_t events)
{
    int rc;

    if (arrival->proven) {
        drop(port, arrival);
        return false;
    }
    rc = tcp_handshake_read(arrival->fd, &arrival->shake, &arrival->shaken, TCP_CLAIM_END);
    if (rc < 0 || (rc > 0 && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)) {
        reject(port, arrival, "it ended before it said who it is");
    } else if (rc > 0 && !tcp_claim_valid(&arrival->shake, port->key)) {
        reject(port, arrival, "it does not hold this run's key");
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
    if (!tcp_handshake_send(fd, &arrival->shake, &arrival->shaken, TCP_CHALLENGE_END))
        drop(port, arrival);
}

/* Where as many are half open as may be, the oldest makes room once it has been silent for long
 * enough. Until then, without a descriptor left, and where enough are rejected in this turn, the
 * listener rests: those who wait in its backlog wake nobody. */
static void accept_some(struct transport_port *port, int64_t now_ns)
{
    bool rests = false;

    for (unsigned i = 0; i < ACCEPTED_MOST && !rests; i++) {
        struct tcp_arrival *oldest = TAILQ_FIRST(&port->arrivals[false]);
        bool full = port->half_open >= port->half_open_most;
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        int fd;

        rests = (full && now_ns - oldest->came_ns < SILENT_NS) ||
                port->rejected - port->turn_rejected >= TURN_REJECTED;
        if (rests)
            break;
        fd =
            accept4(port->ip.socket, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            break;
        rests = fd < 0 && errno != ECONNABORTED;
        if (fd < 0)
            continue;
        if (full && read_claim(port, oldest, 0)) /* it may lie there unread, on a busy host */
            reject(port, oldest, "it kept silent while others waited");
        greet(port, fd, &from, now_ns);
    }
    if (port->listening == rests) {
        struct epoll_event event = {.events = rests ? 0u : (uint32_t)EPOLLIN, .data.ptr = NULL};

        epoll_ctl(port->epoll, EPOLL_CTL_MOD, port->ip.socket, &event);
        port->listening = !rests;
    }
}

void tcp_port_accept(struct transport_port *port, int64_t now_ns)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(port->epoll, events, EVENTS, 0);
    struct tcp_arrival *oldest;
    bool knocking = !port->listening;

    if (now_ns - port->turn_ns >= TURN_NS) {
        port->turn_ns = now_ns;
        port->turn_rejected = port->rejected;
    }
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            knocking = true;
        else if (events[i].data.ptr != port) /* a connection out: its lane reads it */
            read_claim(port, events[i].data.ptr, events[i].events);
    }
    while ((oldest = TAILQ_FIRST(&port->arrivals[false])) != NULL &&
           now_ns - oldest->came_ns >= CLAIM_TIMEOUT_NS)
        if (read_claim(port, oldest, 0))
            reject(port, oldest, "it did not say who it is in time");
    if (knocking)
        accept_some(port, now_ns);
}

struct tcp_arrival *tcp_port_take(struct transport_port *port, const struct phase *phase)
{
    struct tcp_arrival *arrival;

    TAILQ_FOREACH(arrival, &port->arrivals[true], link)
    {
        const struct tcp_place *place = &arrival->shake.place;

        if (place->trial != htonl(phase->trial) || place->phase != htonl(phase->number) ||
            place->tag != htons(phase->tag))
            continue;
        detach(port, arrival);
        epoll_ctl(port->epoll, EPOLL_CTL_DEL, arrival->fd, NULL);
        return arrival;
    }
    return NULL;
}

/* --- the port --- */

/* Many flows are many descriptors; the soft limit of 1,024 is for programs that use select().
 * Returns how many of them connections without a claim may have: a quarter. */
static unsigned raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max / 4 < HALF_OPEN_LEAST)
        return HALF_OPEN_LEAST;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_max / 4 < HALF_OPEN_MOST ? (unsigned)limit.rlim_max / 4 : HALF_OPEN_MOST;
}

static int listen_on(struct transport_port *port, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    char text[IP_ADDRESS_TEXT];

    port->epoll = epoll_create1(EPOLL_CLOEXEC);
    port->listening = true;
    if (port->epoll >= 0 && listen(port->ip.socket, BACKLOG) == 0 &&
        epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->ip.socket, &event) == 0)
        return 0;
    return err_set(err, -errno, "%s: can't listen on %s: %s", port->ip.conf->name,
                   ip_address_text(&port->ip.address, text), strerror(errno));
}

int tcp_port_open(struct transport_port **port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err)
{
    struct transport_port *made;
    int rc;

    (void)run;
    if (sodium_init() < 0)
        return err_set(err, -ENOSYS, "%s: libsodium can't be initialised", conf->name);
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", conf->name);
    made->epoll = -1;
    TAILQ_INIT(&made->arrivals[false]);
    TAILQ_INIT(&made->arrivals[true]);
    made->half_open_most = raise_descriptor_limit();
    message_payload_init();
    rc = ip_port_open(&made->ip, conf, "tcp", SOCK_STREAM, err);
    if (rc == 0)
        rc = listen_on(made, err);
    if (rc < 0)
        tcp_port_close(made);
    else
        *port = made;
    return rc;
}

void tcp_port_close(struct transport_port *port)
{
    for (unsigned i = 0; i < 2; i++)
        while (!TAILQ_EMPTY(&port->arrivals[i]))
            drop(port, TAILQ_FIRST(&port->arrivals[i]));
    ip_port_close(&port->ip);
    if (port->epoll >= 0)
        close(port->epoll);
    sodium_memzero(port->key, sizeof port->key);
    free(port);
}

/* Silent connections count as rejected before they are. */
void tcp_port_facts(struct transport_port *port, struct port_facts *facts, bool counters)
{
    const struct sockaddr_storage *from = &port->rejected_from;
    const char *why = port->rejected_why;
    int64_t silent_ns = clock_now() - SILENT_NS;
    const struct tcp_arrival *arrival;
    socklen_t size = sizeof facts->congestion;
    char text[IP_ADDRESS_TEXT];

    ip_port_facts(&port->ip, facts, counters);
    facts->connect_fd = port->epoll;
    /* The namespace's, which /proc/sys would not show from outside of it. */
    getsockopt(port->ip.socket, IPPROTO_TCP, TCP_CONGESTION, facts->congestion, &size);
    facts->rejected = port->rejected;
    TAILQ_FOREACH(arrival, &port->arrivals[false], link)
    {
        if (arrival->came_ns > silent_ns)
            break;
        facts->rejected++;
        from = &arrival->from;
        why = "it keeps silent";
    }
    if (facts->rejected > 0)
        snprintf(facts->last_rejected, sizeof facts->last_rejected, "%s: %s",
                 ip_address_text(from, text), why);
}
