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
#include "isolate.h"
#include "lock.h"
#include "transport.h"

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

#endif
