/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "clock.h"
#include "log.h"
#include "message.h"

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

/* Connections whose claim has not come. A partner on a busy host may take a second to make it; so
 * long the oldest stays however many others come after it. */
#define HALF_OPEN_MOST 4096u
#define HALF_OPEN_LEAST 64u
#define BACKLOG 4096     /* a whole phase's connections may come before the main thread looks */
#define PROVEN_MAX 16384 /* for lanes to come */
/* As long as a partner waits for the connection itself. */
#define CLAIM_TIMEOUT_NS (10 * NS_PER_S)
#define SILENT_NS NS_PER_S /* who says nothing for so long counts as rejected */
/* So many connections are rejected in a turn; then the listener rests until the next one: 4,000 a
 * second cost a few percent of a core. */
#define TURN_NS (16 * NS_PER_MS)
#define TURN_REJECTED 64u
#define ACCEPTED_MOST 256 /* at once: the main thread has more to do */
#define EVENTS 64

/* Takes an arrival off its list. */
static void detach(struct transport_port *port, struct tcp_arrival *arrival)
{
    if (arrival->proven) {
        TAILQ_REMOVE(&port->proven, arrival, link);
        port->proven_count--;
    } else {
        TAILQ_REMOVE(&port->half_open, arrival, link);
        port->half_open_count--;
    }
}

static void drop(struct transport_port *port, struct tcp_arrival *arrival)
{
    detach(port, arrival);
    close(arrival->fd); /* and epoll forgets it */
    free(arrival);
}

/* Logged at most once a second: nobody without the key may fill the log. */
static void reject(struct transport_port *port, struct tcp_arrival *arrival, const char *why)
{
    struct tcp_rejected *rejected = &port->rejected;
    int64_t now_ns = clock_now();

    rejected->count++;
    rejected->in_turn++;
    rejected->from = arrival->from;
    rejected->why = why;
    if (rejected->warned_ns == 0 || now_ns - rejected->warned_ns >= NS_PER_S) {
        char text[IP_ADDRESS_TEXT];

        rejected->warned_ns = now_ns;
        log_warning("%s: dropped a connection from %s: %s", port->ip.conf->name,
                    ip_address_text(&arrival->from, text), why);
    }
    drop(port, arrival);
}

uint64_t tcp_port_rejected(struct transport_port *port, char *last, size_t size)
{
    struct tcp_rejected known = port->rejected;
    int64_t silent_ns = clock_now() - SILENT_NS;
    const struct tcp_arrival *a;
    char text[IP_ADDRESS_TEXT];

    TAILQ_FOREACH(a, &port->half_open, link)
    {
        if (a->came_ns > silent_ns)
            break;
        known.count++;
        known.from = a->from;
        known.why = "it keeps silent";
    }
    if (known.count > 0)
        snprintf(last, size, "%s: %s", ip_address_text(&known.from, text), known.why);
    return known.count;
}

/* --- accepting --- */

static void greet(struct transport_port *port, int fd, const struct sockaddr_storage *from,
                  int64_t now_ns)
{
    struct tcp_arrival *arrival = calloc(1, sizeof *arrival);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = arrival};
    ssize_t sent;

    if (!arrival || epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &event)) {
        close(fd);
        free(arrival);
        return;
    }
    arrival->fd = fd;
    arrival->from = *from;
    arrival->came_ns = now_ns;
    TAILQ_INSERT_TAIL(&port->half_open, arrival, link);
    port->half_open_count++;
    tcp_challenge_make(&arrival->challenge);
    sent = send(fd, &arrival->challenge, sizeof arrival->challenge, MSG_NOSIGNAL);
    if (sent != (ssize_t)sizeof arrival->challenge)
        drop(port, arrival);
}

/* While the listener rests, those who wait there wake nobody. */
static void watch_listener(struct transport_port *port, bool watch)
{
    struct epoll_event event = {.events = watch ? (uint32_t)EPOLLIN : 0u, .data.ptr = NULL};

    if (port->listening == watch)
        return;
    port->listening = watch;
    epoll_ctl(port->epoll, EPOLL_CTL_MOD, port->ip.socket, &event);
}

static void accept_some(struct transport_port *port, int64_t now_ns)
{
    for (unsigned i = 0; i < ACCEPTED_MOST; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        int fd;

        if (port->rejected.in_turn >= TURN_REJECTED) {
            watch_listener(port, false);
            return;
        }
        fd =
            accept4(port->ip.socket, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == ECONNABORTED)
            continue;
        if (fd < 0) { /* without a descriptor left, not at once again */
            watch_listener(port, errno == EAGAIN);
            return;
        }
        if (port->half_open_count >= port->half_open_most)
            reject(port, TAILQ_FIRST(&port->half_open), "it kept silent while others waited");
        greet(port, fd, &from, now_ns);
    }
    watch_listener(port, true);
}

/* --- claims --- */

/* Something came from a connection that waits for its lane: before its proof it has nothing to
 * say, so it was closed by its owner, or it is not one of ours. */
