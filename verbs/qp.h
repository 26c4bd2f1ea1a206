/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a queue pair, with its completion queue and its memory. A queue pair serves one
 * stream of one flow, one way: this end is its source or its sink. What little goes the other way
 * (credits) uses the same queue pair.
 *
 *     ring     at the sink: places for messages, filled and given back in turn; for reads the
 *              source has one too, from which it is read
 *     control  a few words at both ends that the partner writes
 *
 * Credits keep the source from sending what the sink has no place for: so receivers are never "not
 * ready", and nothing is overwritten before it was verified.
 */
#ifndef VERBS_QP_H
#define VERBS_QP_H

#include "message.h"
#include "port.h"
#include "qp_info.h"

#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#define VERBS_GRH_BYTES 40u /* before each datagram that is received (UD) */
#define VERBS_INLINE_MOST 220u
#define VERBS_CREDIT_SLOTS 16u /* where a UD source receives credits */
#define VERBS_CREDIT_STRIDE 64u
#define VERBS_HEADER_STRIDE 32u
#define VERBS_CONTROL_WRS 4u /* of the send queue, for credits and end marks */

/* Where the payload of a place of a ring that is read from begins in the sequence. */
#define VERBS_SLOT_PLACE(slot) ((uint32_t)((uint64_t)(slot)*VERBS_STEP % VERBS_PERIOD))

enum qp_role { QP_SENDER, QP_RECEIVER };

/* In registered memory. The partner writes the first two, this end sends from the others. */
struct verbs_control {
    _Alignas(
        64) _Atomic uint64_t credit; /* at the source: credit; at a reading sink: what is ready */
    _Alignas(64) struct verbs_eof eof;
    _Alignas(64) uint64_t credit_out;
    struct verbs_credit_datagram datagram_out;
    struct verbs_eof eof_out;
};
#define VERBS_CONTROL_BYTES 192u
static_assert(sizeof(struct verbs_control) == VERBS_CONTROL_BYTES, "layout");

/* What an end is to be like. */
struct qp_config {
    const struct verbs_options *options;
    struct verbs_address partner;
    const struct verbs_gid *gid; /* NULL: none (iWARP; InfiniBand in one subnet) */
    enum qp_role role;
    uint16_t stream;
    uint16_t mtu;    /* path MTU in bytes, at most */
    uint32_t slots;  /* of the ring; 0: none */
    uint32_t stride; /* of a slot, 64 n */
    bool relays;     /* a source that sends from the ring of another end */
};

struct verbs_qp {
    struct cached_qp cached;    /* in the cache, with its key */
    struct verbs_qp *next_dead; /* the destroyer's */
    struct transport_port *port;
    struct qp_config config; /* but for `options`, which are the phase's */
    struct ibv_qp *ibv;      /* NULL: rdma_cm has not made it yet */
    struct ibv_cq *cq;
    struct ibv_ah *ah;     /* UD */
    struct rdma_cm_id *id; /* NULL: connected by exchange */
    struct verbs_range range;
    struct verbs_control *control;
    uint8_t *headers; /* `depth` of them; NULL: none */
    uint8_t *ring;
    uint32_t inline_bytes;
    uint32_t packet;    /* first packet sequence number */
    uint32_t queue_key; /* UD */
    uint32_t partner;   /* its queue pair's number; 0: not connected */
    uint32_t turn;      /* messages that have passed, modulo 2^32 */
    uint32_t place;     /* the ring's next */
    uint16_t mtu;       /* path MTU as agreed */
    bool reused;
    int64_t setup_ns; /* how long making and connecting it took */
};

/* A kept end of the same config, or (or else, if `fresh`) a new one in state INIT with its receives
 * posted (rdma_cm: without its queue pair). Its control words are empty. 0 or a refusal. */
int verbs_qp_acquire(struct verbs_qp **qp, struct transport_port *port,
                     const struct qp_config *config, bool fresh, struct err *err);
/* Makes the queue pair of one whose `id` has just been given its device. */
int verbs_qp_create(struct verbs_qp *qp, const struct verbs_options *options, struct err *err);
/* Takes the queue pair of one that rdma_cm connects to a state, as rdma_cm says. librdmacm has a
 * context of its own for each device, so that it can't make and move queue pairs of ours. */
int verbs_qp_set_state(struct verbs_qp *qp, enum ibv_qp_state state);
/* Its memory is free at once; the rest is destroyed by the port's destroyer. */
void verbs_qp_free(struct verbs_qp *qp);
/* Keeps it for later, or frees it when more than `most` are cached. */
void verbs_qp_keep(struct verbs_qp *qp, size_t most);
/* Frees the longest unused of those cached, until `most` are. */
void verbs_qps_evict(struct transport_port *port, size_t most);

/* What its partner must know. */
void verbs_qp_info(const struct verbs_qp *qp, struct qp_info *info);
/* Connects it to what the partner offers. 0 or a refusal. */
int verbs_qp_connect(struct verbs_qp *qp, const struct qp_info *theirs,
                     const struct verbs_options *options, struct err *err);

/* Posts the receive of one place of the ring. 0 or a negative errno. */
int verbs_qp_post_receive(struct verbs_qp *qp, uint32_t slot);
/* How many receives an end keeps posted: its slots, or 0 where none are needed. */
uint32_t verbs_qp_receives(const struct verbs_qp *qp);
/* Registered memory and the queues, as far as they can be known. */
size_t verbs_qp_bytes(const struct verbs_qp *qp);

#endif
