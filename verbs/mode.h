/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a lane's messages travel: by which operation, and how the receiver learns that one has come.
 * mode_send.c: sends, also of datagrams and schedules; mode_write.c: RDMA writes with immediate
 * data. Each message, and the eof, takes a receive and its place, and makes a completion at the
 * receiver, which may wake a worker.
 */
#ifndef VERBS_MODE_H
#define VERBS_MODE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct verbs_receiver;
struct verbs_sender;

struct verbs_mode {
    enum ibv_wr_opcode opcode; /* of the sender's messages */
    bool uncounted;            /* a schedule counts what it sends and takes what comes */

    /* Writes into the next `count` work requests where they go; NULL: to the next receive. */
    void (*address)(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count);
    /* Consumes what a completion at the receiver tells of; returns how many messages. */
    unsigned (*consume)(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                        int64_t now_ns);
};

extern const struct verbs_mode verbs_mode_send, verbs_mode_send_numbered, verbs_mode_send_scheduled,
    verbs_mode_write;

#endif
