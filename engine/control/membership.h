/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief State of one node as a member of a run: its neighbours, the barrier, the abort and the
 * heartbeat. No I/O: the caller passes in datagrams and times, and sends the datagrams that result.
 *
 * endpoint.c connects this state to a socket; the tests connect it to a simulated network.
 *
 * Neighbours. A node's neighbours are the nodes at distance 2^k ahead and behind, modulo the number
 * of nodes: its partners in the dissemination barrier, and its parent and children in the binomial
 * tree (parent: the index without its lowest set bit). The time of a neighbour's last datagram, and
 * the number of questions since, distinguish silence from loss.
 *
 * Freshness. All datagrams are sealed under one key, which comes from the run's key, its id and the
 * number of nodes. By hand the same job file may be run many times, so a seal alone does not tell
 * this run from an earlier one. Each process therefore has a random nonce; a datagram names its
 * sender's and its recipient's, and one that names another process in the recipient's place is
 * dropped. A node that does not know a neighbour's nonce yet sends 0; a datagram that names 0 is
 * answered by HELLO and changes nothing else. A node sends HELLO to all neighbours when it joins,
 * and to each neighbour whose nonce it learns, so that both know each other after three datagrams.
 * A datagram with this node's nonce was therefore sent in this run, by a holder of the key. A
 * neighbour whose nonce changes is another process in its place (a restart). It cannot be in step
 * with the epochs of the other nodes, so the run is aborted and the fault names this neighbour.
 *
 * The barrier. A node goes through rounds. In each round it sends an arrival to one node, or to
 * none, once the arrivals that it awaited in all earlier rounds have come; then it awaits an
 * arrival from another node, or none. An arrival carries the reduction of all values that its
 * sender has received so far, and of its own. There are two algorithms, for p nodes, any p >= 1,
 * and R = ceil(log2 p):
 *
 * - Dissemination (Hensgen, Finkel, Manber 1988), R rounds: in round k to the node 2^k ahead, from
 *   the one 2^k behind. By induction an arrival covers its sender and the 2^k - 1 nodes behind it.
 *   R datagrams one after the other, p * R in total: the fastest where each node has a core.
 * - A binomial tree, 2 R rounds: in round k < R a child 2^k away sends to its parent, including the
 *   values of its own children; then, with k counting down again, parents send the result to their
 *   children. 2 R datagrams one after the other, but 2 (p - 1) in total: faster where one machine
 *   has more nodes than cores, because a datagram then costs CPU time rather than latency. The
 *   first barrier uses dissemination. Its values show whether the tree is faster, and which nodes
 *   share node 0's clock: a node that is still in the first barrier ignores arrivals of the next
 *   barrier, and answers questions by PONG.
 *
 * When p is no power of two, dissemination covers some nodes twice, so only idempotent values
 * (maxima, OR) can be reduced. For the same reason a repeated arrival may carry more than the first
 * one did. So a node keeps one reduction per epoch, and a bit for each round whose arrival has
 * come: O(1) memory beside its neighbours. The following paragraphs hold for both algorithms: they
 * only need that an arrival of a round is sent as soon as the earlier rounds are over.
 *
 * Epochs. A node in epoch e (it entered e, and not yet e+1) can receive datagrams of e-1, e and e+1
 * only. It entered e, so it passed e-1, so all nodes entered e-1 and no node waits in an earlier
 * epoch. It has not entered e+1, so no node has passed e+1. Therefore four slots, by epoch modulo
 * 4, hold all arrivals, including early arrivals of e+1. A datagram outside of e-1..e+1 is old or
 * forged, and dropped.
 *
 * Loss. An arrival is sent once and not acknowledged. A node that waits in a round sends questions
 * to the node that it awaits, with back-off. That node repeats its arrival if it has sent one, of
 * this epoch or the one before (so a node that has passed a barrier still answers questions about
 * it); otherwise its answer shows that it is alive.
 *
 * Why a barrier ends. Suppose that every node lives and enters, and that a datagram arrives with
 * probability q > 0. Of all waiting nodes take one with the lowest (epoch, round). The partner that
 * it awaits is not behind, so this partner has entered the epoch and completed the earlier rounds;
 * it has therefore sent its arrival, and repeats it for each question. Each question is answered
 * with probability q^2, and questions continue, so the lowest pair grows until all nodes have
 * passed. Duplicates and reordering change nothing: bits and maxima are only set again.
 *
 * Missing nodes. If a node died, go from any waiting node to the partner that it awaits, then to
 * the partner that this one awaits, and so on. Each is in an earlier round than the one before, so
 * the chain ends within as many steps as there are rounds, at a node that does not wait: it has not
 * entered, or it is dead. Every waiting node of the chain sends questions to its partner and so
 * knows whether the partner lives. The last waiting node therefore detects the silence, without any
 * further datagram, and reports the dead node. All other waiting nodes get answers, so they never
 * report a living partner, however long the wait; a living node that has not entered is slow and
 * not missing.
 *
 * The abort. The first node that finds a fault sends it to its neighbours, and each of these does
 * the same. The fault reaches every node within ceil(log2 p) hops, over so many paths that single
 * dead nodes and losses do not matter. A node repeats the fault to a neighbour, with back-off,
 * until the neighbour sends the same fault (each node that knows of it sends it to all its
 * neighbours, which serves as its acknowledgement), MEMBERSHIP_TELLS times at most: a dead node
 * never answers. The exchange ends, because only a datagram without `heard` is answered, and an
 * answer has it.
 *
 * @see Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization, 1988
 */
#ifndef ENGINE_MEMBERSHIP_H
#define ENGINE_MEMBERSHIP_H

#include "backoff.h"
#include "datagram.h"

