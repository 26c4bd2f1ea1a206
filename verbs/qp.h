/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a queue pair, with its completion queue and its memory. A queue pair serves one
 * stream of one flow, one way: this end is its sender or its receiver. The little that goes the
 * other way (credits) uses the same queue pair.
 *
 *     ring     at the receiver: places for messages, filled and given back in turn
 *     control  a few words at both ends that the partner writes
 *
 * Credits keep the sender from sending what the receiver has no place for: so receivers are never
 * "not ready", and nothing is overwritten before it was verified.
 */
#ifndef VERBS_QP_H
#define VERBS_QP_H

#include "message.h"
#include "port.h"
#include "qp_config.h"
#include "qp_info.h"

#include <stdatomic.h>
#include <sys/queue.h>

#define VERBS_GRH_BYTES 40u    /* before each datagram that is received (UD) */
#define VERBS_CREDIT_SLOTS 16u /* where a UD sender receives credits */
#define VERBS_CREDIT_STRIDE 128u
#define VERBS_HEADER_STRIDE 32u
#define VERBS_CONTROL_WRS 4u /* of the send queue, for credits and eofs */

/* In registered memory. The partner writes the first two, this end sends from the others. */
struct verbs_control {
    _Alignas(64) _Atomic uint64_t credit;
    _Alignas(64) struct verbs_notice eof;
    _Alignas(64) uint64_t credit_out;
    struct verbs_notice notice_out;
};
#define VERBS_CONTROL_BYTES 192u
static_assert(sizeof(struct verbs_control) == VERBS_CONTROL_BYTES, "layout");

/* A receive of one place of the ring. */
struct verbs_receive {
    struct ibv_recv_wr work;
    struct ibv_sge place;
};

struct verbs_qp {
    /* The connection pool's, while no lane uses it: */
    LIST_ENTRY(verbs_qp) bucket;
    TAILQ_ENTRY(verbs_qp) age;

    struct transport_port *port;
    struct qp_config config;
    struct ibv_qp *ibv;
    struct ibv_cq *cq;
    struct ibv_ah *ah; /* UD */
    struct memory_range range;
    struct verbs_control *control;
    uint8_t *headers; /* `depth` of them; NULL: none */
    uint8_t *ring;
    struct verbs_receive *receives; /* of each place, linked in a circle; NULL: none are posted */
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

/* In state INIT with its receives posted. 0 or a refusal. */
int verbs_qp_make(struct verbs_qp **qp, struct transport_port *port, const struct qp_config *config,
                  struct err *err);
/* One that was kept, for another phase: control words and numbers are new. */
void verbs_qp_reuse(struct verbs_qp *qp, const struct qp_config *config);
/* Takes it back to how it was made, but for its place in the ring. 0 or a refusal. */
int verbs_qp_reset(struct verbs_qp *qp, struct err *err);
/* The device lets go of its memory, which is given back. */
void verbs_qp_stop(struct verbs_qp *qp);
/* The rest of one that was stopped; by any thread: it may take long (connection_pool.c). */
void verbs_qp_destroy(struct verbs_qp *qp);

/* What its partner must know. */
void verbs_qp_describe(const struct verbs_qp *qp, struct qp_info *info);
/* Connects it to the partner's. 0 or a refusal. */
int verbs_qp_connect(struct verbs_qp *qp, const struct qp_info *theirs, struct err *err);

/* Posts the receives of `count` places of the ring, from `first` on. 0 or an errno. */
int verbs_qp_post_receives(struct verbs_qp *qp, uint32_t first, uint32_t count);

#endif
