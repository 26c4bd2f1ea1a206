/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A member of a run, without I/O: handshake (handshake.h), then barriers (barrier.h), and the abort
 * (abort_broadcast.h), with the keys under which each datagram is sealed. endpoint.c puts it on a
 * socket, the simulator of the tests on a model of a network.
 */
#ifndef ENGINE_MEMBERSHIP_H
#define ENGINE_MEMBERSHIP_H

#include "abort_broadcast.h"
#include "barrier.h"
#include "handshake.h"

struct membership_conf {
    uint32_t self;
    uint32_t count;
    const char *run_id;                  /* read by membership_init only */
    uint8_t key[DATAGRAM_KEY_BYTES];     /* the run's */
    uint8_t nonce[DATAGRAM_NONCE_BYTES]; /* fresh random bytes */
    uint64_t boot;                       /* see handshake.h */
    int64_t timeout_ns;                  /* silence after which a node is missing */
    uint32_t cores;                      /* see handshake.h */
};

/* Called for each datagram to send; sender, run and the state of the group are filled in, the time
 * stamps are not. */
struct membership_outlet {
    void (*send)(void *context, struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES]);
    void *context;
};

struct membership {
    struct membership_outlet outlet;
    uint64_t run; /* hash of the run id */
    struct neighbours neighbours;
    struct handshake handshake;
    struct barrier barrier;
    struct abort_broadcast abort_broadcast;
    uint8_t run_key[DATAGRAM_KEY_BYTES];
    uint8_t run_hash[DATAGRAM_HASH_BYTES];
    uint8_t handshake_key[DATAGRAM_KEY_BYTES];
    uint8_t warning_key[DATAGRAM_KEY_BYTES]; /* for warnings to us */
    uint8_t session_key[DATAGRAM_KEY_BYTES];
    bool keyed;    /* the session key is known */
    bool entering; /* in barrier 0, before the session key is known */
    struct barrier_values entered_values;
};

/* The group must not move in memory afterwards. */
void membership_init(struct membership *membership, const struct membership_conf *conf,
                     const struct membership_outlet *outlet);
void membership_start(struct membership *membership, int64_t now_ns);
void membership_enter(struct membership *membership, const struct barrier_values *mine,
                      int64_t now_ns);
/* All nodes are on one machine, and more than its cores. Known once a barrier is passed. */
bool membership_crowded(const struct membership *membership);
enum barrier_state membership_state(const struct membership *membership);
/* NULL: none so far. */
const struct control_fault *membership_fault(const struct membership *membership);
/* This node gives up; `text` is cut and made printable ASCII. `impossible`: struct control_fault.
 */
void membership_abort(struct membership *membership, const char *text, bool impossible,
                      int64_t now_ns);

/* The key under which a datagram of this type must be sealed; NULL: not known yet. */
const uint8_t *membership_key(const struct membership *membership, enum datagram_type type);
/* A datagram whose seal is right, and that is for us. False: dropped. The types that the group
 * does not know itself only show that their sender lives. */
bool membership_receive(struct membership *membership, const struct datagram *datagram,
                        int64_t now_ns);
void membership_tick(struct membership *membership, int64_t now_ns);
int64_t membership_deadline(const struct membership *membership);
/* Fills in what all datagrams of this node carry, and hands it to the outlet. */
void membership_send(struct membership *membership, struct datagram *datagram);
/* Whom a waiting node waits for in the end, for the log; DATAGRAM_NONE: it does not wait. */
uint32_t membership_awaited(const struct membership *membership);

#endif
