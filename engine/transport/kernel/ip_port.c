/* SPDX-License-Identifier: BSD-3-Clause */
#include "ip_port.h"

#include "ethtool.h"
#include "netns.h"
#include "sysfs.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Contents of a port's blob: the port's address and its line rate. */
struct reach {
    struct sockaddr_in6 address; /* or a struct sockaddr_in; link-local without scope */
    uint64_t line_bps;           /* 0: not known */
};
static_assert(sizeof(struct reach) <= BLOB_BYTES_MAX, "fits into a blob");

/* --- addresses --- */

void ip_port_address(const struct ip_port *port, struct blob *blob)
{
    struct reach reach = {.line_bps = port->conf->line_rate_bps > 0 ? port->conf->line_rate_bps
                                                                    : port->facts.link_bps};

    memcpy(&reach.address, &port->address, sizeof reach.address);
    blob->size = sizeof reach;
    memcpy(blob->bytes, &reach, sizeof reach);
}

bool ip_port_partner(const struct ip_port *port, const struct blob *blob,
                     struct sockaddr_storage *address)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof *address);
    if (blob->size != sizeof(struct reach))
        return false;
    memcpy(address, blob->bytes, sizeof *v6); /* first member of struct reach */
    if (address->ss_family == AF_INET6)
        v6->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? (uint32_t)port->ifindex : 0;
    return address->ss_family == AF_INET || address->ss_family == AF_INET6;
}

/* Read a partner's address, and reject it if it is in this namespace: between two addresses of one
 * namespace the kernel uses the loopback interface, so a flow would not measure the network. */
int ip_port_check_partner(const struct ip_port *port, const struct blob *blob, uint32_t rank,
                          struct sockaddr_storage *address, uint64_t *line_bps, struct err *err)
{
    const char *name = port->conf->name;
    char text[ADDRESS_TEXT_MAX];

    if (!ip_port_partner(port, blob, address))
        return err_set(err, -EINVAL, "%s: rank %u has sent no %s address", name, rank,
                       port->transport);
    memcpy(line_bps, blob->bytes + offsetof(struct reach, line_bps), sizeof *line_bps);
    if (address->ss_family != port->address.ss_family)
        return err_set(err, -EAFNOSUPPORT,
                       "%s: rank %u is at %s, another address family than this port's; give both "
                       "ports addresses of one family",
                       name, rank, address_text(address, text));
    if (!port->loopback &&
        route_is_local(port->netlink, address->ss_family, address_bytes(address), 0))
        return err_set(err, -EINVAL,
                       "%s: %s (rank %u) is on this same host, so the bytes would never leave it; "
                       "put each port into a network namespace of its own (netns)",
                       name, address_text(address, text), rank);
    return 0;
}

/* --- the port's own address --- */

/* Return the preference of an interface's address, for a port without a configured address; a
 * larger number is preferred, 0 is never used. */
static int rank_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return 3;
    if (address->sa_family != AF_INET6)
        return 0;
    return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr)
               ? 1
               : 2;
}

/* Find the port's configured address in this namespace, or the preferred address of its interface.
 */
static int find_address(struct ip_port *port, const struct ifaddrs *all, struct err *err)
{
    const struct port_conf *conf = port->conf;
    struct sockaddr_storage *address = &port->address;
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    const struct ifaddrs *best = NULL;

    if (conf->tcp_address != NULL && inet_pton(AF_INET, conf->tcp_address, &v4->sin_addr) == 1)
        address->ss_family = AF_INET;
    else if (conf->tcp_address != NULL &&
             inet_pton(AF_INET6, conf->tcp_address, &v6->sin6_addr) == 1)
        address->ss_family = AF_INET6;
    else if (conf->tcp_address != NULL)
        return err_set(err, -EINVAL, "%s: `%s` is not an IPv4 or IPv6 address", conf->name,
                       conf->tcp_address);
    for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
        if (a->ifa_addr != NULL && (conf->iface == NULL || strcmp(conf->iface, a->ifa_name) == 0) &&
            (conf->tcp_address == NULL || address_same(address, a->ifa_addr)) &&
            rank_of(a->ifa_addr) > (best != NULL ? rank_of(best->ifa_addr) : 0))
            best = a;
    if (best != NULL) {
        memcpy(address, best->ifa_addr,
               best->ifa_addr->sa_family == AF_INET ? sizeof *v4 : sizeof *v6);
        snprintf(port->iface, sizeof port->iface, "%s", best->ifa_name);
        return 0;
    }
    /* The kernel has all of 127.0.0.0/8 on the loopback interface, but lists only one address. */
    if (conf->tcp_address != NULL && address->ss_family == AF_INET &&
        ntohl(v4->sin_addr.s_addr) >> 24 == 127 &&
        (conf->iface == NULL || strcmp(conf->iface, "lo") == 0)) {
        snprintf(port->iface, sizeof port->iface, "lo");
        return 0;
    }
    if (conf->tcp_address != NULL)
        return err_set(err, -EADDRNOTAVAIL, "%s: address %s is not on %s%s; see `ip address`",
                       conf->name, conf->tcp_address, conf->iface ? "interface " : "any interface",
                       conf->iface ? conf->iface : "");
    return err_set(err, -EADDRNOTAVAIL, "%s: interface %s has no IP address; %s needs one",
                   conf->name, conf->iface, port->transport);
}

