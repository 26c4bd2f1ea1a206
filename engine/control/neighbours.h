/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The nodes that a node knows in person: those at distance 2^k ahead and behind, modulo the
 * number of nodes.
 *
 * These are its partners in the dissemination barrier, and its parent and children in the binomial
 * tree (parent: the index without its lowest set bit). When each was last heard, and how often it
 * was asked since, tells silence from loss.
 */
#ifndef ENGINE_NEIGHBOURS_H
#define ENGINE_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#define NEIGHBOURS_ROUNDS_MAX 32 /**< ceil(log2) of the largest count */
#define NEIGHBOURS_ASKED_MIN 8   /**< no one is called missing who was asked less often */

struct neighbour {
    uint32_t index;
    uint32_t entered;    /**< the epoch that it had last entered; UINT32_MAX: none */
    uint32_t asked;      /**< times, since it was last heard */
    bool knows_fault;    /**< it has told us the fault that ends the run (membership.h) */
    uint64_t nonce;      /**< its process's; 0: it has not said it to us yet */
    int64_t heard_ns;    /**< -1: never */
    int64_t transmit_ns; /**< its clock in the newest datagram from it, for the echo ... */
    int64_t receive_ns;  /**< ... and ours when that came; DATAGRAM_NO_TIME: none yet */
};

struct neighbours {
    uint32_t self;
    uint32_t count;
    uint32_t rounds; /**< ceil(log2 count) */
    uint32_t size;
    struct neighbour all[2 * NEIGHBOURS_ROUNDS_MAX]; /**< each node once, ahead ones first */
};

/**
 * @brief Begin with nothing known of any neighbour.
 *
 * @param neighbours Neighbours of this node.
 * @param self Index of this node, below `count`.
 * @param count Nodes, at least 1.
 */
void neighbours_init(struct neighbours *neighbours, uint32_t self, uint32_t count);

/**
 * @brief Return the parent in the binomial tree: the index without its lowest set bit.
 *
 * Node 0 has none.
 *
 * @param index Index of a node, or place in a list.
 * @return Index.
 */
uint32_t neighbours_parent(uint32_t index);
/**
 * @brief Return the node 2^round ahead.
 *
 * @param neighbours Neighbours of this node.
 * @param round Round of the barrier, from 0.
 * @return Index.
 */
uint32_t neighbours_ahead(const struct neighbours *neighbours, uint32_t round);
/**
 * @brief Return the node 2^round behind.
 *
 * @param neighbours Neighbours of this node.
 * @param round Round of the barrier, from 0.
 * @return Index.
 */
uint32_t neighbours_behind(const struct neighbours *neighbours, uint32_t round);

/**
 * @brief Find a neighbour by its index.
 *
 * @param neighbours Neighbours of this node.
 * @param index Index of a node, or place in a list.
 * @return Neighbour; NULL: not a neighbour.
 */
struct neighbour *neighbours_find(struct neighbours *neighbours, uint32_t index);

/**
 * @brief Note an authentic datagram of this run.
 *
 * @param neighbour Neighbour.
 * @param entered Epoch that it had last entered.
 * @param transmit_ns Its clock when it sent, ns.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return False: the neighbour had sent a newer one before.
 */
bool neighbour_heard(struct neighbour *neighbour, uint32_t entered, int64_t transmit_ns,
                     int64_t now_ns);

/**
 * @brief Return whether a neighbour is missing: nothing came for `timeout_ns`, though this node
 * waited that long and asked often.
 *
 * @param neighbour Neighbour.
 * @param waited_ns How long this node has waited, ns.
 * @param timeout_ns Silence after which a node is missing, ns.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: it is.
 */
bool neighbour_silent(const struct neighbour *neighbour, int64_t waited_ns, int64_t timeout_ns,
                      int64_t now_ns);

#endif
