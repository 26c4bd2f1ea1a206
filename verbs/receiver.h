/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiving end of a stream: takes what has come, verifies it, gives the place back, and
 * credit with it.
 */
#ifndef VERBS_RECEIVER_H
#define VERBS_RECEIVER_H

#include "endpoint.h"
#include "verifier.h"

struct verbs_receiver {
    struct verbs_endpoint base;
    bool forwards; /* a sender gives the places back */
    struct verbs_verifier verifier;
    uint32_t place;         /* of the ring, for the next message */
    uint32_t held;          /* places taken and not given back */
    uint32_t arrived;       /* schedules: places from `place` on that wait for their step ... */
    uint32_t *lengths;      /* ... by place, the bytes that came; NULL: another traffic */
    uint32_t to_post;       /* receives to be posted again ... */
    uint32_t to_post_place; /* ... from this place on */
    uint64_t credited;      /* messages that the sender knows to be dealt with */
    int64_t credited_ns;
    int64_t came_ns; /* the last message */
    uint64_t total;  /* of the eof ... */
    uint64_t total_bytes;
    bool eof_seen; /* ... which has come */
    bool whole;
};

/* The endpoint and `forwards` are filled. `whole`: every byte is verified. -ENOMEM; free it then,
 * too. */
int verbs_receiver_init(struct verbs_receiver *receiver, bool whole);
void verbs_receiver_free(struct verbs_receiver *receiver);
/* It is connected: fills what needs the partner's info. */
void verbs_receiver_connected(struct verbs_receiver *receiver);

/* Takes what has come; how many messages. */
unsigned verbs_receiver_poll(struct verbs_receiver *receiver, int64_t now_ns);
/* Gives back the places of the `count` messages that were taken first. */
void verbs_receiver_give_back(struct verbs_receiver *receiver, uint32_t count);

/* Schedules: the message that came first and was not taken yet, and its length; NULL: there is
 * none. */
const uint8_t *verbs_receiver_arrived(const struct verbs_receiver *receiver, uint32_t *bytes);
/* It was taken, and held so many bytes; or it is taken as what it should be, the eof. */
void verbs_receiver_took(struct verbs_receiver *receiver, uint32_t bytes);
void verbs_receiver_take_eof(struct verbs_receiver *receiver);

static inline uint8_t *verbs_receiver_slot(const struct verbs_receiver *receiver, uint32_t place)
{
    return receiver->base.qp->ring + (size_t)place * receiver->base.qp->config.stride;
}

static inline uint32_t verbs_receiver_after(const struct verbs_receiver *receiver, uint32_t place)
{
    return place + 1 == receiver->base.qp->config.slots ? 0 : place + 1;
}

/* --- for the modes --- */

/* Verifies the message of `bytes` at `data` and takes the next place. */
void verbs_receiver_take(struct verbs_receiver *receiver, const uint8_t *data, uint32_t bytes,
                         int64_t now_ns);
/* The next place held no message of the stream: its receive is posted again at once. */
void verbs_receiver_leave(struct verbs_receiver *receiver);
/* True: the eof of this stream, which is noted. */
bool verbs_receiver_read_eof(struct verbs_receiver *receiver, const struct verbs_notice *eof);

#endif
