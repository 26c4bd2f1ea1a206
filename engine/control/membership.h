/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A member of a run, without I/O: who its neighbours are in this run, then barriers
 * (barrier.h), and the abort.
 *
 * endpoint.c puts it on a socket, the simulator of the tests on a model of a network.
 *
 * Freshness. All datagrams are sealed under one key, which comes from the run's key, its id and the
 * number of nodes. By hand the same job file may be run many times, so a seal alone does not tell
 * this run from an earlier one. Each process therefore has a random nonce; a datagram names its
 * sender's and its recipient's, and one that names another process in the recipient's place is
 * dropped. A node that does not know a neighbour's nonce yet sends 0, and what names 0 is answered
 * by HELLO and changes nothing else. A node sends HELLO to all neighbours when it joins, and to
 * each neighbour whose nonce it learns, so that both know each other after three datagrams. What a
 * node says with our nonce it has said in this run; nobody without the key knows both.
 *
 * The abort. Whoever learns of a fault first tells its neighbours, and so does each of them. The
 * neighbours (2^k ahead and behind) reach every node within ceil(log2 p) hops, over so many ways
 * that single dead nodes and losses don't matter. A neighbour is told again, with back-off, until
 * it tells us the same (everybody who knows tells all its neighbours, so that is its
 * acknowledgement), MEMBERSHIP_TELLS times at most: the dead one never answers. It ends, because
 * only a datagram that does not say `heard` is answered; an answer says it, and is not answered.
 *
 * A neighbour whose nonce changes is another process in its place (a restart): it can't be in step
 * with the others' epochs, so the run is aborted and the fault names it.
 *
 * The first barrier also tells all nodes which clocks are node 0's, and whether the nodes are on
 * one machine and outnumber its cores: the barrier then takes the tree.
 */
#ifndef ENGINE_MEMBERSHIP_H
#define ENGINE_MEMBERSHIP_H

#include "barrier.h"

#define MEMBERSHIP_TELLS 28 /**< times that a neighbour is told of a fault, at most */

struct membership_conf {
    uint32_t self;
    uint32_t count;
    const char *run_id;              /**< read by membership_init only */
    uint8_t key[DATAGRAM_KEY_BYTES]; /**< the run's */
    uint64_t nonce;                  /**< random, not 0 */
    int64_t boot;                    /**< above 0; equal values: one CLOCK_MONOTONIC */
    int64_t timeout_ns;              /**< silence after which a node is missing */
    int64_t cores;                   /**< of this machine; 0: not to be counted */
};

struct membership {
    struct datagram_outlet outlet;
    struct neighbours neighbours;
    struct barrier barrier;
    bool aborted;
    struct control_fault fault; /**< the first that we learned of */
    uint32_t tells;
    struct backoff backoff;          /**< until the neighbours are told again */
    uint8_t key[DATAGRAM_KEY_BYTES]; /**< of all datagrams */
    uint64_t nonce;
    int64_t boot;
    int64_t cores;
    bool is_over; /**< a barrier was entered after the fault */
    /** @brief Known when `met`: the first barrier is passed. */
    bool met;
    bool crowded;      /**< all nodes are on one machine, and more than its cores */
    int64_t root_boot; /**< node 0's */
};

/**
 * @brief Begin a membership, which must not move in memory afterwards.
 *
 * @param membership State machine.
 * @param conf Settings; copied unless said otherwise.
 * @param outlet Takes what is to be sent; copied.
 */
void membership_init(struct membership *membership, const struct membership_conf *conf,
                     const struct datagram_outlet *outlet);
/**
 * @brief Greet the neighbours.
 *
 * @param membership State machine.
 */
void membership_start(struct membership *membership);
/**
 * @brief Enter the next barrier.
 *
 * @param membership State machine.
 * @param mine This node's contribution; copied.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void membership_enter(struct membership *membership, const struct barrier_values *mine,
                      int64_t now_ns);
/**
 * @brief Return where the barrier last entered stands.
 *
 * @param membership State machine.
 * @return State.
 */
enum barrier_state membership_state(const struct membership *membership);
/**
 * @brief Return the fault that ends the run.
 *
 * @param membership State machine.
 * @return Fault; NULL: none so far.
 */
const struct control_fault *membership_fault(const struct membership *membership);
/**
 * @brief Give up, and tell the others why.
 *
 * @param membership State machine.
 * @param text Reason; cut and made printable ASCII.
 * @param impossible The run was asked for something that can't be (exit status 2).
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void membership_abort(struct membership *membership, const char *text, bool impossible,
                      int64_t now_ns);

/**
 * @brief Take a datagram whose seal is right and that is for this node.
 *
 * @param membership State machine.
 * @param datagram Datagram.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return False: dropped.
 */
bool membership_receive(struct membership *membership, const struct datagram *datagram,
                        int64_t now_ns);
/**
 * @brief Send what is due.
 *
 * @param membership State machine.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void membership_tick(struct membership *membership, int64_t now_ns);
/**
 * @brief Return when membership_tick() has something to do.
 *
 * @param membership State machine.
 * @return Time, ns; CLOCK_NEVER.
 */
int64_t membership_deadline(const struct membership *membership);
/**
 * @brief Fill in what all datagrams of this node carry, and hand it to the outlet.
 *
 * @param membership State machine.
 * @param datagram Datagram.
 */
void membership_send(struct membership *membership, struct datagram *datagram);

#endif
