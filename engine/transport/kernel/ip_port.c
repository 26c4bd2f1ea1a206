/* SPDX-License-Identifier: BSD-3-Clause */
#include "ip_port.h"

#include "device.h"
#include "netns.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How partners reach a port, and how quickly it sends: the blob. In network byte order. */
struct reach {
    uint8_t family; /* 4 or 6 */
    uint8_t zero;
    uint16_t port;
    uint8_t address[16];
    uint32_t line_bps[2]; /* high word first; 0: not known */
};
static_assert(sizeof(struct reach) == 28, "layout");
static_assert(sizeof(struct reach) <= BLOB_BYTES_MAX, "fits into a blob");

/* --- addresses --- */

const char *ip_address_text(const struct sockaddr_storage *address, char text[IP_ADDRESS_TEXT])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    char host[INET6_ADDRSTRLEN] = "?";
    bool is_v6 = address->ss_family == AF_INET6;

    inet_ntop(address->ss_family,
              is_v6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, host,
              sizeof host);
    snprintf(text, IP_ADDRESS_TEXT, "%s port %u", host,
             ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
    return text;
}

void ip_port_address(const struct ip_port *port, struct blob *blob)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&port->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&port->address;
    struct reach reach = {.family = 4};
    uint64_t line_bps = port->conf->line_rate_bps;

    if (line_bps == 0)
        line_bps = kernel_device_speed_bps(port->netlink, port->iface);
    reach.line_bps[0] = htonl((uint32_t)(line_bps >> 32));
    reach.line_bps[1] = htonl((uint32_t)line_bps);
    if (port->address.ss_family == AF_INET6) {
        reach.family = 6;
        reach.port = v6->sin6_port;
        memcpy(reach.address, &v6->sin6_addr, sizeof v6->sin6_addr);
    } else {
        reach.port = v4->sin_port;
        memcpy(reach.address, &v4->sin_addr, sizeof v4->sin_addr);
    }
    blob->size = sizeof reach;
    memcpy(blob->bytes, &reach, sizeof reach);
}

bool ip_port_partner(const struct ip_port *port, const struct blob *blob,
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
        v4->sin_port = reach.port;
        memcpy(&v4->sin_addr, reach.address, sizeof v4->sin_addr);
    } else if (reach.family == 6) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = reach.port;
        memcpy(&v6->sin6_addr, reach.address, sizeof v6->sin6_addr);
        if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
            v6->sin6_scope_id = (uint32_t)port->ifindex;
    }
    return address->ss_family != AF_UNSPEC;
}

uint64_t ip_port_partner_line_bps(const struct blob *blob)
{
    struct reach reach;

    memcpy(&reach, blob->bytes, sizeof reach);
    return (uint64_t)ntohl(reach.line_bps[0]) << 32 | ntohl(reach.line_bps[1]);
}

/* Between two addresses of one namespace the kernel takes the loopback interface: such a flow
 * would say nothing about the network. */
int ip_port_check_partner(const struct ip_port *port, const struct blob *blob, uint32_t rank,
                          struct sockaddr_storage *address, struct err *err)
{
    const char *name = port->conf->name;
    char text[IP_ADDRESS_TEXT];
    const void *bytes;

    if (!ip_port_partner(port, blob, address))
        return err_set(err, -EINVAL, "%s: rank %u gave no %s address", name, rank, port->transport);
    if (address->ss_family != port->address.ss_family)
        return err_set(err, -EAFNOSUPPORT,
                       "%s: rank %u is at %s, another address family than this port's; give both "
                       "ports addresses of one family",
                       name, rank, ip_address_text(address, text));
    bytes = address->ss_family == AF_INET6
                ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    if (!port->loopback && route_is_local(port->netlink, address->ss_family, bytes, 0))
        return err_set(err, -EINVAL,
                       "%s: %s (rank %u) is on this same host, so the bytes would never leave it; "
                       "put each port into a network namespace of its own (netns)",
                       name, ip_address_text(address, text), rank);
    return 0;
}

/* --- facts and counters --- */

/* Those that do not change. */
static void find_facts(struct ip_port *port, const struct link_state *link)
{
    struct port_facts *facts = &port->facts;
    const uint8_t *m = link->mac;
    char text[IP_ADDRESS_TEXT];

    *facts =
        (struct port_facts){.mtu = link->mtu, .connect_fd = -1, .hardware = PORT_HARDWARE_UNKNOWN};
    snprintf(facts->driver, sizeof facts->driver, "%s", port->transport);
    snprintf(facts->mac, sizeof facts->mac, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3],
             m[4], m[5]);
    facts->link_bps = kernel_device_speed_bps(port->netlink, port->iface);
    facts->numa_node = kernel_device_numa_node(port->netlink, port->iface);
    kernel_device_offloads(port->netlink, port->iface, facts->offloads, sizeof facts->offloads);
    if (port->address.ss_family == AF_UNSPEC)
        return;
    ip_address_text(&port->address, text);
    text[strcspn(text, " ")] = '\0';
    if (port->address.ss_family == AF_INET6)
        snprintf(facts->ipv6, sizeof facts->ipv6, "%.45s", text);
    else
        snprintf(facts->ipv4, sizeof facts->ipv4, "%.15s", text);
}

static void read_counters(struct ip_port *port, const struct link_state *link,
                          struct port_hardware *counters)
{
    const struct rtnl_link_stats64 *base = &port->base, *now = &link->stats;
    int64_t drops = link_queue_drops(port->netlink, port->ifindex);

