/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All ranks of a schedule in one thread and without I/O, each with its executor: they progress in
 * random order, and a message passes only while its send and its receive are both open and the
 * first of their flow that are left. Nothing is buffered.
 */
#ifndef TESTS_UNIT_RANKS_H
#define TESTS_UNIT_RANKS_H

#include "schedule_executor.h"

#define RANKS_MOST 1024u

struct rank {
    struct phase phase; /* own phase: ranks may have different times */
    struct schedule_executor *executor;
    bool *done; /* by operation */
    bool over;  /* ended or wrong */
};

/* Messages of a barrier are not counted, and arrive undamaged. */
struct ranks {
    uint32_t n;
    struct rank ranks[RANKS_MOST];
    uint64_t random;
    uint64_t messages;
    uint64_t spoil;    /* the first non-empty message after this many arrives damaged; 0: none */
    bool spoil_early;  /* ... one of a last step, in a batch's first repetition */
    bool spoil_result; /* ... one of a last step */
    bool lose;         /* ... or none of its bytes arrive: the memory keeps its content */
    uint32_t spoiled;  /* rank at which it arrives */
    void (*look)(
        struct rank *rank); /* called before a batch's results are verified; NULL: not called */
    bool rests;             /* operations take no time */
};

extern struct ranks sim;

struct pattern_plan *plan_of(const struct pattern_request *request);

/* Make `n` ranks of a phase of the plan. */
void sim_make(const struct pattern_plan *plan, uint32_t n, const struct phase *phase);
/* Run until all ranks have ended, or one has a wrong result. Return its sentence, or "". */
const char *sim_run(void);
void sim_free(void);

/* Return a schedule with so many repetitions. */
struct phase counted(uint64_t count, uint32_t batch, uint32_t warmup, bool compute);

#endif
