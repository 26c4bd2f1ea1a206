/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief DPDK port: any device of DPDK's, with one or more queues.
 *
 * A queue belongs to one core: it receives, it sends, and it has its own buffers, so that queues
 * share nothing.
 *
 * A queue has two pools: one of frames to send, whose buffers all hold the phase's frame, and one
 * for received frames, which also serves the responder's frames and forwarded ones.
 *
 * A device that frees sent buffers fast (RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) returns a whole batch
 * to the pool of its first buffer. So there each pool has a send queue of its own.
 */
#ifndef ENGINE_DPDK_PORT_STATE_H
#define ENGINE_DPDK_PORT_STATE_H

#include "arp_nd_responder.h"
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
    uint16_t number; /**< receive queue in DPDK */
    uint16_t send;   /**< send queue in DPDK for frames in send_pool */
    uint16_t pass; /**< send queue for frames in receive_pool; equal to `send` without fast free */
    struct rte_mempool *send_pool;
    struct rte_mempool *receive_pool;
    struct dpdk_lane *lane; /**< from its connection until its end */
    struct port_count idle; /**< counts without a lane; added to the next lane's */
    struct port_count *count;
    uint64_t forward_dropped;
} __attribute__((aligned(64))); /* a queue's core writes it constantly */

struct transport_port {
    const struct port_conf *conf;
    uint16_t id;   /**< number in DPDK */
    bool attached; /**< attached by us: detached at close */
    bool kernel;   /**< sends through a kernel interface */
    struct iface iface;
    /** @brief PAUSE and PFC frames that the port received; a device with a MAC would consume
     * them. */
    atomic_ullong pause_frames;
    bool by_reference; /**< passes its buffers to the receiver (net_ring), which may rewrite them */
    char device[64];
    char driver[32];
    uint32_t frame_max; /**< with FCS, without an 802.1Q tag */
    uint32_t room_max;  /**< capacity of a buffer */
    struct port_queue *queues;
    uint16_t queue_count;
    uint64_t send_offloads;         /**< in use: RTE_ETH_TX_OFFLOAD_ bits */
    bool spreads;                   /**< RSS distributes received frames over the queues */
    pthread_mutex_t responder_lock; /**< requests and answers may arrive at any queue */
    /**
     * @brief Lock for a queue whose lane no worker polls, held by the main thread, which connects
     * and ends lanes, and by workers that visit the port between phases.
     */
    pthread_mutex_t lock;
    struct arp_nd_responder responder;
    /**
     * @brief Time of the last announcement by queue 0, which alone makes it: the main thread while
     * it connects a lane, else the worker.
     *
     * 0: never.
     */
    _Atomic int64_t announced_ns;
};

/** @brief Address data of a port, by which its partners reach the port. */
struct port_blob {
    uint8_t version;
    uint8_t has_ipv4;
    uint8_t has_ipv6;
    uint8_t mac[FRAME_MAC];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint8_t frame_max[4]; /* big-endian, as is line_bps */
    uint8_t line_bps[8];
} __attribute__((packed));
static_assert(sizeof(struct port_blob) == 41, "the layout of a port's address");
static_assert(sizeof(struct port_blob) <= BLOB_BYTES_MAX, "it fits");

/** @brief Lock and return the port's responder, which all queues share; unlock it after a few
 * instructions. */
static inline struct arp_nd_responder *port_responder_lock(struct transport_port *port)
{
    pthread_mutex_lock(&port->responder_lock);
    return &port->responder;
}

static inline void port_responder_unlock(struct transport_port *port)
{
    pthread_mutex_unlock(&port->responder_lock);
}

/* --- port.c: functions of the transport's table --------------------------------------------- */

int port_open(struct transport_port *port, const struct port_conf *conf,
              const struct transport_run *run, struct err *err);
void port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
void port_close(struct transport_port *port);
/** @brief Set a port to receive frames to any address (promiscuous mode). */
int port_take_all(struct transport_port *port, struct err *err);

/* --- port_device.c: creation of a device, its queues and their memory ----------------------- */

/**
 * @brief Open the port's device in the port's namespace, where drivers make their sockets.
 *
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int port_device_open(struct transport_port *port, struct err *err);
/** @brief Close a port's device, even one that is only partly open. */
void port_device_close(struct transport_port *port);

/** @brief Queues of a device, and its usable offloads. */
struct queue_layout {
    uint16_t queues;
    uint16_t send_queues;
    uint64_t send_offloads;
    uint64_t spread_by; /**< RTE_ETH_RSS_ bits; 0: one queue, or the device distributes by itself */
};

/**
 * @brief Choose a device's queues for the settings `queues` and `queues_at_most` of `conf`.
 *
 * Returns -EINVAL with the valid values.
 *
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int choose_queues(struct queue_layout *layout, const struct port_conf *conf,
                  const struct rte_eth_dev_info *info, struct err *err);

/**
 * @brief Return the number of receive buffers for a queue of a PCI device. It covers all places
 * that hold buffers at once when the port forwards: descriptor rings, the forwarder's queue, a
 * burst, and cores' mempool caches.
 *
 * With fewer, the device runs out of buffers.
 */
uint32_t receive_pool_frames(uint16_t receives, uint16_t sends);

/* --- port_queue.c: control frames (ARP, neighbour discovery, announcements) of a queue. Each
 * needs the port's lock, or is the queue's own worker's. ---------------------------------------*/

/**
 * @brief Send one control frame of the responder by a queue.
 *
 * Returns false where there was no room, and the frame is dropped.
 */
bool queue_send(struct port_queue *queue, const uint8_t *frame, uint32_t length);
/**
 * @brief Handle a received control frame: count it, and reply to ARP and ND requests. Return false
 * if the frame is no control frame (ARP, ND, learning, PAUSE).
 */
bool queue_handle_control_frame(struct port_queue *queue, const struct rte_mbuf *frame);
#endif
