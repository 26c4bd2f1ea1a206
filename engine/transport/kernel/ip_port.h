/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What transports over the kernel's sockets know of a port: one address of one interface in
 * one network namespace, a socket bound to it, and the interface's counters.
 *
 * All of it is the main thread's.
 */
#ifndef ENGINE_KERNEL_IP_PORT_H
#define ENGINE_KERNEL_IP_PORT_H

#include "err.h"
#include "netlink.h"
#include "transport.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct ip_port {
    const struct port_conf *conf;
    const char *transport; /**< its name, for messages */
    char iface[IF_NAMESIZE];
    int ifindex;
    bool loopback; /**< the port is the loopback interface itself */
    bool has_wire; /**< it is a device on a bus: others are the kernel's own, and pass a burst of
                      frames as one */
    int netlink;
    int socket;
    struct sockaddr_storage address; /**< with the socket's port */
    struct port_facts facts;         /**< those that do not change */
    struct link_state link;          /**< as it was when the port was opened */
    int64_t base_drops;
    struct link_drops drops;
    struct device_statistics statistics;
};

/**
 * @brief In the port's namespace: finds the address, binds a socket to it (`type`: SOCK_STREAM or
 * SOCK_DGRAM) and reads the interface's counters. SOCK_RAW: a packet socket of the interface, which
 * has no address and is not bound.
 *
 * On failure the port is to be closed, too.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int ip_port_open(struct ip_port *port, const struct port_conf *conf, const char *transport,
                 int type, struct err *err);
void ip_port_close(struct ip_port *port);
/** @brief As in the transport's table. */
void ip_port_facts(struct ip_port *port, struct port_facts *facts, bool counters);

/** @brief What partners are told; a part of the facts. */
void ip_port_address(const struct ip_port *port, struct blob *blob);
/** @brief The address in a partner's blob; false: not the address of such a port. */
bool ip_port_partner(const struct ip_port *port, const struct blob *blob,
                     struct sockaddr_storage *address);
/**
 * @brief The same of a partner that traffic of this port can reach over the network.
 *
 * @param line_bps Takes the line rate of its port; 0: not known.
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int ip_port_check_partner(const struct ip_port *port, const struct blob *blob, uint32_t rank,
                          struct sockaddr_storage *address, uint64_t *line_bps, struct err *err);

/**
 * @brief Asks for a buffer of so many bytes (`option`: SO_SNDBUF, SO_RCVBUF); 0: the kernel's
 * choice.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int ip_port_buffer(const struct ip_port *port, int fd, int option, uint32_t bytes, struct err *err);

/** @brief "10.0.0.2 port 4001". */
#define IP_ADDRESS_TEXT 64
const char *ip_address_text(const struct sockaddr_storage *address, char text[IP_ADDRESS_TEXT]);

#endif
