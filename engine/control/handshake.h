/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handshake before barrier 0: all nodes come to one session key to which each contributed a
 * nonce, so that nothing of another run verifies, even one with the same key and run id (by hand
 * the same job file is run many times). No I/O.
 *
 * Scheme: a binomial tree, parent = the index without its lowest set bit. Up: node i sends its
 * parent H(i) = BLAKE2b(i, nonce(i), H(child), H(child), ...) once it has H of all its children.
 * Down: node 0 hands R = H(0) to its children and these to theirs. 2 (p - 1) datagrams carry news,
 * each of constant size; a node keeps O(log p). The session key is BLAKE2b(run key; run id, p, R).
 *
 * What it gives. All of it is sealed with the run key, so only key holders take part; and each
 * datagram echoes the recipient's nonce, without which neither H nor R is taken. So a node that
 * takes R knows that its living parent, having its fresh H, said so, and by induction that node 0
 * said so in this run; and the key is fresh for each, since its own nonce is hashed into R. What
 * was recorded earlier has another echo. As everywhere in the control plane, a key holder can
 * speak for any node.
 *
 * Loss and lateness: a child repeats JOIN with back-off until it has R, and its parent answers
 * every JOIN with what it has. A process that comes in the place of one whose nonce is in R
 * already (a restart) is refused: it could not be in step with the others' epochs. Its neighbours
 * hear nothing under the session key and name it missing. A parent asks children that have not
 * reported, too, so that a restarted one learns from them that the run has left without it.
 *
 * Life without the key: when a parent dies before its child has R, the child's partners in barrier
 * 0 hear nothing from it under the session key, and yet it lives and will itself name the parent.
 * So they ask it under the handshake's key, too (handshake_probe), and it answers with their nonce.
 */
#ifndef ENGINE_HANDSHAKE_H
#define ENGINE_HANDSHAKE_H

#include "backoff.h"
#include "datagram.h"
#include "neighbours.h"

struct handshake_conf {
    uint8_t nonce[DATAGRAM_NONCE_BYTES]; /* fresh, random, not zero */
    uint64_t boot;                       /* equal hashes: one CLOCK_MONOTONIC */
    int64_t timeout_ns;
    uint32_t cores; /* of node 0's machine, read there only; 0: not to be counted */
};

struct handshake_child {
    uint8_t nonce[DATAGRAM_NONCE_BYTES];
    uint8_t hash[DATAGRAM_HASH_BYTES];
    bool reported;
    bool together; /* it and its subtree are on our machine */
};

struct handshake {
    struct neighbours *neighbours;
    struct datagram_outlet outlet;
    struct handshake_conf conf;
    uint32_t child_count;
    struct handshake_child children[NEIGHBOURS_ROUNDS_MAX]; /* [k]: index + 2^k */
    uint8_t parent_nonce[DATAGRAM_NONCE_BYTES];
    uint64_t parent_boot;
    uint64_t root_boot;
    bool parent_known; /* its nonce is */
    bool gathered;     /* all children have reported; hash is H(self) */
    bool ready;        /* root is R */
    bool refused;
    bool together; /* our subtree is on one machine; known when `gathered` */
    bool crowded;  /* all nodes are, and are more than its cores; known when `ready` */
    uint8_t hash[DATAGRAM_HASH_BYTES];
    uint8_t root[DATAGRAM_HASH_BYTES];
    int64_t expected_ns; /* since when somebody waits for it; -1: nobody */
    struct backoff backoff;
};

/* `index` without its lowest set bit; node 0 has none. */
uint32_t handshake_parent(uint32_t index);

void handshake_init(struct handshake *handshake, struct neighbours *neighbours,
                    const struct datagram_outlet *outlet, const struct handshake_conf *conf);
/* Says the first JOIN. Node 0 of one node is ready after it. */
void handshake_start(struct handshake *handshake, int64_t now_ns);
/* JOIN, SESSION. False: stale, or not from parent or child. */
bool handshake_receive(struct handshake *handshake, const struct datagram *datagram,
                       int64_t now_ns);
/* Whether it echoes our nonce, and so was said in this run. */
bool handshake_fresh(const struct handshake *handshake, const struct datagram *datagram);
/* Asks a neighbour that may be without session key whether it lives. */
void handshake_probe(const struct handshake *handshake, uint32_t index);
/* From now on silence counts: the node is in barrier 0. */
void handshake_expect(struct handshake *handshake, int64_t now_ns);
/* Repeats what is due. Returns the neighbour that is missing, or NULL. */
struct neighbour *handshake_tick(struct handshake *handshake, int64_t now_ns);
int64_t handshake_deadline(const struct handshake *handshake);
/* The first child that has not reported, else the parent; DATAGRAM_NONE when it is ready. */
uint32_t handshake_awaited(const struct handshake *handshake);
/* The nonce of a neighbour in the tree, NULL when it is not known. */
const uint8_t *handshake_nonce_of(const struct handshake *handshake, uint32_t index);

#endif