static void read_claim(struct transport_port *port, struct tcp_arrival *arrival)
{
    uint8_t *claim = (uint8_t *)&arrival->claim;
    const char *why = NULL;
    ssize_t got;

    if (arrival->proven) {
        drop(port, arrival);
        return;
    }
    got = recv(arrival->fd, claim + arrival->claim_bytes,
               sizeof arrival->claim - arrival->claim_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    arrival->claim_bytes += got > 0 ? (unsigned)got : 0;
    if (got > 0 && arrival->claim_bytes < sizeof arrival->claim)
        return;
    if (got <= 0)
        why = "it ended before it said who it is";
    else if (!tcp_claim_valid(&arrival->claim, &arrival->challenge, port->key, &arrival->place))
        why = "it does not hold this run's key";
    else if (port->proven_count >= PROVEN_MAX)
        why = "too many connections wait for a later phase";
    if (why != NULL) {
        reject(port, arrival, why);
        return;
    }
    detach(port, arrival);
    arrival->proven = true;
    TAILQ_INSERT_TAIL(&port->proven, arrival, link);
    port->proven_count++;
}

static void drop_slow(struct transport_port *port, int64_t now_ns)
{
    while (TAILQ_FIRST(&port->half_open) != NULL &&
           now_ns - TAILQ_FIRST(&port->half_open)->came_ns >= CLAIM_TIMEOUT_NS)
        reject(port, TAILQ_FIRST(&port->half_open), "it did not say who it is in time");
}

void tcp_acceptor_work(struct transport_port *port, int64_t now_ns)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(port->epoll, events, EVENTS, 0);
    bool knocking = false;

    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            knocking = true;
        else if (events[i].data.ptr != port) /* a connection out: connect reads it */
            read_claim(port, events[i].data.ptr);
    }
    drop_slow(port, now_ns);
    if (now_ns - port->rejected.turn_ns >= TURN_NS) {
        port->rejected.turn_ns = now_ns;
        port->rejected.in_turn = 0;
        knocking = knocking || !port->listening;
    }
    if (knocking)
        accept_some(port, now_ns);
}

/* --- lanes --- */

struct tcp_arrival *tcp_acceptor_take(struct transport_port *port, const struct phase *phase)
{
    struct tcp_arrival *a;

    TAILQ_FOREACH(a, &port->proven, link)
    {
        if (a->place.trial != phase->trial || a->place.phase != phase->number ||
            a->place.tag != phase->tag)
            continue;
        detach(port, a);
        epoll_ctl(port->epoll, EPOLL_CTL_DEL, a->fd, NULL);
        return a;
    }
    return NULL;
}

void tcp_acceptor_forget(struct transport_port *port, const struct phase *phase)
{
    struct tcp_arrival *arrival;

    while ((arrival = tcp_acceptor_take(port, phase)) != NULL) {
        close(arrival->fd);
        free(arrival);
    }
}

/* --- the port --- */

/* Many flows are many descriptors; the soft limit of 1,024 is for programs that use select().
 * Returns how many of them connections without a claim may have: a quarter. */
static unsigned raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return HALF_OPEN_LEAST;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur / 4 < HALF_OPEN_LEAST)
        return HALF_OPEN_LEAST;
    return limit.rlim_cur / 4 < HALF_OPEN_MOST ? (unsigned)limit.rlim_cur / 4 : HALF_OPEN_MOST;
}

static int listen_on(struct transport_port *port)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    port->epoll = epoll_create1(EPOLL_CLOEXEC);
    port->listening = true;
    if (port->epoll < 0 || listen(port->ip.socket, BACKLOG) ||
        epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->ip.socket, &event))
        return -errno;
    return 0;
}

int tcp_port_open(struct transport_port **port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err)
{
    struct transport_port *p;
    char text[IP_ADDRESS_TEXT];
    int rc;

    (void)run;
    if (sodium_init() < 0)
        return err_set(err, -ENOSYS, "%s: libsodium can't be initialised", conf->name);
    p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, -ENOMEM, "%s: out of memory", conf->name);
    p->epoll = -1;
    TAILQ_INIT(&p->half_open);
    TAILQ_INIT(&p->proven);
    p->half_open_most = raise_descriptor_limit();
    message_payload_init();
    rc = ip_port_open(&p->ip, conf, "tcp", SOCK_STREAM, err);
    if (rc == 0 && (rc = listen_on(p)) != 0)
        err_set(err, rc, "%s: can't listen on %s: %s", conf->name,
                ip_address_text(&p->ip.address, text), strerror(-rc));
    if (rc)
        tcp_port_close(p);
    else
        *port = p;
    return rc;
}

void tcp_port_use_key(struct transport_port *port, const struct transport_secret *secret)
{
    if (!port->keyed)
        tcp_key_derive(port->key, secret);
    port->keyed = true;
}

void tcp_port_close(struct transport_port *port)
{
    while (!TAILQ_EMPTY(&port->half_open))
        drop(port, TAILQ_FIRST(&port->half_open));
    while (!TAILQ_EMPTY(&port->proven))
        drop(port, TAILQ_FIRST(&port->proven));
    ip_port_close(&port->ip);
    if (port->epoll >= 0)
        close(port->epoll);
    sodium_memzero(port->key, sizeof port->key);
    free(port);
}

void tcp_port_facts(struct transport_port *port, struct port_facts *facts)
{
    socklen_t size = sizeof facts->congestion;

    ip_port_facts(port, facts);
    facts->connect_fd = port->epoll;
    /* The namespace's, which /proc/sys would not show from outside of it. */
    getsockopt(port->ip.socket, IPPROTO_TCP, TCP_CONGESTION, facts->congestion, &size);
}

void tcp_port_status(struct transport_port *port, struct port_status *status)
{
    ip_port_status(port, status);
    status->rejected = tcp_port_rejected(port, status->last_rejected, sizeof status->last_rejected);
}

int tcp_port_watch(struct transport_port *port, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = port};

    return epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void tcp_port_forget(struct transport_port *port, int fd)
{
    epoll_ctl(port->epoll, EPOLL_CTL_DEL, fd, NULL);
}
