/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of one flow of a schedule at its destination (doc/schedules.md): which of their segments
 * came, of the one that is waited for, and of later ones, because a source may be ahead. Numbers
 * and bits only: no payload, no I/O and nothing of DPDK's.
 *
 * Both ends know how many bytes the nth message of a flow has: first are those of the barrier, then
 * the schedule's, so often as a batch repeats it, and so on. A window of message numbers is kept,
 * half of it before the one that is next (what comes of those is late, or a second copy), half of
 * it from there on.
 */
#ifndef ENGINE_DPDK_REASSEMBLY_WINDOW_H
#define ENGINE_DPDK_REASSEMBLY_WINDOW_H

#include "message.h"

#include <assert.h>

/* Sizes of a flow's messages, from one barrier to the next. */
struct ahead_cycle {
    uint32_t meetings; /* of the barrier */
    uint32_t count;    /* of a repetition ... */
    uint32_t *bytes;   /* ... each one's */
    uint32_t batch;    /* repetitions */
};

struct ahead_message {
    uint32_t bytes;
    uint32_t missing;  /* segments */
    uint32_t expected; /* one more than the greatest that came */
    bool meeting;      /* it is the barrier's: one segment that says `bits` */
    uint8_t bits;
};

struct ahead {
    uint64_t base;   /* number of the message that is waited for, or will be next */
    uint64_t opened; /* those of smaller numbers are waited for, or were */
    uint32_t half;   /* messages before `base` that are kept, and from it on */
    uint32_t words;  /* of 64 segments, a message */
    struct ahead_cycle cycle;
    struct message_cut cut;
    struct ahead_message *messages; /* n at n % (2 * half) */
    uint64_t *seen;                 /* bit n % 64 of a message's word n / 64: segment n came */
};

/* Takes the cycle's list; memory of about `most_bytes`, but for four messages at least. -ENOMEM:
 * free it all the same. */
int ahead_make(struct ahead *ahead, const struct ahead_cycle *cycle, const struct message_cut *cut,
               size_t most_bytes);
void ahead_free(struct ahead *ahead);

enum ahead_place { AHEAD_KEPT, AHEAD_OLD, AHEAD_EARLY /* beyond the window */ };

/* Where a message is, by the 32 bits of its number that are on the wire; where it is kept, its
 * number, too. */
enum ahead_place ahead_find(const struct ahead *ahead, uint32_t wire, uint64_t *number);

static inline struct ahead_message *ahead_message(const struct ahead *ahead, uint64_t number)
{
    assert(ahead->half > 0); /* since it is made */
    return &ahead->messages[number % (2 * (uint64_t)ahead->half)];
}

/* A segment of a message that is kept. Exclusive, as SEQUENCE_...: late is what was given up. */
enum sequence_verdict ahead_take(struct ahead *ahead, uint64_t number, uint32_t segment);

static inline bool ahead_waits(const struct ahead *ahead)
{
    return ahead->base < ahead->opened;
}

static inline bool ahead_whole(const struct ahead *ahead)
{
    return ahead_message(ahead, ahead->base)->missing == 0;
}

/* Nothing more is expected of the message that was waited for: it is whole, or given up. */
void ahead_close(struct ahead *ahead);

#endif
