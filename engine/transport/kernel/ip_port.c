/* SPDX-License-Identifier: BSD-3-Clause */
#include "ip_port.h"

#include "device.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How partners reach a port: the blob. */
struct reach {
    uint8_t family; /* 4 or 6 */
    uint8_t zero;
    uint16_t port; /* network byte order */
    uint8_t address[16];
};
static_assert(sizeof(struct reach) == 20, "layout");
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

void ip_port_blob(const struct ip_port *port, struct blob *blob)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&port->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&port->address;
    struct reach reach = {.family = 4};

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

/* Between two addresses of one namespace the kernel takes the loopback interface: such a flow
 * would say nothing about the network. */
int ip_port_check_partner(const struct ip_port *port, const struct blob *blob, uint32_t rank,
                          struct sockaddr_storage *address, struct err *err)
{
    const char *name = port->conf->name;
    char text[IP_ADDRESS_TEXT];

    if (!ip_port_partner(port, blob, address))
        return err_set(err, -EINVAL, "%s: rank %u gave no %s address", name, rank, port->transport);
    if (address->ss_family != port->address.ss_family)
        return err_set(err, -EAFNOSUPPORT,
                       "%s: rank %u is at %s, another address family than this port's; give both "
                       "ports addresses of one family",
                       name, rank, ip_address_text(address, text));
    if (!port->loopback && kernel_netlink_is_local(port->netlink, address))
        return err_set(err, -EINVAL,
                       "%s: %s (rank %u) is on this same host, so the bytes would never leave it; "
                       "put each port into a network namespace of its own (netns)",
                       name, ip_address_text(address, text), rank);
    return 0;
}

/* --- open --- */

int ip_port_open(struct ip_port *port, const struct port_conf *conf, const char *transport,
                 struct err *err)
{
    struct kernel_link link;
    int rc;

    *port = (struct ip_port){.conf = conf, .transport = transport, .netlink = -1};
    rc = kernel_device_address(conf, transport, &port->address, port->iface, err);
    if (rc)
        return rc;
    port->ifindex = (int)if_nametoindex(port->iface);
    port->netlink = kernel_netlink_open();
    if (port->netlink < 0)
        return err_set(err, port->netlink, "%s: can't ask the kernel for its links: %s", conf->name,
                       strerror(-port->netlink));
    rc = kernel_netlink_link(port->netlink, port->ifindex, &link);
    if (rc)
        return err_set(err, rc, "%s: can't read the state of %s: %s", conf->name, port->iface,
                       strerror(-rc));
    port->loopback = link.loopback;
    port->base = link.stats;
    port->base_drops = kernel_netlink_queue_drops(port->netlink, port->ifindex);
    return 0;
}

void ip_port_close(struct ip_port *port)
{
    if (port->netlink >= 0)
        close(port->netlink);
}

int ip_port_bind(struct ip_port *port, int fd)
{
    struct sockaddr *address = (struct sockaddr *)&port->address;
    socklen_t size = sizeof port->address;
    int one = 1;

    /* Allowed to everybody since Linux 5.7, and a refinement only: the address decides. */
    if (!port->loopback)
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, port->iface, (socklen_t)strlen(port->iface));
    if (port->address.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    return bind(fd, address, size) || getsockname(fd, address, &size) ? -errno : 0;
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

/* --- facts and counters --- */

void ip_port_facts(const struct ip_port *port, struct port_facts *facts)
{
    struct kernel_link link;
    char text[IP_ADDRESS_TEXT];

    *facts = (struct port_facts){.numa_node = -1};
    snprintf(facts->driver, sizeof facts->driver, "%s", port->transport);
    ip_address_text(&port->address, text);
    text[strcspn(text, " ")] = '\0';
    if (port->address.ss_family == AF_INET6)
        snprintf(facts->ipv6, sizeof facts->ipv6, "%.45s", text);
    else
        snprintf(facts->ipv4, sizeof facts->ipv4, "%.15s", text);
    if (kernel_netlink_link(port->netlink, port->ifindex, &link) == 0) {
        const uint8_t *m = link.mac;

        snprintf(facts->mac, sizeof facts->mac, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2],
                 m[3], m[4], m[5]);
        facts->mtu = link.mtu;
    }
    facts->link_bps = kernel_device_speed_bps(port->netlink, port->iface);
    facts->numa_node = kernel_device_numa_node(port->netlink, port->iface);
    kernel_device_offloads(port->netlink, port->iface, facts->offloads, sizeof facts->offloads);
}

bool ip_port_link_up(const struct ip_port *port)
{
    struct kernel_link link;

    return kernel_netlink_link(port->netlink, port->ifindex, &link) == 0 && link.up;
}

void ip_port_hardware(const struct ip_port *port, struct port_hardware *counters)
{
    const struct rtnl_link_stats64 *base = &port->base;
    struct kernel_link link;
    struct rtnl_link_stats64 *now = &link.stats;
    int64_t drops;

    *counters = PORT_HARDWARE_UNKNOWN;
    if (kernel_netlink_link(port->netlink, port->ifindex, &link))
        return;
    drops = kernel_netlink_queue_drops(port->netlink, port->ifindex);
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
