/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a lane's messages travel: by which operation, and how the receiver learns that one has come.
 * One file per mode: mode_send.c (send, also of datagrams and schedules), mode_write.c (RDMA write
 * with immediate data), mode_write_polled.c (RDMA write that the receiver finds in its memory),
 * mode_read.c (RDMA read by the receiver).
 */
#ifndef VERBS_MODE_H
#define VERBS_MODE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct verbs_receiver;
struct verbs_sender;

struct verbs_mode {
    enum ibv_wr_opcode opcode;  /* of the sender's messages */
    bool eof_takes_place;       /* of the receiver's ring */
    bool completes_at_receiver; /* what comes makes a completion there, which may wake a worker */
    bool uncounted;             /* a schedule counts what it sends and takes what comes */

    /* Sender. Posts messages of up to `budget` bytes (or one that is larger), `max` of them;
     * returns the bytes. */
    uint64_t (*post)(struct verbs_sender *sender, uint64_t budget, uint64_t max);
    /* Tells the receiver what is posted; NULL: the messages themselves do. */
    void (*announce)(struct verbs_sender *sender);
    /* Writes into the next `count` work requests where they go; NULL: to the next receive. */
    void (*address)(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count);
    /* So many messages have been credited; true: that is news. */
    bool (*credited)(struct verbs_sender *sender, uint64_t messages, int64_t now_ns);

    /* Receiver. Takes what has come; returns how many messages. */
    unsigned (*take)(struct verbs_receiver *receiver, int64_t now_ns);
    /* Makes the next `count` places ready to be filled again. NULL: their receives are posted
     * again, if it completes at the receiver. */
    void (*make_ready)(struct verbs_receiver *receiver, uint32_t count);
};

/* The `address` of both kinds of writes: into the next places of the receiver's ring, each with its
 * number as immediate data. */
void verbs_write_address(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count);

extern const struct verbs_mode verbs_mode_send, verbs_mode_send_numbered, verbs_mode_send_scheduled,
    verbs_mode_write, verbs_mode_write_polled, verbs_mode_read;

#endif
