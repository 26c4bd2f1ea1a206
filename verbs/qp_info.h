/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the two ends of a queue pair tell each other to connect it, as a blob, and how they agree
 * on one that both have kept from an earlier phase. No device, no I/O.
 */
#ifndef VERBS_QP_INFO_H
#define VERBS_QP_INFO_H

#include "transport.h"

/* Memory that the partner may write to or read from. */
struct remote_memory {
    uint64_t address;
    uint32_t key; /* rkey */
};

struct qp_info {
    uint32_t number; /* of the queue pair; 0: not made yet (rdma_cm makes it) */
    uint32_t
        connected_to;   /* cached, connected to the partner's queue pair of this number; 0: new */
    uint32_t turn;      /* kept: how many messages have passed, modulo 2^32 */
    uint32_t packet;    /* first packet sequence number, 24 bits */
    uint32_t queue_key; /* UD */
    uint16_t lid;       /* InfiniBand */
    uint16_t mtu;       /* bytes, the most that this end takes */
    uint8_t reads;      /* RDMA reads that this end can answer at the same time */
    uint8_t gid[16];
    struct remote_memory ring; /* of `slots` places for messages, each `stride` bytes */
    uint32_t slots;
    uint32_t stride;
    uint32_t first; /* the phase's first message is for, or in, this place of the ring */
    struct remote_memory control;
    uint64_t token; /* rdma_cm: whoever calls must know it */
};

void qp_info_write(const struct qp_info *info, struct blob *blob);
/* False: not an offer of this version. */
bool qp_info_read(struct qp_info *info, const struct blob *blob);

enum qp_agreement {
    QP_REUSE,   /* they hold the two ends of one connected pair: nothing is to be done */
    QP_CONNECT, /* both offer new ends */
    QP_REPLACE, /* we kept one that the partner did not: we must make a new one and offer it */
    QP_AWAIT,   /* the partner must */
    QP_REPLACE_AND_AWAIT,
};

/* Both ends come to matching verdicts from the same two offers. */
enum qp_agreement qp_negotiate(const struct qp_info *mine, const struct qp_info *theirs);

#endif