#define MEMBERSHIP_ROUNDS_MAX 32 /**< ceil(log2) of the largest count */
#define MEMBERSHIP_TELLS 28      /**< maximum times that a neighbour is sent a fault */
#define MEMBERSHIP_SLOTS 4       /**< epochs that are stored */

struct membership_conf {
    uint32_t self; /**< index of this node, below `count` */
    uint32_t count;
    uint8_t key[DATAGRAM_KEY_BYTES]; /**< key of the datagrams */
    uint64_t nonce;                  /**< random, not 0 */
    int64_t boot;                    /**< above 0; equal values mean one CLOCK_MONOTONIC */
    int64_t timeout_ns;              /**< silence after which a node is missing */
    int64_t cores;                   /**< of this machine; 0: unknown */
    /** @brief Send a datagram; the function also fills in the datagram's time stamps. */
    void (*send)(void *context, struct datagram *datagram);
    void *context;
};

struct neighbour {
    uint32_t index;
    uint32_t entered;    /**< epoch that it last entered; UINT32_MAX: none */
    uint32_t asked;      /**< questions sent since its last datagram */
    bool knows_fault;    /**< it has sent the fault that ends the run */
    uint64_t nonce;      /**< of its process; 0: not received yet */
    int64_t heard_ns;    /**< time of its last datagram; -1: never */
    int64_t transmit_ns; /**< transmit stamp of its newest datagram, returned to it as origin */
    /** @brief Arrival of its newest datagram, by this node's clock; DATAGRAM_NO_TIME: none arrived
     * yet. */
    int64_t receive_ns;
};

struct membership {
    struct membership_conf conf;
    uint32_t neighbour_count;
    struct neighbour neighbours[2 * MEMBERSHIP_ROUNDS_MAX]; /**< each once, ahead ones first */
    /** @brief Back-off of the next question to a partner, or of the next repetition of the fault to
     * neighbours. */
    struct backoff backoff;
    /** @brief State of the barrier last entered. */
    uint32_t rounds;  /**< of dissemination: ceil(log2 count) */
    uint32_t epoch;   /**< last entered; DATAGRAM_NONE before the first */
    uint32_t round;   /**< present round */
    int64_t since_ns; /**< begin of the wait for this round */
    /**
     * @brief Last time that the barrier was in use: a partner's request arrived, or this node
     * entered or passed a barrier.
     */
    int64_t active_ns;
    struct {
        struct barrier_values values;
        uint64_t came; /**< bit k: the arrival of round k */
    } slots[MEMBERSHIP_SLOTS];
    /** @brief True once the first barrier has passed, which sets `crowded` and `root_boot`.
     */
    bool met;
    bool crowded; /**< all nodes are on one machine and outnumber its cores: the tree is used */
    int64_t root_boot; /**< of node 0 */
    /** @brief True: the run is aborted, for the reason in `fault`. */
    bool aborted;
    bool is_over;               /**< a barrier was entered after the fault */
    struct control_fault fault; /**< the first fault received or found */
    uint32_t tells;
    int64_t beat_ns;      /**< arrival of node 0's last heartbeat; 0: none so far */
    int64_t beat_sent_ns; /**< time at which the parent sent it: the next must be later */
};

/**
 * @brief Initialise a node's membership of a run, and send HELLO to its neighbours.
 *
 * @param m Member.
 * @param conf Settings; copied.
 */
void membership_start(struct membership *m, const struct membership_conf *conf);
/**
 * @brief Return a node's parent in the binomial tree: the index without its lowest set bit.
 *
 * @param index Index of a node; node 0 has no parent.
 * @return Index.
 */
uint32_t membership_parent(uint32_t index);
/**
 * @brief Return the neighbour that has a given node index.
 *
 * @param m Member.
 * @param index Index of a node.
 * @return Neighbour; NULL: not a neighbour.
 */
struct neighbour *membership_neighbour(struct membership *m, uint32_t index);

/**
 * @brief Enter the next barrier; the previous barrier must have passed or failed.
 *
 * @param m Member.
 * @param mine This node's contribution; copied.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void membership_enter(struct membership *m, const struct barrier_values *mine, int64_t now_ns);
/**
 * @brief Return the state of the barrier last entered.
 *
 * @param m Member.
 * @return State.
 */
enum barrier_state membership_state(const struct membership *m);
/**
 * @brief Return the reduced values of the barrier last entered; they cover all nodes once this
 * barrier has passed.
 *
 * @param m Member.
 * @return Values, owned by the member and valid until the next barrier is entered.
 */
const struct barrier_values *membership_values(const struct membership *m);
/**
 * @brief Abort the run, and send the reason to the other nodes.
 *
 * @param m Member.
 * @param text Reason; truncated, and converted to printable ASCII.
 * @param impossible True: the request cannot be met (exit status 2); false: the node failed.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void membership_abort(struct membership *m, const char *text, bool impossible, int64_t now_ns);
/**
 * @brief Send a heartbeat of node 0 to the children in the tree.
 *
 * @param m Member.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void membership_beat(struct membership *m, int64_t now_ns);

/**
 * @brief Handle a datagram for this node with a valid seal, of any type except FETCH and BLOB.
 *
 * @param m Member.
 * @param datagram Datagram.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return False: the datagram was dropped.
 */
bool membership_receive(struct membership *m, const struct datagram *datagram, int64_t now_ns);
/**
 * @brief Repeat the datagrams whose repetition is due (questions, the fault); to be called when
 * m->backoff.due_ns is reached.
 *
 * @param m Member.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void membership_tick(struct membership *m, int64_t now_ns);
/**
 * @brief Send a datagram, after setting the fields that all datagrams of this node have in common.
 *
 * @param m Member.
 * @param datagram Datagram with the type, the recipient and the fields of its type.
 */
void membership_send(struct membership *m, struct datagram *datagram);

#endif
