/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "device.h"
#include "netns.h"
#include "payload.h"

#include <arpa/inet.h>
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
 * long the oldest stays however many others come after it (reception.c). */
#define HALF_OPEN_MOST 4096u
#define HALF_OPEN_LEAST 64u
#define BACKLOG 4096 /* a whole phase's connections may come before the main thread looks */

/* How partners reach this port: the blob. */
struct reach {
    uint8_t family; /* 4 or 6 */
    uint8_t zero;
    uint16_t tcp_port; /* network byte order */
    uint8_t address[16];
};
static_assert(sizeof(struct reach) == 20, "layout");
static_assert(sizeof(struct reach) <= BLOB_BYTES_MAX, "fits into a blob");

/* --- addresses --- */

const char *tcp_address_text(const struct sockaddr_storage *address, char text[TCP_ADDRESS_TEXT])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    char host[INET6_ADDRSTRLEN] = "?";
    bool is_v6 = address->ss_family == AF_INET6;

    inet_ntop(address->ss_family,
              is_v6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, host,
              sizeof host);
    snprintf(text, TCP_ADDRESS_TEXT, "%s port %u", host,
             ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
    return text;
}

void tcp_port_address(struct transport_port *port, struct blob *blob)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&port->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&port->address;
    struct reach reach = {.family = 4};

    if (port->address.ss_family == AF_INET6) {
        reach.family = 6;
        reach.tcp_port = v6->sin6_port;
        memcpy(reach.address, &v6->sin6_addr, sizeof v6->sin6_addr);
    } else {
        reach.tcp_port = v4->sin_port;
        memcpy(reach.address, &v4->sin_addr, sizeof v4->sin_addr);
    }
    blob->size = sizeof reach;
    memcpy(blob->bytes, &reach, sizeof reach);
}

bool tcp_port_partner(const struct transport_port *port, const struct blob *blob,
                      struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    struct reach reach;

    memset(address, 0, sizeof *address);
    if (blob->size != sizeof reach)
        return false;
    memcpy(&reach, blob->bytes, sizeof reach);
    if (reach.family == 4) {
        v4->sin_family = AF_INET;
        v4->sin_port = reach.tcp_port;
        memcpy(&v4->sin_addr, reach.address, sizeof v4->sin_addr);
    } else if (reach.family == 6) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = reach.tcp_port;
        memcpy(&v6->sin6_addr, reach.address, sizeof v6->sin6_addr);
        if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
            v6->sin6_scope_id = (uint32_t)port->ifindex;
    }
    return address->ss_family != AF_UNSPEC;
}

/* --- open --- */

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
    socklen_t size = sizeof port->address;
    char text[TCP_ADDRESS_TEXT];
    int one = 1;

    port->listener = socket(port->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->listener < 0)
        return err_set(err, -errno, "%s: can't make a socket: %s", port->conf->name,
                       strerror(errno));
    /* Allowed to everybody since Linux 5.7, and a refinement only: the address decides. */
    if (!port->loopback)
        setsockopt(port->listener, SOL_SOCKET, SO_BINDTODEVICE, port->iface,
                   (socklen_t)strlen(port->iface));
    if (port->address.ss_family == AF_INET6)
        setsockopt(port->listener, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(port->listener, (const struct sockaddr *)&port->address, sizeof port->address) ||
        listen(port->listener, BACKLOG) ||
        getsockname(port->listener, (struct sockaddr *)&port->address, &size))
        return err_set(err, -errno, "%s: can't listen on %s: %s", port->conf->name,
                       tcp_address_text(&port->address, text), strerror(errno));
    return 0;
}

/* What has to be made inside the port's namespace. */
static int open_inside(struct transport_port *port, struct err *err)
{
    struct tcp_link link;
    int rc = tcp_device_address(port->conf, &port->address, port->iface, err);

    if (rc)
        return rc;
    port->ifindex = (int)if_nametoindex(port->iface);
    port->netlink = tcp_netlink_open();
    if (port->netlink < 0)
        return err_set(err, port->netlink, "%s: can't ask the kernel for its links: %s",
                       port->conf->name, strerror(-port->netlink));
    rc = tcp_netlink_link(port->netlink, port->ifindex, &link);
    if (rc)
        return err_set(err, rc, "%s: can't read the state of %s: %s", port->conf->name, port->iface,
                       strerror(-rc));
    port->loopback = link.loopback;
    port->base = link.stats;
    port->base_drops = tcp_netlink_queue_drops(port->netlink, port->ifindex);
    return listen_on(port, err);
}

