/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A DPDK port: any device that DPDK knows, with one or more queues.
 *
 * A queue is what one core uses: it receives, it sends, and it has its own buffers, so that queues
 * share nothing.
 *
 * A queue has two pools: one of frames to send, whose buffers all hold the phase's frame, and one
 * for what the driver receives; the responder's frames and forwarded ones come from that, too.
 *
 * A device that frees sent buffers fast (RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) puts a whole batch back
 * into the pool of its first buffer. So there each pool has a send queue of its own.
 */
#ifndef ENGINE_DPDK_PORT_STATE_H
#define ENGINE_DPDK_PORT_STATE_H

#include "arp_nd_responder.h"
#include "arrival.h"
#include "frame.h"
#include "iface.h"
#include "lock.h"
#include "transport.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdatomic.h>

#define PORT_QUEUES_MAX 64u

struct dpdk_lane;

struct port_queue {
    struct transport_port *port;
    uint16_t number; /**< DPDK's receive queue */
    uint16_t send;   /**< DPDK's send queue of the frames in send_pool ... */
    uint16_t pass;   /**< ... and of those in receive_pool; the same without fast free */
    struct rte_mempool *send_pool;
    struct rte_mempool *receive_pool;
    struct dpdk_lane *lane; /**< from when it is connected until its end */
    struct port_count idle; /**< counted while there was no lane; the next takes it over */
    struct port_count *count;
    uint64_t forward_dropped;
} __attribute__((aligned(64))); /* a queue's core writes it all the time */

#define ISOLATE_RULES_MAX 12

/** @brief The rules that let a shared port's own frames in (isolate.c). */
struct isolation {
    struct rte_flow *rules[ISOLATE_RULES_MAX];
    unsigned count;
};

struct transport_port {
    const struct port_conf *conf;
    uint16_t id;   /**< DPDK's number */
    bool attached; /**< made by us: goes away at close */
    bool kernel;   /**< sends through a kernel interface: */
    struct iface iface;
    atomic_ullong pause_frames; /**< PAUSE and PFC frames that reached us: no MAC took them */
    bool by_reference; /**< hands its buffers to the receiver (net_ring), who may rewrite them */
    char device[64];
    char driver[32];
    uint32_t frame_max; /**< with FCS, without an 802.1Q tag */
    uint32_t room_max;  /**< what a buffer holds */
    struct port_queue *queues;
    uint16_t queue_count;
    uint64_t send_offloads; /**< in use: RTE_ETH_TX_OFFLOAD_ bits */
    struct arrival_clock arrival;
    struct isolation isolation;     /**< of a shared port */
    bool spreads;                   /**< what comes is spread over the queues by RSS */
    pthread_mutex_t responder_lock; /**< questions and answers may come by any queue */
    /**
     * @brief Held by whoever uses a queue whose lane no worker polls: the main thread, which
     * connects and ends lanes, and workers that visit the port between phases.
     */
    pthread_mutex_t lock;
    struct arp_nd_responder responder;
    /**
     * @brief By queue 0, who alone does it: the main thread while it connects a lane, else the
     * worker.
     *
     * 0: never.
     */
    _Atomic int64_t announced_ns;
};

/** @brief What partners must know of a port. */
struct port_blob {
    uint8_t version;
    uint8_t has_ipv4;
    uint8_t has_ipv6;
    uint8_t mac[FRAME_MAC];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint8_t frame_max[4]; /* big-endian, and so is */
    uint8_t line_bps[8];
} __attribute__((packed));
static_assert(sizeof(struct port_blob) == 41, "the layout of a port's address");
static_assert(sizeof(struct port_blob) <= BLOB_BYTES_MAX, "it fits");

/** @brief The responder is all queues': held for a few instructions. */
static inline struct arp_nd_responder *port_responder_lock(struct transport_port *port)
{
    pthread_mutex_lock(&port->responder_lock);
    return &port->responder;
}

static inline void port_responder_unlock(struct transport_port *port)
{
    pthread_mutex_unlock(&port->responder_lock);
}

/* --- port.c: as in the transport's table ---------------------------------------------------*/

