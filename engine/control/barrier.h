/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The barrier as a state machine without I/O: datagrams and time in, datagrams out, passed
 * or not.
 *
 * A node goes through rounds. In each it sends an arrival to one node, or to none, once the
 * arrivals that it awaited in all rounds before have come, and then awaits one from another node,
 * or none. An arrival carries the reduction of all that its sender has heard of. There are two
 * courses, for p nodes, any p >= 1, and R = ceil(log2 p):
 *
 * - Dissemination (Hensgen, Finkel, Manber 1988), R rounds: in round k to the node 2^k ahead, from
 *   the one 2^k behind. By induction an arrival covers its sender and the 2^k - 1 nodes behind it.
 *   R datagrams one after the other, p * R in all: the fastest where each node has a core.
 * - A binomial tree (parent: the index without its lowest set bit), 2 R rounds: in round k < R a
 * child 2^k away sends to its parent, what it has of its own children included; then, k counting
 * down again, parents send all to their children. 2 R datagrams one after the other, but 2 (p - 1)
 * in all: the faster where the nodes outnumber the cores of one machine, and a datagram costs not a
 * way but work. The first barrier goes by dissemination and finds out which course the others take:
 * a node that is still in it ignores arrivals of the next one, and answers questions by PATIENCE.
 *
 * When p is no power of two dissemination covers some nodes twice, so only idempotent values
 * (maxima, OR) can be reduced. Idempotent also means that an answer given later may carry more than
 * the first one did; so a node keeps one reduction an epoch, and a bit for each round that has
 * come: O(1) memory beside its neighbours. What follows holds for both courses: it only needs that
 * an arrival of a round is sent as soon as the rounds before are over.
 *
 * Epochs. A node in epoch e (it entered e, and e+1 not yet) can be met by datagrams of e-1, e and
 * e+1 only: it entered e, so it passed e-1, so all nodes entered e-1 and none waits in an earlier
 * one; and it has not entered e+1, so none has passed e+1 and none can be beyond. Hence four
 * slots, by epoch modulo 4, hold everything, arrivals of e+1 that come early included. Whatever
 * is outside e-1..e+1 is old or forged, and dropped.
 *
 * Loss. An arrival is sent once and not acknowledged. A node that waits in a round asks the node
 * that it awaits again and again, with back-off. Who is asked repeats its arrival if it has sent
 * it, of this epoch or the one before (so a node that has passed a barrier still answers for it),
 * and otherwise says that it waits itself.
 *
 * Why it ends. Suppose every node lives, enters, and a datagram gets through with probability
 * q > 0. Of all waiting nodes take one whose (epoch, round) is least. The partner that it awaits
 * is not behind that, so it has entered that epoch and completed the rounds before; it has
 * therefore sent its arrival, and repeats it when asked. Each question is answered with
 * probability q^2 and there is no end of questions, so the least pair grows until all have passed.
 * Duplicates and reordering change nothing: bits and maxima are set twice.
 *
 * The missing. If a node d died, follow from any waiting node the partner that it awaits, the
 * partner which that awaits, and so on: each is in an earlier round than the one before, so the
 * chain ends within as many steps as there are rounds, at a node that does not wait: it has not
 * entered, or it is dead. Every link of the chain asks its partner all the time and so knows
 * whether it lives. The last link therefore finds the silence by itself, with no further datagram,
 * and names it. All the others are answered, so they never blame a living partner, however long the
 * wait; a living node that has not entered is slow and not missing.
 *
 * @see Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization, 1988
 */
#ifndef ENGINE_BARRIER_H
#define ENGINE_BARRIER_H

#include "backoff.h"
#include "datagram.h"
#include "neighbours.h"

#define BARRIER_SLOTS 4

struct barrier_slot {
    struct barrier_values values;
    uint64_t came; /**< bit k: the arrival of round k */
};

struct barrier {
    struct neighbours *neighbours;
    struct datagram_outlet outlet;
    int64_t timeout_ns;
    bool tree; /**< and not dissemination */
    uint32_t rounds;
    uint32_t epoch;   /**< last entered; DATAGRAM_NONE before the first */
    uint32_t round;   /**< in it now; = rounds: passed */
    int64_t since_ns; /**< when the wait for this round began */
    struct backoff backoff;
    struct barrier_slot slots[BARRIER_SLOTS];
};

/**
 * @brief Reduce values: maxima and OR.
 *
 * @param into Takes the reduction.
 * @param from What is merged.
 */
void barrier_values_merge(struct barrier_values *into, const struct barrier_values *from);

/**
 * @brief Begin before the first epoch.
 *
 * @param barrier State machine.
 * @param neighbours Neighbours of this node.
 * @param outlet Takes what is to be sent; copied.
 * @param timeout_ns Silence after which a node is missing, ns.
 */
void barrier_init(struct barrier *barrier, struct neighbours *neighbours,
                  const struct datagram_outlet *outlet, int64_t timeout_ns);
/**
 * @brief Go by the tree from the second barrier on; when the first is passed, and on all nodes or
 * none.
 *
 * @param barrier State machine.
 */
void barrier_use_tree(struct barrier *barrier);
/**
 * @brief Enter the next epoch; the one before must have been passed.
 *
 * @param barrier State machine.
 * @param mine This node's contribution; copied.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void barrier_enter(struct barrier *barrier, const struct barrier_values *mine, int64_t now_ns);
/**
 * @brief Ask at the next tick: a neighbour has shown up.
 *
 * @param barrier State machine.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void barrier_hurry(struct barrier *barrier, int64_t now_ns);
/**
 * @brief Take an ARRIVAL, QUESTION or PATIENCE.
 *
 * @param barrier State machine.
 * @param datagram Datagram.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return False: it can't be from a node of this run that is in step.
 */
bool barrier_receive(struct barrier *barrier, const struct datagram *datagram, int64_t now_ns);
/**
 * @brief Ask again when due.
 *
 * @param barrier State machine.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return The neighbour that is missing; NULL: none.
 */
struct neighbour *barrier_tick(struct barrier *barrier, int64_t now_ns);
/**
 * @brief Return when barrier_tick() has something to do.
 *
 * @param barrier State machine.
 * @return Time, ns; CLOCK_NEVER.
 */
int64_t barrier_deadline(const struct barrier *barrier);
/**
 * @brief Return whether the epoch last entered is passed.
 *
 * @param barrier State machine.
 * @return False before the first, too.
 */
bool barrier_passed(const struct barrier *barrier);
/**
 * @brief Return the reduction of the epoch last entered: over all nodes when it is passed.
 *
 * @param barrier State machine.
 * @return Values of the barrier, until the next epoch but three.
 */
const struct barrier_values *barrier_values(const struct barrier *barrier);

#endif
