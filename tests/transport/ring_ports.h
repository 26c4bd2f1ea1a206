/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports of DPDK's net_ring for tests, whose frames go by reference: what port i sends lies in
 * sent[i] until a test takes it, and it receives what is put into received[i].
 */
#ifndef TESTS_TRANSPORT_RING_PORTS_H
#define TESTS_TRANSPORT_RING_PORTS_H

#include "transport.h"

#include <stdbool.h>

struct rte_mbuf;
struct rte_ring;

#define RING_PORTS 4 /* at most */

struct ring_ports {
    struct rte_ring *sent[RING_PORTS];
    struct rte_ring *received[RING_PORTS];
};

/* Describes port i on a device: node<i>:e0, 198.18.0.<i + 1>/16, 2001:2::<i + 1>/64. Its words
 * live as long as the program, but for the device's. */
void ring_ports_describe(struct port_conf *conf, unsigned i, const char *vdev);

/* Starts DPDK and makes `count` ports, once in a program. `crossed`: of two, each receives what the
 * other sends; else what is sent waits for a test's wire. Returns NULL, or why they can't be made
 * here. */
const char *ring_ports_make(struct ring_ports *ports, unsigned count, bool crossed,
                            struct port_conf *confs);

/* A copy of a frame, which is its sender's buffer; the caller's to free. From the thread of the
 * wire alone. */
struct rte_mbuf *ring_ports_copy(const struct rte_mbuf *frame);

#endif
