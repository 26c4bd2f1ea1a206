/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The control frames (ARP, neighbour discovery, announcements) that a port's queue sends and
 * receives.
 *
 * Each function needs the port's lock, or is the queue's own worker's.
 */
#ifndef ENGINE_DPDK_PORT_QUEUE_H
#define ENGINE_DPDK_PORT_QUEUE_H

#include "port_state.h"

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
 * @brief Announces the port again where it is time to.
 *
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void queue_announce_again(struct port_queue *queue, int64_t now_ns);

/**
 * @brief Announcements go out so often: below any switch's ageing time (300 s by default, 10 s at
 * the least; IEEE 802.1Q 8.8.3).
 */
#define PORT_ANNOUNCE_NS 8000000000LL

#endif