    counters->received_frames = (int64_t)(now->rx_packets - base->rx_packets);
    counters->sent_frames = (int64_t)(now->tx_packets - base->tx_packets);
    counters->dropped_receive = (int64_t)(now->rx_dropped - base->rx_dropped +
                                          now->rx_missed_errors - base->rx_missed_errors);
    link_drops_update(&port->drops, link);
    counters->dropped_send = (int64_t)port->drops.host;
    counters->no_carrier = (int64_t)port->drops.no_carrier;
    if (drops >= 0 && port->base_drops >= 0)
        counters->dropped_send += drops - port->base_drops;
    counters->errors =
        (int64_t)(now->rx_errors - base->rx_errors + now->tx_errors - base->tx_errors);
}

void ip_port_facts(struct ip_port *port, struct port_facts *facts, bool counters)
{
    struct link_state link;

    *facts = port->facts;
    if (link_read(port->netlink, port->ifindex, &link) != 0)
        return;
    facts->link_up = link_is_running(&link);
    if (counters)
        read_counters(port, &link, &facts->hardware);
}

/* --- open --- */

/* A socket at the address; its port becomes part of that. */
static int bind_socket(struct ip_port *port, int type, struct err *err)
{
    struct sockaddr *address = (struct sockaddr *)&port->address;
    socklen_t size = sizeof port->address;
    char text[IP_ADDRESS_TEXT];
    int one = 1;

    port->socket = socket(port->address.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->socket < 0)
        return err_set(err, -errno, "%s: can't make a socket: %s", port->conf->name,
                       strerror(errno));
    /* Allowed to everybody since Linux 5.7, and a refinement only: the address decides. */
    if (!port->loopback)
        setsockopt(port->socket, SOL_SOCKET, SO_BINDTODEVICE, port->iface,
                   (socklen_t)strlen(port->iface));
    if (port->address.ss_family == AF_INET6)
        setsockopt(port->socket, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(port->socket, address, size) || getsockname(port->socket, address, &size))
        return err_set(err, -errno, "%s: can't receive at %s: %s", port->conf->name,
                       ip_address_text(&port->address, text), strerror(errno));
    return 0;
}

int ip_port_link(struct ip_port *port, struct link_state *link, struct err *err)
{
    const char *name = port->conf->name;
    int rc;

    port->ifindex = (int)if_nametoindex(port->iface);
    port->netlink = netlink_open();
    if (port->netlink < 0)
        return err_set(err, port->netlink, "%s: can't ask the kernel for its links: %s", name,
                       strerror(-port->netlink));
    rc = port->ifindex == 0 ? -ENODEV : link_read(port->netlink, port->ifindex, link);
    if (rc)
        return err_set(err, rc, "%s: can't read the state of %s: %s", name, port->iface,
                       strerror(-rc));
    port->loopback = link->flags & IFF_LOOPBACK;
    port->base = link->stats;
    link_drops_begin(&port->drops, link);
    port->base_drops = link_queue_drops(port->netlink, port->ifindex);
    find_facts(port, link);
    return 0;
}

static int open_inside(struct ip_port *port, int type, struct err *err)
{
    struct link_state link;
    int rc = kernel_device_address(port->conf, port->transport, &port->address, port->iface, err);

    if (rc == 0)
        rc = ip_port_link(port, &link, err);
    if (rc == 0)
        rc = bind_socket(port, type, err);
    if (rc == 0)
        ip_port_address(port, &port->facts.address);
    return rc;
}

int ip_port_open(struct ip_port *port, const struct port_conf *conf, const char *transport,
                 int type, struct err *err)
{
    int home = -1;
    int rc;

    *port = (struct ip_port){.conf = conf, .transport = transport, .netlink = -1, .socket = -1};
    rc = netns_enter(conf->netns, &home, err);
    if (rc == 0)
        rc = open_inside(port, type, err);
    netns_leave(home);
    return rc;
}

void ip_port_close(struct ip_port *port)
{
    if (port->netlink >= 0)
        close(port->netlink);
    if (port->socket >= 0)
        close(port->socket);
}

int ip_port_buffer(const struct ip_port *port, int fd, int option, uint32_t bytes, struct err *err)
{
    bool sends = option == SO_SNDBUF;
    int asked = bytes > INT32_MAX / 2 ? INT32_MAX / 2 : (int)bytes;
    int effective = 0;
    socklen_t size = sizeof effective;

    if (bytes == 0)
        return 0;
    if (setsockopt(fd, SOL_SOCKET, sends ? SO_SNDBUFFORCE : SO_RCVBUFFORCE, &asked, sizeof asked))
        setsockopt(fd, SOL_SOCKET, option, &asked, sizeof asked);
    getsockopt(fd, SOL_SOCKET, option, &effective, &size);
    /* The kernel doubles what is asked for, to have room for its own bookkeeping (socket(7)). */
    if ((uint32_t)effective / 2 >= bytes)
        return 0;
    return err_set(err, -EINVAL,
                   "%s: a %s buffer of %u bytes was asked for, %d is what the kernel gives; raise "
                   "net.core.%s or ask for less",
                   port->conf->name, sends ? "send" : "receive", bytes, effective / 2,
                   sends ? "wmem_max" : "rmem_max");
}
