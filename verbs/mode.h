/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a lane's messages travel: by which operation, and how the receiver learns that one has come.
 * One file per operation: mode_send.c (also of datagrams and schedules), mode_write.c (RDMA write,
 * with immediate data or found by the receiver in its memory), mode_read.c (RDMA read by the
 * receiver).
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
    /* Each message, and the eof, takes a receive and its place, and makes a completion at the
     * receiver, which may wake a worker. */
    bool takes_receives;
    bool uncounted; /* a schedule counts what it sends and takes what comes */

    /* Sender. Posts messages of up to `budget` bytes (or one that is larger), `max` of them;
     * returns the bytes. */
    uint64_t (*post)(struct verbs_sender *sender, uint64_t budget, uint64_t max);
    /* Tells the receiver what is posted; NULL: the messages themselves do. */
    void (*announce)(struct verbs_sender *sender);
    /* Writes into the next `count` work requests where they go; NULL: to the next receive. */
    void (*address)(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count);
    /* So many messages have been credited; true: that is news. */
    bool (*credited)(struct verbs_sender *sender, uint64_t messages, int64_t now_ns);

    /* Receiver. Consumes what a completion tells of; returns how many messages. NULL: none does. */
    unsigned (*consume)(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                        int64_t now_ns);
    /* Then consumes what lies in memory without a completion, or asks for more. NULL: nothing. */
    unsigned (*find)(struct verbs_receiver *receiver, int64_t now_ns);
    /* Makes the next `count` places ready to be filled again. NULL: their receives are posted
     * again, if it takes receives. */
    void (*make_ready)(struct verbs_receiver *receiver, uint32_t count);
};

extern const struct verbs_mode verbs_mode_send, verbs_mode_send_numbered, verbs_mode_send_scheduled,
    verbs_mode_write, verbs_mode_write_polled, verbs_mode_read;

#endif
