/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A udp port: one socket, through which all phases send and receive.
 *
 * The phase's tag in each datagram tells them apart.
 */
#ifndef ENGINE_UDP_PORT_H
#define ENGINE_UDP_PORT_H

#include "ip_port.h"
#include "transport.h"

#define UDP_ETHERNET 14u /**< bytes of headers */
#define UDP_HEADER 8u

struct transport_port {
    struct ip_port ip; /**< first */
    int statistics;    /**< the namespace's counters of UDP, as text; -1: none */
    bool segments;     /**< the device, or the kernel before it, cuts what is sent together */
    uint32_t mtu;      /**< the interface's */
    uint32_t headers;  /**< of IP and UDP */
    uint32_t lanes;    /**< prepared and not destroyed */
    /** @brief By the worker, and read when it is through with a phase. */
    uint64_t sent;            /**< datagrams that the kernel took */
    uint64_t received;        /**< and that it handed over */
    uint64_t forward_dropped; /**< frames that a forwarder had no room for */
    int64_t base_damaged;
};

int udp_port_open(struct transport_port **port, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err);
void udp_port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void udp_port_close(struct transport_port *port);

#endif