/* --- facts and counters --- */

/* Set the properties of a port that do not change while it is open. */
static void find_facts(struct ip_port *port)
{
    static const struct {
        uint32_t command;
        const char *word; /* of ethtool's */
    } offloads[] = {
        {ETHTOOL_GTXCSUM, "tx"}, {ETHTOOL_GRXCSUM, "rx"}, {ETHTOOL_GTSO, "tso"},
        {ETHTOOL_GGSO, "gso"},   {ETHTOOL_GGRO, "gro"},
    };
    const struct link_state *link = &port->link;
    const struct ethtool_drvinfo driver = ethtool_driver(port->netlink, port->iface);
    struct port_facts *facts = &port->facts;
    const uint8_t *m = link->mac;
    size_t used = 0;

    *facts =
        (struct port_facts){.mtu = link->mtu, .connect_fd = -1, .hardware = PORT_HARDWARE_UNKNOWN};
    snprintf(facts->driver, sizeof facts->driver, "%s", port->transport);
    snprintf(facts->mac, sizeof facts->mac, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3],
             m[4], m[5]);
    if (strcmp(driver.driver, "veth") != 0) /* whose speed is no line rate */
        facts->link_bps = ethtool_speed_bps(port->netlink, port->iface);
    port->has_wire = driver.bus_info[0] != '\0';
    /* By the bus address: /sys/class/net shows only the namespace that mounted it. */
    facts->numa_node =
        port->has_wire ? (int)sysfs_number(-1, "/sys/bus/pci/devices/%s/numa_node", driver.bus_info)
                       : -1;
    for (size_t i = 0; i < sizeof offloads / sizeof offloads[0]; i++)
        if (ethtool_number(port->netlink, port->iface, offloads[i].command) != 0)
            used += (size_t)snprintf(facts->offloads + used, sizeof facts->offloads - used, "%s%s",
                                     used ? "," : "", offloads[i].word);
    if (port->address.ss_family == AF_INET)
        inet_ntop(AF_INET, address_bytes(&port->address), facts->ipv4, sizeof facts->ipv4);
    else if (port->address.ss_family == AF_INET6)
        inet_ntop(AF_INET6, address_bytes(&port->address), facts->ipv6, sizeof facts->ipv6);
}

