/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A member of a run, without I/O: handshake (session.h), then barriers (barrier.h), and the abort
 * (flood.h), with the keys under which each datagram is sealed. control.c puts it on a socket, the
 * simulator of the tests on a model of a network.
 */
#ifndef ENGINE_MEMBERSHIP_H
#define ENGINE_MEMBERSHIP_H

#include "abort_broadcast.h"
#include "barrier.h"
#include "handshake.h"

struct group_conf {
    uint32_t self;
    uint32_t count;
    const char *run_id;                  /* read by group_init only */
    uint8_t key[DATAGRAM_KEY_BYTES];     /* the run's */
    uint8_t nonce[DATAGRAM_NONCE_BYTES]; /* fresh random bytes */
    uint64_t boot;                       /* see session.h */
    int64_t timeout_ns;                  /* silence after which a node is missing */
    uint32_t cores;                      /* see session.h */
};

/* Called for each datagram to send; sender, run and the state of the group are filled in, the time
 * stamps are not. */
struct group_outlet {
    void (*send)(void *context, struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES]);
    void *context;
};

struct group {
    struct group_outlet outlet;
    uint64_t run; /* hash of the run id */
    struct neighbours neighbours;
    struct session session;
    struct barrier barrier;
    struct flood flood;
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
void group_init(struct group *group, const struct group_conf *conf,
                const struct group_outlet *outlet);
void group_start(struct group *group, int64_t now_ns);
void group_enter(struct group *group, const struct barrier_values *mine, int64_t now_ns);
/* All nodes are on one machine, and more than its cores. Known once a barrier is passed. */
bool group_crowded(const struct group *group);
enum barrier_state group_state(const struct group *group);
/* NULL: none so far. */
const struct control_fault *group_fault(const struct group *group);
/* This node gives up; `text` is cut and made printable ASCII. `impossible`: struct control_fault.
 */
void group_abort(struct group *group, const char *text, bool impossible, int64_t now_ns);

/* The key under which a datagram of this type must be sealed; NULL: not known yet. */
const uint8_t *group_key(const struct group *group, enum datagram_type type);
/* A datagram whose seal is right, and that is for us. False: dropped. The types that the group
 * does not know itself only show that their sender lives. */
bool group_receive(struct group *group, const struct datagram *datagram, int64_t now_ns);
void group_tick(struct group *group, int64_t now_ns);
int64_t group_deadline(const struct group *group);
/* Fills in what all datagrams of this node carry, and hands it to the outlet. */
void group_send(struct group *group, struct datagram *datagram);
/* Whom a waiting node waits for in the end, for the log; DATAGRAM_NONE: it does not wait. */
uint32_t group_awaited(const struct group *group);

#endif
