/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a pattern makes a rank's schedule: it emits the rank's steps from first to last, and what the
 * rank's memory holds before and after. Only the files of this folder and below include this.
 */
#ifndef PATTERNS_STEPS_H
#define PATTERNS_STEPS_H

#include "schedule.h"

/* The ranks first, first + stride ... that an algorithm runs on; it knows them as 0 to n - 1. */
struct group {
    uint32_t first;
    uint32_t stride;
};

struct pattern_flow_list;

struct steps {
    uint32_t n;    /* of the group */
    uint32_t rank; /* in the group */
    uint32_t phase;
    struct group group;
    uint32_t step;  /* the number of the present step */
    bool step_used; /* it has an op */
    struct schedule schedule;
    size_t op_room, content_room;
    int rc;                         /* -ENOMEM: the schedule is not whole */
    struct pattern_flow_list *list; /* takes the partners, and nothing else is kept; NULL: none */
};

void steps_send(struct steps *steps, uint32_t to, struct piece piece);
void steps_receive(struct steps *steps, uint32_t from, struct piece piece);
/* Adds the floats at `from` to the piece. */
void steps_reduce(struct steps *steps, struct piece piece, uint64_t from);
void steps_copy(struct steps *steps, struct piece piece, uint64_t from);
void steps_work(struct steps *steps, uint64_t operations);
/* What is emitted from here on waits for what was emitted before. */
void steps_next(struct steps *steps);
/* Goes on with the group of the `count` ranks first, first + stride ...; all ranks: 0, 1, n. */
void steps_enter(struct steps *steps, uint32_t first, uint32_t stride, uint32_t count);
void steps_hold(struct steps *steps, const struct content *content);
/* Bytes of a rank, from their first one on. */
void steps_hold_of(struct steps *steps, enum content_time time, uint32_t source,
                   struct piece piece);
/* A step of its own: a message to one rank, and one from another, or the same. */
void steps_swap(struct steps *steps, uint32_t to, struct piece out, uint32_t from, struct piece in);

/* The rank's own message, which lies first, to one rank, and another's to the place numbered
 * `slot`, from 1 on. */
void steps_trade(struct steps *steps, uint64_t bytes, uint32_t slot, uint32_t to, uint32_t from);

#endif