static void read_counters(struct ip_port *port, const struct link_state *link,
                          struct port_hardware *counters)
{
    const struct rtnl_link_stats64 *base = &port->link.stats, *now = &link->stats;
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
    device_counters_read(&port->statistics, port->netlink, port->iface, counters->device);
    counters->pause_received = counters->device[DEVICE_PAUSE_RECEIVED];
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

int64_t ip_port_dropped(const struct ip_port *port, const struct port_hardware *kernel,
                        int64_t taken)
{
    int64_t missing = taken - (port->conf->shared ? 0 : kernel->sent_frames);

    if (kernel->dropped_send < missing)
        return kernel->dropped_send;
    return missing > 0 ? missing : 0;
}

/* --- open --- */

/* Read the state of the port's interface, and the first values of its counters. Raw frames need an
 * Ethernet interface that is up. */
static int read_link(struct ip_port *port, int type, struct err *err)
{
    const char *name = port->conf->name;
    int rc;

    port->ifindex = (int)if_nametoindex(port->iface);
    port->netlink = netlink_open();
    if (port->netlink < 0)
        return err_set(err, port->netlink,
                       "%s: can't open a netlink socket to read the kernel's interfaces: %s", name,
                       strerror(-port->netlink));
    rc = port->ifindex == 0 ? -ENODEV : link_read(port->netlink, port->ifindex, &port->link);
    if (rc != 0)
        return err_set(err, rc, "%s: can't read the state of %s: %s", name, port->iface,
                       strerror(-rc));
    if (type == SOCK_RAW && port->link.type != ARPHRD_ETHER)
        return err_set(err, -EINVAL, "%s: interface '%s' is not an Ethernet interface", name,
                       port->iface);
    if (type == SOCK_RAW && !(port->link.flags & IFF_UP))
        return err_set(err, -ENETDOWN, "%s: interface '%s' is down: 'ip link set %s up'", name,
                       port->iface, port->iface);
    port->loopback = port->link.flags & IFF_LOOPBACK;
    link_drops_begin(&port->drops, &port->link);
    port->base_drops = link_queue_drops(port->netlink, port->ifindex);
    device_statistics_find(&port->statistics, port->netlink, port->iface);
    find_facts(port);
    return 0;
}

/* Open the port's socket, bind it to the port's address, and store the socket's port number in the
 * address. Raw sockets are bound by the caller. */
static int open_socket(struct ip_port *port, int type, struct err *err)
{
    struct sockaddr *address = (struct sockaddr *)&port->address;
    socklen_t size = sizeof port->address;
    char text[ADDRESS_TEXT_MAX];
    int one = 1;

    port->socket = socket(type == SOCK_RAW ? AF_PACKET : port->address.ss_family,
                          type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->socket < 0)
        return err_set(err, -errno, "%s: can't make a socket: %s%s", port->conf->name,
                       strerror(errno),
                       type == SOCK_RAW ? "; raw frames need the capabilities CAP_NET_RAW and "
                                          "CAP_NET_ADMIN: run as root, or use tcp or udp"
                                        : "");
    if (type == SOCK_RAW)
        return 0;
    /* Optional: the address alone decides. Linux allows it without privilege since 5.7. */
    if (!port->loopback)
        setsockopt(port->socket, SOL_SOCKET, SO_BINDTODEVICE, port->iface,
                   (socklen_t)strlen(port->iface));
    if (port->address.ss_family == AF_INET6)
        setsockopt(port->socket, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(port->socket, address, size) || getsockname(port->socket, address, &size))
        return err_set(err, -errno, "%s: can't receive at %s: %s", port->conf->name,
                       address_text(&port->address, text), strerror(errno));
    ip_port_address(port, &port->facts.address);
    return 0;
}

static int open_inside(struct ip_port *port, int type, struct err *err)
{
    const struct port_conf *conf = port->conf;
    struct ifaddrs *all = NULL;
    int rc = 0;

    if (conf->iface == NULL && (type == SOCK_RAW || conf->tcp_address == NULL))
        return err_set(err, -EINVAL, "%s: %s needs an interface (iface)%s", conf->name,
                       port->transport, type == SOCK_RAW ? "" : " or an address");
    if (conf->iface != NULL && if_nametoindex(conf->iface) == 0)
        return err_set(err, -ENODEV, "%s: there is no interface %s%s%s", conf->name, conf->iface,
                       conf->netns ? " in namespace " : "", conf->netns ? conf->netns : "");
    if (type == SOCK_RAW)
        snprintf(port->iface, sizeof port->iface, "%s", conf->iface);
    else if (getifaddrs(&all) != 0)
        return err_set(err, -errno, "%s: can't list addresses: %s", conf->name, strerror(errno));
    else
        rc = find_address(port, all, err);
    freeifaddrs(all);
    if (rc == 0)
        rc = read_link(port, type, err);
    return rc == 0 ? open_socket(port, type, err) : rc;
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
    /* The kernel doubles the requested size for its own bookkeeping (socket(7)). */
    if ((uint32_t)effective / 2 >= bytes)
        return 0;
    return err_set(err, -EINVAL,
                   "%s: the %s buffer is to have %u bytes, and the kernel allows %d; raise "
                   "net.core.%s or set fewer bytes",
                   port->conf->name, sends ? "send" : "receive", bytes, effective / 2,
                   sends ? "wmem_max" : "rmem_max");
}
