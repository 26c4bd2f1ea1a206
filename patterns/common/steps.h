/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builder of a rank's schedule: a pattern emits the rank's steps from first to last, and the
 * contents of the rank's memory before and after. Only the files of this folder and below include
 * this header.
 */
#ifndef PATTERNS_STEPS_H
#define PATTERNS_STEPS_H

#include "schedule.h"

/* Ranks first, first + stride ... on which an algorithm runs, numbered from 0 to n - 1. */
struct group {
    uint32_t first;
    uint32_t stride;
};

struct pattern_flow_list;

struct steps {
    uint32_t n;    /* ranks of the group */
    uint32_t rank; /* in the group */
    uint32_t phase;
    struct group group;
    uint32_t step;  /* number of the present step */
    bool step_used; /* the step has an operation */
    struct schedule schedule;
    size_t op_room, content_room;
    int rc; /* -ENOMEM: the schedule is incomplete */
    /* If set, this list takes the partners of the sends or receives, and no schedule is stored;
     * NULL: the schedule is stored */
    struct pattern_flow_list *list;
};

void steps_send(struct steps *steps, uint32_t to, struct piece piece);
void steps_receive(struct steps *steps, uint32_t from, struct piece piece);
/* Emit the addition of the floats at the place `from` to the floats of the piece. */
void steps_reduce(struct steps *steps, struct piece piece, uint64_t from);
void steps_copy(struct steps *steps, struct piece piece, uint64_t from);
void steps_work(struct steps *steps, uint64_t operations);
/* Begin a new step, which waits for all operations that were emitted before. */
void steps_next(struct steps *steps);
/* Set the group of ranks on which the following steps run: `count` ranks first, first + stride ...;
 * the arguments 0, 1, n select all ranks. */
void steps_enter(struct steps *steps, uint32_t first, uint32_t stride, uint32_t count);
void steps_hold(struct steps *steps, const struct content *content);
/* Declare that a piece of memory holds the first bytes of rank `source`'s data, before
 * (STEPS_INPUT) or after (STEPS_RESULT) a repetition. */
void steps_hold_of(struct steps *steps, enum content_time time, uint32_t source,
                   struct piece piece);
/* Emit a step that sends a message to one rank and receives a message from another rank or the same
 * rank. */
void steps_swap(struct steps *steps, uint32_t to, struct piece out, uint32_t from, struct piece in);

/* Emit a step that sends the rank's own message, which is first in its memory, to one rank, and
 * receives another rank's message at the place `slot`, from 1 on. */
void steps_trade(struct steps *steps, uint64_t bytes, uint32_t slot, uint32_t to, uint32_t from);

#endif
