/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "stream.h"

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
 * long the oldest stays however many others come after it (acceptor.c). */
#define HALF_OPEN_MOST 4096u
#define HALF_OPEN_LEAST 64u
#define BACKLOG 4096 /* a whole phase's connections may come before the main thread looks */

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
    p->half_open_most = raise_descriptor_limit();
    tcp_payload_init();
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
    tcp_acceptor_close(port);
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
