/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of one flow of a schedule at its destination (doc/developer/schedules.md): which of
 * their segments came, of the one that is waited for, and of later ones, because a source may be
 * ahead. Numbers and bits only: no payload, no I/O and nothing of DPDK's.
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
struct reassembly_cycle {
    uint32_t barrier_rounds; /* of the barrier */
    uint32_t count;          /* of a repetition ... */
    uint32_t *bytes;         /* ... each one's */
    uint32_t batch;          /* repetitions */
};

struct reassembly_message {
    uint32_t bytes;
    struct segment_set set;
    bool in_barrier; /* it is the barrier's: one segment that says `bits` */
    uint8_t bits;
};

struct reassembly_window {
    uint64_t base;   /* number of the message that is waited for, or will be next */
    uint64_t opened; /* those of smaller numbers are waited for, or were */
    uint32_t half;   /* messages before `base` that are kept, and from it on */
    uint32_t words;  /* of `seen`, per message */
    struct reassembly_cycle cycle;
    struct segmentation segmentation;
    struct reassembly_message *messages; /* n at n % (2 * half) */
    uint64_t *seen;                      /* `words` of each */
};

/* Takes the cycle's list; memory of about `most_bytes`, but for four messages at least. -ENOMEM:
 * free it all the same. */
int reassembly_window_make(struct reassembly_window *window, const struct reassembly_cycle *cycle,
                           const struct segmentation *segmentation, size_t most_bytes);
void reassembly_window_free(struct reassembly_window *window);

enum reassembly_place { WINDOW_KEPT, WINDOW_OLD, WINDOW_EARLY /* beyond the window */ };

/* Where a message is, by the 32 bits of its number that are on the wire; where it is kept, its
 * number, too. */
enum reassembly_place reassembly_window_find(const struct reassembly_window *window, uint32_t wire,
                                             uint64_t *number);

static inline struct reassembly_message *
reassembly_window_message(const struct reassembly_window *window, uint64_t number)
{
    assert(window->half > 0); /* since it is made */
    return &window->messages[number % (2 * (uint64_t)window->half)];
}

/* A segment of a message that is kept. Exclusive, as SEQUENCE_...: late is what was given up. */
enum sequence_verdict reassembly_window_take(struct reassembly_window *window, uint64_t number,
                                             uint32_t segment);

static inline bool reassembly_window_waits(const struct reassembly_window *window)
{
    return window->base < window->opened;
}

static inline bool reassembly_window_whole(const struct reassembly_window *window)
{
    return reassembly_window_message(window, window->base)->set.missing == 0;
}

/* Nothing more is expected of the message that was waited for: it is whole, or given up. */
void reassembly_window_close(struct reassembly_window *window);

#endif
