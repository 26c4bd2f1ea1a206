/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A port's functions in the transport's table (transport.h).
 */
#ifndef ENGINE_DPDK_PORT_H
#define ENGINE_DPDK_PORT_H

#include "port_state.h"

int port_open(struct transport_port **port, const struct port_conf *conf,
              const struct transport_run *run, struct err *err);
void port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void port_close(struct transport_port *port);
/** @brief Of its line; 0: virtual, or unknown. */
uint64_t port_link_bps(const struct transport_port *port);

#endif
