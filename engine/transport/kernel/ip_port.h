/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Port of a transport over the kernel's sockets: one address of one interface in one network
 * namespace, a socket bound to it, and the interface's counters.
 *
 * Main thread only.
 */
#ifndef ENGINE_KERNEL_IP_PORT_H
#define ENGINE_KERNEL_IP_PORT_H

#include "address.h"
#include "err.h"
#include "netlink.h"
#include "transport.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct ip_port {
    const struct port_conf *conf;
    const char *transport; /**< name, for messages */
    char iface[IF_NAMESIZE];
    int ifindex;
    bool loopback; /**< the port is the loopback interface */
    bool has_wire; /**< device on a bus; virtual interfaces pass a burst of frames as one */
    int netlink;
    int socket;
    struct sockaddr_storage address; /**< with the socket's port */
    struct port_facts facts;         /**< unchanging facts */
    struct link_state link;          /**< state at the opening of the port */
    int64_t base_drops;
    struct link_drops drops;
    struct device_statistics statistics;
};

/**
 * @brief Open a port in its namespace: find the address, bind a socket to it (`type`: SOCK_STREAM
 * or SOCK_DGRAM) and read the interface's counters. SOCK_RAW: an unbound packet socket of the
 * interface without an address.
 *
 * After a failure the port must be closed too.
 *
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int ip_port_open(struct ip_port *port, const struct port_conf *conf, const char *transport,
                 int type, struct err *err);
void ip_port_close(struct ip_port *port);
/** @brief Read a port's properties (`facts` in struct transport). */
void ip_port_facts(struct ip_port *port, struct port_facts *facts, bool counters);

/**
 * @brief Return how many of the `taken` frames that a raw socket accepted were dropped in this
 * host, as the interface's counters show.
 *
 * The interface counts attempts to send, so the result is at most the number of frames that did not
 * leave; on a shared port, other programs' frames leave, too.
 *
 * @return Number of frames; below 0: unknown.
 */
int64_t ip_port_dropped(const struct ip_port *port, const struct port_hardware *kernel,
                        int64_t taken);

/** @brief Write into a blob the address by which a port's partners reach the port. */
void ip_port_address(const struct ip_port *port, struct blob *blob);
/** @brief Read a partner's socket address from its blob; return false if the blob is not the
 * address of an IP port. */
bool ip_port_partner(const struct ip_port *port, const struct blob *blob,
                     struct sockaddr_storage *address);
/**
 * @brief Read the address of a partner, and check that this port's traffic reaches it over the
 * network.
 *
 * @param[out] line_bps Line rate of the partner's port; 0: unknown.
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int ip_port_check_partner(const struct ip_port *port, const struct blob *blob, uint32_t rank,
                          struct sockaddr_storage *address, uint64_t *line_bps, struct err *err);

/**
 * @brief Set the size of a socket's buffer (`option`: SO_SNDBUF, SO_RCVBUF); 0: the kernel's
 * choice.
 *
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int ip_port_buffer(const struct ip_port *port, int fd, int option, uint32_t bytes, struct err *err);

#endif