int port_open(struct transport_port **port, const struct port_conf *conf,
              const struct transport_run *run, struct err *err);
void port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void port_close(struct transport_port *port);

/* --- port_device.c: how a device comes to be, its queues and their memory ------------------*/

/**
 * @brief In the port's namespace: drivers make their sockets there.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int port_device_open(struct transport_port *port, struct err *err);
/** @brief Also of one that was opened in part. */
void port_device_close(struct transport_port *port);

/** @brief What a device gives: its send queues and the offloads of ours that it has. */
struct queue_layout {
    uint16_t queues;
    uint16_t send_queues;
    uint64_t send_offloads;
    uint64_t spread_by; /**< RTE_ETH_RSS_ bits; 0: one queue, or the device spreads by itself */
};

/**
 * @brief `conf`: queues, queues_at_most.
 *
 * -EINVAL with what is possible.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int choose_queues(struct queue_layout *layout, const struct port_conf *conf,
                  const struct rte_eth_dev_info *info, struct err *err);

/**
 * @brief The buffers for received frames of a PCI device's queue: as many as are held at the same
 * time when the port forwards, in rings of so many descriptors, in the forwarder's queue, in a
 * burst and in the caches of cores.
 *
 * With fewer the device runs out of them.
 */
uint32_t receive_pool_frames(uint16_t receives, uint16_t sends);

/* --- isolate.c: flow isolation. Of a port that others use too (`shared: true`), DPDK gets our
 * frames and the kernel keeps the rest: rte_flow's isolated mode under a bifurcated driver (mlx5),
 * or under any other whose rules say what it takes from a kernel interface (net_tap with `remote`).
 *
 * Ours are frames of our EtherType, UDP to the port's own address and our destination, and, behind
 * a gateway, what asks for that address or answers it: each bare and with an 802.1Q tag. Nothing
 * else is taken: no promiscuous mode, no rule on a protocol alone. The kernel must not own the
 * address. Rules end with the process, however it ends: the device belongs to it. --- */

/**
 * @brief Before the device is configured.
 *
 * -ENOTSUP or the like: its driver isolates nothing; -EADDRINUSE: the kernel owns one of the port's
 * addresses.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int isolate_begin(const struct transport_port *port, struct err *err);

/**
 * @brief Installs the rules that let our frames in, once the device runs with its queues.
 *
 * IP comes by all queues if `spread_by` (RTE_ETH_RSS_ bits) is not 0, all else by the first. An
 * error: the driver can't tell some of our frames from others' frames; then no rule is left.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int isolate_install_rules(struct transport_port *port, uint64_t spread_by, struct err *err);

/**
 * @brief Before the device is stopped: removes the rules, if there are any.
 */
void isolate_end(struct transport_port *port);

/* --- port_queue.c: control frames (ARP, neighbour discovery, announcements) of a queue. Each
 * needs the port's lock, or is the queue's own worker's. ---------------------------------------*/

/**
 * @brief Sends one frame of the responder's.
 *
 * False: there was no room, and it is dropped.
 */
bool queue_send(struct port_queue *queue, const uint8_t *frame, uint32_t length);
/**
 * @brief On queue 0.
 *
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void queue_announce(struct port_queue *queue, int64_t now_ns);
/** @brief Return whether a received frame is for the responder: then it is counted and answered. */
bool queue_handle_control_frame(struct port_queue *queue, const struct rte_mbuf *frame);
/**
 * @brief Receives what waits, while no lane does: answers the network, counts the rest as foreign.
 */
#define QUEUE_IDLE_BURSTS 64u
#define QUEUE_BURST 128u
void queue_receive_idle(struct port_queue *queue);
/**
 * @brief Announce the port on queue 0 again, where it is time to.
 *
 * @param queue Queue.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Time of the next announcement; CLOCK_NEVER: another queue's, or not announced yet.
 */
int64_t queue_announce_again(struct port_queue *queue, int64_t now_ns);

/**
 * @brief Announcements go out so often: below any switch's ageing time (300 s by default, 10 s at
 * the least; IEEE 802.1Q 8.8.3).
 */
#define PORT_ANNOUNCE_NS 8000000000LL

#endif
