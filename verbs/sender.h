/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sending end of a stream: posts messages as far as the receiver has credited places, and takes
 * their completions. Offered is what was completed: with RC what the partner's device has
 * acknowledged, with UC and UD what left.
 */
#ifndef VERBS_SENDER_H
#define VERBS_SENDER_H

#include "endpoint.h"
#include "receiver.h"

struct verbs_sender {
    struct verbs_endpoint base;
    struct verbs_receiver *from; /* forwards what this one takes; NULL: it generates */
    struct verbs_cursor at;
    uint64_t done;         /* messages completed ... */
    uint64_t done_bytes;   /* ... and their payload */
    uint64_t allowed;      /* messages that the receiver has given places for */
    uint64_t *bytes_after; /* payload bytes up to a message that is signalled; `span` of them */
    uint32_t span;         /* messages that can be posted and not completed */
    uint32_t next;         /* place in bytes_after and among the headers */
    uint32_t remote;       /* place in the receiver's ring */
    uint32_t unsignalled;  /* messages posted since the last that is signalled */
    uint64_t waits;        /* times that messages were due and no place was free */
    int64_t moved_ns;      /* unreliable services: when a credit last came, or was given up */
    struct memory_range payload; /* the port's when it was connected: a later lane may need more */
    struct verbs_header header;  /* of the run that is made: the compiler keeps it in one piece */
    bool stopping;               /* begin no further message */
    unsigned eofs;               /* posted */
    int64_t eof_ns;
    /* Chosen by verbs_sender_init: fills the next `count` work requests with messages of the
     * present length. */
    void (*fill)(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count);
    struct ibv_send_wr works[VERBS_BATCH];   /* linked */
    struct ibv_sge gathers[2 * VERBS_BATCH]; /* two for each */
};

/* The endpoint and `from` are filled. -ENOMEM; free it then, too. */
int verbs_sender_init(struct verbs_sender *sender);
void verbs_sender_free(struct verbs_sender *sender);
/* It is connected: fills what needs the partner's info. */
void verbs_sender_connected(struct verbs_sender *sender);

/* Takes completions and credits; true: something moved. */
bool verbs_sender_reap(struct verbs_sender *sender, int64_t now_ns);
/* Posts messages of up to `budget` bytes, or one that is larger; returns the bytes. */
uint64_t verbs_sender_post(struct verbs_sender *sender, uint64_t budget, int64_t now_ns);
/* Leaves `count` messages out, as if they had been sent. */
void verbs_sender_skip(struct verbs_sender *sender, uint64_t count);
/* All messages are posted: sends the eof once they are completed. */
void verbs_sender_finish(struct verbs_sender *sender, int64_t now_ns);

static inline bool verbs_sender_at_end(const struct verbs_sender *sender)
{
    return sender->stopping || sender->at.length == 0;
}

#endif
