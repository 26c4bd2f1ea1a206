/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "log.h"
#include "port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HALF_OPEN_MAX 64 /* more wait in the kernel's backlog */
#define PROVEN_MAX 16384 /* for lanes to come */
/* Connections of the next phase are made while this one fills the links: a few packets may have to
 * be sent again. As long as a partner waits for the connection itself; less when others wait. */
#define CLAIM_TIMEOUT_NS (10 * NS_PER_S)
#define CLAIM_CROWDED_NS (2 * NS_PER_S)
#define EVENTS 64

static void stop_watching(struct transport_port *port, const struct tcp_arrival *arrival)
{
    epoll_ctl(port->epoll, EPOLL_CTL_DEL, arrival->fd, NULL);
}

/* Takes an arrival off the list; `link` points to it. */
static struct tcp_arrival *detach(struct transport_port *port, struct tcp_arrival **link)
{
    struct tcp_arrival *arrival = *link;

    *link = arrival->next;
    arrival->next = NULL;
    if (arrival->proven)
        port->proven--;
    else
        port->half_open--;
    stop_watching(port, arrival);
    return arrival;
}

static void drop(struct transport_port *port, struct tcp_arrival *arrival)
{
    struct tcp_arrival **link = &port->arrivals;

    while (*link != arrival)
        link = &(*link)->next;
    detach(port, link);
    close(arrival->fd);
    free(arrival);
}

/* Speaks of strangers at most once a second: they must not be able to fill the log. */
static void drop_stranger(struct transport_port *port, struct tcp_arrival *arrival, const char *why)
{
    int64_t now_ns = clock_now();
    char text[TCP_ADDRESS_TEXT];

    if (port->warned_ns == 0 || now_ns - port->warned_ns >= NS_PER_S) {
        port->warned_ns = now_ns;
        log_warning("%s: dropped a connection from %s: %s", port->conf->name,
                    tcp_address_text(&arrival->from, text), why);
    }
    drop(port, arrival);
}

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
    arrival->next = port->arrivals;
    port->arrivals = arrival;
    port->half_open++;
    tcp_challenge_make(&arrival->challenge);
    sent = send(fd, &arrival->challenge, sizeof arrival->challenge, MSG_NOSIGNAL);
    if (sent != (ssize_t)sizeof arrival->challenge)
        drop(port, arrival);
}

static void accept_some(struct transport_port *port, int64_t now_ns)
{
    while (port->half_open < HALF_OPEN_MAX) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        int fd =
            accept4(port->listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        greet(port, fd, &from, now_ns);
    }
}

/* Something came from a connection that waits for its lane: before its proof it has nothing to
 * say, so it was closed by its owner, or it is not one of ours. */
static void read_claim(struct transport_port *port, struct tcp_arrival *arrival)
{
    uint8_t *claim = (uint8_t *)&arrival->claim;
    ssize_t got;

    if (arrival->proven) {
        drop(port, arrival);
        return;
    }
    got = recv(arrival->fd, claim + arrival->claim_bytes,
               sizeof arrival->claim - arrival->claim_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        drop_stranger(port, arrival, "it ended before it said who it is");
        return;
    }
    arrival->claim_bytes += (unsigned)got;
    if (arrival->claim_bytes < sizeof arrival->claim)
        return;
    if (!tcp_claim_valid(&arrival->claim, &arrival->challenge, port->key, &arrival->place)) {
        drop_stranger(port, arrival, "it does not hold this run's key");
        return;
    }
    if (port->proven >= PROVEN_MAX) {
        drop_stranger(port, arrival, "too many connections wait for a later phase");
        return;
    }
    arrival->proven = true;
    port->half_open--;
    port->proven++;
}

static void drop_slow(struct transport_port *port, int64_t now_ns)
{
    bool crowded = port->half_open >= HALF_OPEN_MAX;
    int64_t patience_ns = crowded ? CLAIM_CROWDED_NS : CLAIM_TIMEOUT_NS;
    struct tcp_arrival *next;

    for (struct tcp_arrival *a = port->arrivals; a && port->half_open > 0; a = next) {
        next = a->next;
        if (!a->proven && now_ns - a->came_ns >= patience_ns)
            drop_stranger(port, a, "it did not say who it is in time");
    }
}

void tcp_reception_work(struct transport_port *port, int64_t now_ns)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(port->epoll, events, EVENTS, 0);
    bool knocking = false;

    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            knocking = true;
        else if (events[i].data.ptr != port) /* a connection out: settle reads it */
            read_claim(port, events[i].data.ptr);
    }
    drop_slow(port, now_ns);
    if (knocking)
        accept_some(port, now_ns);
}

static bool belongs(const struct tcp_arrival *arrival, const struct phase *phase)
{
    return arrival->proven && arrival->place.trial == phase->trial &&
           arrival->place.phase == phase->number && arrival->place.tag == phase->tag;
}

struct tcp_arrival *tcp_reception_take(struct transport_port *port, const struct phase *phase)
{
    for (struct tcp_arrival **link = &port->arrivals; *link; link = &(*link)->next)
        if (belongs(*link, phase))
            return detach(port, link);
    return NULL;
}

void tcp_reception_forget(struct transport_port *port, const struct phase *phase)
{
    struct tcp_arrival *arrival;

    while ((arrival = tcp_reception_take(port, phase)) != NULL) {
        close(arrival->fd);
        free(arrival);
    }
}

void tcp_reception_close(struct transport_port *port)
{
    while (port->arrivals)
        drop(port, port->arrivals);
}
