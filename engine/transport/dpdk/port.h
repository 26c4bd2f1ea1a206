/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A DPDK port: any device that DPDK knows, with one or more queues. A queue is what one core
 * uses: it receives, it sends, and it has its own buffers, so that queues share nothing.
 *
 * A queue has two pools of frames, because the main thread prepares the next phase while a worker
 * sends the present one: each lane owns one, whose buffers all hold the phase's frame. A third pool
 * is the driver's, for what it receives; the guest's frames and forwarded ones come from it too.
 *
 * A device that frees sent buffers fast (RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) puts a whole batch back
 * into the pool of its first buffer. So there each pool has a send queue of its own.
 */
#ifndef ENGINE_DPDK_PORT_H
#define ENGINE_DPDK_PORT_H

#include "arrival.h"
#include "frame.h"
#include "guest.h"
#include "iface.h"
#include "isolate.h"
#include "lock.h"
#include "transport.h"

#include <rte_mbuf.h>
#include <stdatomic.h>

#define PORT_POOLS 2
#define PORT_SENDS (PORT_POOLS + 1) /* where the pools' frames leave; the last: received ones */
#define PORT_QUEUES_MAX 64u
#define PORT_BURST_MAX 128u /* frames a driver call, at most */

struct dpdk_lane;
struct rte_eth_dev_info;

struct port_queue {
    struct transport_port *port;
    uint16_t number;           /* DPDK's receive queue */
    uint16_t send[PORT_SENDS]; /* its send queues, all the same without fast free */
    struct rte_mempool *receive_pool;
    struct rte_mempool *frames[PORT_POOLS];
    bool frames_taken[PORT_POOLS];
    /* A queue has one user at a time. The worker has it but for the moments in which the main
     * thread, settling the next lane, makes the port known to the network. The main thread tries,
     * and comes again: it may be at real-time priority, and must not wait for a worker. */
    atomic_flag busy;
    struct dpdk_lane *active; /* between its arming, when it is settled, and its finish */
    struct port_count idle;   /* counted while no lane was active; the next lane takes it over */
    struct port_count *count;
    uint64_t forward_dropped;
} __attribute__((aligned(64))); /* a queue's core writes it all the time */

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
    struct port_queue *queues;
    uint16_t queue_count;
    uint64_t send_offloads; /* in use: RTE_ETH_TX_OFFLOAD_ bits */
    struct arrival_clock arrival;
    struct isolation isolation; /* of a shared port */
    bool spreads;               /* what comes is spread over the queues by RSS */
    pthread_mutex_t guest_lock; /* questions and answers may come by any queue */
    pthread_mutex_t visit_lock; /* held while a worker visits the queues between phases */
    struct guest guest;
    int64_t announced_ns; /* by queue 0, who alone does it; 0: never */
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
/* And the layer-1 rate of its line; 0: it does not know. Of a blob that was read. */
uint64_t port_read_line_bps(const struct blob *blob);

/* What a device gives: its send queues and the offloads of ours that it has. */
struct port_layout {
    uint16_t queues;
    uint16_t send_queues;
    uint64_t send_offloads;
    uint64_t spread_by; /* RTE_ETH_RSS_ bits; 0: one queue, or the device spreads by itself */
};

/* `conf`: queues, queues_at_most. -EINVAL with what is possible. */
int port_lay_out(struct port_layout *layout, const struct port_conf *conf,
                 const struct rte_eth_dev_info *info, struct err *err);

static inline bool queue_trylock(struct port_queue *queue)
{
    return !atomic_flag_test_and_set_explicit(&queue->busy, memory_order_acquire);
}

static inline void queue_unlock(struct port_queue *queue)
{
    atomic_flag_clear_explicit(&queue->busy, memory_order_release);
}

/* The guest is all queues': held for a few instructions. */
static inline struct guest *port_guest_lock(struct transport_port *port)
{
    pthread_mutex_lock(&port->guest_lock);
    return &port->guest;
}

static inline void port_guest_unlock(struct transport_port *port)
{
    pthread_mutex_unlock(&port->guest_lock);
}

/* The rest need the queue locked. */

/* Sends one frame of the guest's; drops it when there is no room. */
void port_send_guest(struct port_queue *queue, const uint8_t *frame, uint32_t length);
/* On queue 0. */
void port_announce(struct port_queue *queue, int64_t now_ns);
/* Whether a received frame is for the guest: then it is counted and answered. */
bool port_hear(struct port_queue *queue, const struct rte_mbuf *frame);
/* Receives what waits, while no lane does: answers the network, counts the rest as foreign. */
#define PORT_LISTEN_BURSTS 64u
void port_listen(struct port_queue *queue);
/* Announces the port again where it is time to. */
void port_stay_known(struct port_queue *queue, int64_t now_ns);

/* Announcements go out so often: below any switch's ageing time (300 s by default, 10 s at the
 * least; IEEE 802.1Q 8.8.3). */
#define PORT_ANNOUNCE_NS 8000000000LL

#endif
