/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports of DPDK's net_ring for tests, whose frames pass by reference: a frame that port i sends is
 * in sent[i] until a test takes it, and the port receives the frames in received[i].
 */
#ifndef TESTS_TRANSPORT_RING_PORTS_H
#define TESTS_TRANSPORT_RING_PORTS_H

#include "transport.h"

#include <stdbool.h>

struct rte_mbuf;
struct rte_ring;

#define RING_PORTS 4 /* maximum number of ports */

struct ring_ports {
    struct rte_ring *sent[RING_PORTS];
    struct rte_ring *received[RING_PORTS];
};

/* Describe port i on a device: node<i>:e0, 198.18.0.<i + 1>/16, 2001:2::<i + 1>/64. Its strings
 * live as long as the program, except the device's. */
void ring_ports_describe(struct port_conf *conf, unsigned i, const char *vdev);

/* Start DPDK and make `count` ports, once in a program. `crossed`: each of two ports receives what
 * the other sends; else sent frames wait for the test to carry them. Return NULL, or why they can't
 * be made here. */
const char *ring_ports_make(struct ring_ports *ports, unsigned count, bool crossed,
                            struct port_conf *confs);

/* Return a copy of a frame, which is its sender's buffer; the caller frees it. Only the thread that
 * carries frames may call this. */
struct rte_mbuf *ring_ports_copy(const struct rte_mbuf *frame);

#endif
