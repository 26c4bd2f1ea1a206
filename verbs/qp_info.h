/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the two ends of a queue pair tell each other to connect it, as a blob, and whether they have
 * kept it from an earlier phase. Plain data: no device.
 */
#ifndef VERBS_QP_INFO_H
#define VERBS_QP_INFO_H

#include "transport.h"

/* Memory that the partner may write to. */
struct remote_memory {
    uint64_t address;
    uint32_t key; /* rkey */
    uint32_t zero;
};

/* Travels as it lies in memory: control words and credits are in the hosts' byte order, too. */
struct qp_info {
    uint32_t version;      /* qp_info_write fills it */
    uint32_t number;       /* of the queue pair */
    uint32_t connected_to; /* the number of the partner's queue pair; 0: new */
    uint32_t turn;         /* how many messages have passed, modulo 2^32 */
    uint32_t packet;       /* first packet sequence number, 24 bits */
    uint32_t queue_key;    /* UD */
    uint8_t gid[16];
    struct remote_memory ring; /* of `slots` places for messages, each `stride` bytes */
    struct remote_memory control;
    uint32_t slots;
    uint32_t stride;
    uint32_t first; /* the phase's first message is for, or in, this place of the ring */
    uint16_t lid;   /* InfiniBand */
    uint16_t mtu;   /* bytes, max */
};

void qp_info_write(const struct qp_info *info, struct blob *blob);
/* False: not of this version, or of a host with another byte order. */
bool qp_info_read(struct qp_info *info, const struct blob *blob);

/* Both ends come to the same from the same two infos. True: they hold the two ends of one connected
 * queue pair, and nothing is to be done. False: each connects to what the other is. */
bool qp_info_connected(const struct qp_info *mine, const struct qp_info *theirs);

#endif
