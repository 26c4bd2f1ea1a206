/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A DPDK port: one receive and one send queue of any device that DPDK knows.
 *
 * Two pools of frames, because the main thread prepares the next phase while a worker sends the
 * present one: each lane owns one, whose buffers all hold the phase's frame. A third pool is the
 * driver's, for what it receives.
 */
#ifndef ENGINE_DPDK_PORT_H
#define ENGINE_DPDK_PORT_H

#include "frame.h"
#include "guest.h"
#include "iface.h"
#include "transport.h"

#include <rte_mbuf.h>
#include <stdatomic.h>

#define PORT_POOLS 2
#define PORT_BURST_MAX 128u /* frames a driver call, at most */

struct dpdk_lane;

struct transport_port {
    const struct port_conf *conf;
    uint16_t id;   /* DPDK's number */
    bool attached; /* made by us: goes away at close */
    bool kernel;   /* sends through a kernel interface: */
    struct iface iface;
    bool by_reference; /* hands its buffers to the receiver (net_ring), who may rewrite them */
    char device[64];
    char driver[32];
    uint32_t frame_max; /* with FCS, without an 802.1Q tag */
    uint32_t room_max;  /* what a buffer holds */
    struct rte_mempool *receive_pool;
    struct rte_mempool *frames[PORT_POOLS];
    bool frames_taken[PORT_POOLS];
    /* The queues have one user at a time. The worker has them but for the moments in which the
     * main thread, settling the next lane, makes the port known to the network. */
    atomic_flag busy;
    struct guest guest;
    int64_t announced_ns;     /* 0: never */
    struct dpdk_lane *active; /* between its start and its finish */
    struct port_count idle;   /* counted while no lane was active; the next lane takes it over */
    struct port_count *count;
    uint64_t forward_dropped;
    struct iface_counts baseline;
};

int port_open(struct transport_port **port, const struct port_conf *conf,
              const struct transport_run *run, struct err *err);
void port_facts(struct transport_port *port, struct port_facts *facts);
bool port_link_up(struct transport_port *port);
void port_address(struct transport_port *port, struct blob *blob);
void port_hardware(struct transport_port *port, struct port_hardware *counters);
void port_close(struct transport_port *port);

/* A partner's blob: where it is and the largest frame that it takes (without a tag). False: not
 * the address of a DPDK port. `end->rank` is left alone. */
bool port_read_address(const struct blob *blob, struct frame_end *end, bool has_ip[2],
                       uint32_t *frame_max);

static inline bool port_seize(struct transport_port *port)
{
    return !atomic_flag_test_and_set_explicit(&port->busy, memory_order_acquire);
}

static inline void port_release(struct transport_port *port)
{
    atomic_flag_clear_explicit(&port->busy, memory_order_release);
}

/* The rest need the port seized. */

/* Sends one frame of the guest's; drops it when there is no room. */
void port_send_guest(struct transport_port *port, const uint8_t *frame, uint32_t length);
void port_announce(struct transport_port *port, int64_t now_ns);
/* Whether a received frame is for the guest: then it is counted and answered. */
bool port_hear(struct transport_port *port, const struct rte_mbuf *frame);
/* Receives what waits, while no lane does: answers the network, counts the rest as foreign. */
void port_listen(struct transport_port *port, int64_t now_ns);

/* Announcements go out so often: below any switch's ageing time (300 s by default, 10 s at the
 * least; IEEE 802.1Q 8.8.3). */
#define PORT_ANNOUNCE_NS 8000000000LL

#endif
