/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_lane.h"

#include "clock.h"
#include "log.h"

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

/* --- arrivals --- */

static void attach(struct transport_port *port, struct tcp_arrival *arrival, bool proven)
{
    arrival->proven = proven;
    TAILQ_INSERT_TAIL(&port->arrivals[proven], arrival, link);
    port->counts[proven]++;
}

static void detach(struct transport_port *port, struct tcp_arrival *arrival)
{
    TAILQ_REMOVE(&port->arrivals[arrival->proven], arrival, link);
    port->counts[arrival->proven]--;
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
    int64_t now_ns = clock_now();
    char text[IP_ADDRESS_TEXT];

    port->rejected.count++;
    port->rejected.in_turn++;
    port->rejected.from = arrival->from;
    port->rejected.why = why;
    if (port->rejected.warned_ns == 0 || now_ns - port->rejected.warned_ns >= NS_PER_S) {
        port->rejected.warned_ns = now_ns;
        log_warning("%s: dropped a connection from %s: %s", port->ip.conf->name,
                    ip_address_text(&arrival->from, text), why);
    }
    drop(port, arrival);
}

uint64_t tcp_port_rejected(struct transport_port *port, char last[TCP_REJECTED_TEXT])
{
    const struct sockaddr_storage *from = &port->rejected.from;
    const char *why = port->rejected.why;
    uint64_t count = port->rejected.count;
    int64_t silent_ns = clock_now() - SILENT_NS;
    const struct tcp_arrival *arrival;
    char text[IP_ADDRESS_TEXT];

    TAILQ_FOREACH(arrival, &port->arrivals[false], link)
    {
        if (arrival->came_ns > silent_ns)
            break;
        count++;
        from = &arrival->from;
        why = "it keeps silent";
    }
    if (count > 0)
        snprintf(last, TCP_REJECTED_TEXT, "%s: %s", ip_address_text(from, text), why);
    return count;
}

/* --- accepting --- */

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
    tcp_challenge_make(&arrival->challenge);
    if (send(fd, &arrival->challenge, sizeof arrival->challenge, MSG_NOSIGNAL) !=
        (ssize_t)sizeof arrival->challenge)
        drop(port, arrival);
}

/* While the listener rests, those who wait there wake nobody. */
static void watch_listener(struct transport_port *port, bool watch)
{
    struct epoll_event event = {.events = watch ? (uint32_t)EPOLLIN : 0u, .data.ptr = NULL};

    if (port->listening != watch)
        epoll_ctl(port->epoll, EPOLL_CTL_MOD, port->ip.socket, &event);
    port->listening = watch;
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
        if (port->counts[false] >= port->half_open_most)
            reject(port, TAILQ_FIRST(&port->arrivals[false]), "it kept silent while others waited");
        greet(port, fd, &from, now_ns);
    }
    watch_listener(port, true);
}

/* Something came from a connection that waits for its lane: before its proof it has nothing to
 * say, so it was closed by its owner, or it is not one of ours. One that is closed behind its claim
 * is of a partner that gave up. */
static void read_claim(struct transport_port *port, struct tcp_arrival *arrival, uint32_t events)
{
    const char *why = NULL;
    ssize_t got;

    if (arrival->proven) {
        drop(port, arrival);
        return;
    }
    got = recv(arrival->fd, (uint8_t *)&arrival->claim + arrival->claim_bytes,
               sizeof arrival->claim - arrival->claim_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    arrival->claim_bytes += got > 0 ? (unsigned)got : 0;
    if (got > 0 && arrival->claim_bytes < sizeof arrival->claim)
        return;
    if (got <= 0 || (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        why = "it ended before it said who it is";
    else if (!tcp_claim_valid(&arrival->claim, &arrival->challenge, port->key, &arrival->place))
        why = "it does not hold this run's key";
    else if (port->counts[true] >= PROVEN_MAX)
        why = "too many connections wait for a later phase";
    if (why != NULL) {
        reject(port, arrival, why);
        return;
    }
    detach(port, arrival);
    attach(port, arrival, true);
}

void tcp_acceptor_work(struct transport_port *port, int64_t now_ns)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(port->epoll, events, EVENTS, 0);
    struct tcp_arrival *oldest;
    bool knocking = false;

    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            knocking = true;
        else if (events[i].data.ptr != port) /* a connection out: connect reads it */
            read_claim(port, events[i].data.ptr, events[i].events);
    }
    while ((oldest = TAILQ_FIRST(&port->arrivals[false])) != NULL &&
           now_ns - oldest->came_ns >= CLAIM_TIMEOUT_NS)
        reject(port, oldest, "it did not say who it is in time");
    if (now_ns - port->rejected.turn_ns >= TURN_NS) {
        port->rejected.turn_ns = now_ns;
        port->rejected.in_turn = 0;
        knocking = knocking || !port->listening;
    }
    if (knocking)
        accept_some(port, now_ns);
}

struct tcp_arrival *tcp_acceptor_take(struct transport_port *port, const struct phase *phase)
{
    struct tcp_arrival *arrival;

    TAILQ_FOREACH(arrival, &port->arrivals[true], link)
    {
        if (arrival->place.trial != phase->trial || arrival->place.phase != phase->number ||
            arrival->place.tag != phase->tag)
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

void tcp_port_facts(struct transport_port *port, struct port_facts *facts, bool counters)
{
    socklen_t size = sizeof facts->congestion;

    ip_port_facts(&port->ip, facts, counters);
    facts->connect_fd = port->epoll;
    /* The namespace's, which /proc/sys would not show from outside of it. */
    getsockopt(port->ip.socket, IPPROTO_TCP, TCP_CONGESTION, facts->congestion, &size);
    facts->rejected = tcp_port_rejected(port, facts->last_rejected);
}
