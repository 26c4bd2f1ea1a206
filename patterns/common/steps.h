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
    /* Takes only the partners, and no schedule is kept; NULL: none */
    struct pattern_flow_list *list;
};

void steps_send(struct steps *steps, uint32_t to, struct piece piece);
void steps_receive(struct steps *steps, uint32_t from, struct piece piece);
/* Emit the addition of the floats at `from` to those of the piece. */
void steps_reduce(struct steps *steps, struct piece piece, uint64_t from);
void steps_copy(struct steps *steps, struct piece piece, uint64_t from);
void steps_work(struct steps *steps, uint64_t operations);
/* Begin a new step, which waits for all operations emitted before. */
void steps_next(struct steps *steps);
/* Continue with the group of `count` ranks first, first + stride ...; 0, 1, n is all ranks. */
void steps_enter(struct steps *steps, uint32_t first, uint32_t stride, uint32_t count);
void steps_hold(struct steps *steps, const struct content *content);
/* Describe a piece with the first bytes of a rank's data. */
void steps_hold_of(struct steps *steps, enum content_time time, uint32_t source,
                   struct piece piece);
/* Emit a step with a message to one rank and a message from another rank, or the same. */
void steps_swap(struct steps *steps, uint32_t to, struct piece out, uint32_t from, struct piece in);

/* Emit a step that sends the rank's own message, which is first in its memory, to one rank, and
 * receives another rank's message at the place `slot`, from 1 on. */
void steps_trade(struct steps *steps, uint64_t bytes, uint32_t slot, uint32_t to, uint32_t from);

#endif
