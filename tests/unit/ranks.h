/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All ranks of a schedule in one thread and without I/O, each with its executor: they go on in
 * random order, and a message passes only where its send and its receive are open at the same time,
 * both the first of their flow that are left. Nothing is buffered.
 */
#ifndef TESTS_UNIT_RANKS_H
#define TESTS_UNIT_RANKS_H

#include "schedule_executor.h"

#define RANKS_MOST 1024u

struct rank {
    struct phase phase; /* its own: ranks may see other times */
    struct schedule_executor *executor;
    bool *done; /* by operation */
    bool over;  /* ended or wrong */
};

/* Messages of a barrier count nowhere, and arrive undamaged. */
struct ranks {
    uint32_t n;
    struct rank ranks[RANKS_MOST];
    uint64_t random;
    uint64_t messages;
    uint64_t spoil;    /* the first message with bytes behind so many arrives damaged; 0: none */
    bool spoil_early;  /* ... of a last step, in a batch's first repetition */
    bool spoil_result; /* ... of a last step */
    bool lose;         /* ... or none of its bytes arrive: what was there before stays */
    uint32_t spoiled;  /* at this rank */
    void (*look)(struct rank *rank); /* before a batch's results are verified; NULL: not called */
    bool rests;                      /* operations take no time */
};

extern struct ranks sim;

struct pattern_plan *plan_of(const struct pattern_request *request);

/* Makes `n` ranks of a phase of the plan. */
void sim_make(const struct pattern_plan *plan, uint32_t n, const struct phase *phase);
/* Runs until all ranks are through, or one has a wrong result; its sentence, or "". */
const char *sim_run(void);
void sim_free(void);

/* A schedule that is repeated so often. */
struct phase counted(uint64_t count, uint32_t batch, uint32_t warmup, bool compute);

#endif