static int watch_listener(struct transport_port *port)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    port->epoll = epoll_create1(EPOLL_CLOEXEC);
    port->listening = true;
    if (port->epoll < 0 || epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->listener, &event))
        return -errno;
    return 0;
}

int tcp_port_open(struct transport_port **port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err)
{
    struct transport_port *p = calloc(1, sizeof *p);
    int home = -1;
    int rc;

    (void)run;
    if (!p)
        return err_set(err, -ENOMEM, "%s: out of memory", conf->name);
    if (sodium_init() < 0)
        rc = err_set(err, -ENOSYS, "%s: libsodium can't be initialised", conf->name);
    else
        rc = netns_enter(conf->netns, &home, err);
    if (rc < 0) {
        free(p);
        return rc;
    }
    p->conf = conf;
    p->netlink = p->listener = p->epoll = -1;
    tcp_payload_init();
    p->half_open_most = raise_descriptor_limit();
    rc = open_inside(p, err);
    netns_leave(home);
    if (rc == 0 && (rc = watch_listener(p)) != 0)
        err_set(err, rc, "%s: can't watch a socket: %s", conf->name, strerror(-rc));
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

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void tcp_port_close(struct transport_port *port)
{
    tcp_reception_close(port);
    close_fd(port->listener);
    close_fd(port->netlink);
    close_fd(port->epoll);
    sodium_memzero(port->key, sizeof port->key);
    free(port);
}

/* --- facts and counters --- */

void tcp_port_facts(struct transport_port *port, struct port_facts *facts)
{
    socklen_t size = sizeof facts->congestion;
    struct tcp_link link;
    char text[TCP_ADDRESS_TEXT];

    *facts = (struct port_facts){.numa_node = -1};
    snprintf(facts->driver, sizeof facts->driver, "tcp");
    tcp_address_text(&port->address, text);
    text[strcspn(text, " ")] = '\0';
    if (port->address.ss_family == AF_INET6)
        snprintf(facts->ipv6, sizeof facts->ipv6, "%.45s", text);
    else
        snprintf(facts->ipv4, sizeof facts->ipv4, "%.15s", text);
    if (tcp_netlink_link(port->netlink, port->ifindex, &link) == 0) {
        const uint8_t *m = link.mac;

        snprintf(facts->mac, sizeof facts->mac, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2],
                 m[3], m[4], m[5]);
        facts->mtu = link.mtu;
    }
    facts->link_bps = tcp_device_speed_bps(port->listener, port->iface);
    facts->numa_node = tcp_device_numa_node(port->listener, port->iface);
    tcp_device_offloads(port->listener, port->iface, facts->offloads, sizeof facts->offloads);
    /* The namespace's, which /proc/sys would not show from outside of it. */
    getsockopt(port->listener, IPPROTO_TCP, TCP_CONGESTION, facts->congestion, &size);
}

bool tcp_port_link_up(struct transport_port *port)
{
    struct tcp_link link;

    return tcp_netlink_link(port->netlink, port->ifindex, &link) == 0 && link.up;
}

int tcp_port_settle_fd(struct transport_port *port)
{
    return port->epoll;
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

void tcp_port_hardware(struct transport_port *port, struct port_hardware *counters)
{
    const struct rtnl_link_stats64 *base = &port->base;
    struct tcp_link link;
    struct rtnl_link_stats64 *now = &link.stats;
    int64_t drops;

    *counters = PORT_HARDWARE_UNKNOWN;
    if (tcp_netlink_link(port->netlink, port->ifindex, &link))
        return;
    drops = tcp_netlink_queue_drops(port->netlink, port->ifindex);
    counters->received_frames = (int64_t)(now->rx_packets - base->rx_packets);
    counters->sent_frames = (int64_t)(now->tx_packets - base->tx_packets);
    counters->dropped_receive = (int64_t)(now->rx_dropped - base->rx_dropped +
                                          now->rx_missed_errors - base->rx_missed_errors);
    counters->dropped_send = (int64_t)(now->tx_dropped - base->tx_dropped);
    if (drops >= 0 && port->base_drops >= 0)
        counters->dropped_send += drops - port->base_drops;
    counters->errors =
        (int64_t)(now->rx_errors - base->rx_errors + now->tx_errors - base->tx_errors);
}
