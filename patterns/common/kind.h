/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a pattern is inside: one file, one `struct pattern_kind`, one word in PATTERNS. Only the
 * files of this folder include this.
 */
#ifndef PATTERNS_KIND_H
#define PATTERNS_KIND_H

#include "pattern.h"

/* A bit for each parameter of a request that not every pattern knows. */
#define PATTERN_PLACE(word, key, type, member, count) PATTERN_PLACE_##word,
#define PATTERN_BIT(word, key, type, member, count)                                                \
    PATTERN_PARAM_##word = 1 << PATTERN_PLACE_##word,
enum { PATTERN_PARAMS(PATTERN_PLACE) };
enum pattern_param { PATTERN_PARAMS(PATTERN_BIT) };

/* Where the sentence of a refusal goes. */
struct pattern_why {
    char *text;
    size_t size;
};

/* The flows of one rank on one side, as they are found. */
struct pattern_flow_list {
    uint32_t rank;
    uint32_t phase;
    enum pattern_side side;
    struct pattern_flow *flows; /* takes the first `room` of them */
    size_t room, count;
    const uint32_t *only;               /* the peer whose flows count; NULL: any */
    const struct pattern_plan *one_way; /* of two flows that are each other's way back only the
                                          lower rank's counts; NULL: both do */
    uint64_t *seen;                     /* a bit a peer: each counts once; NULL: each flow */
};

struct steps;

#define KERNEL_CLASSES 6 /* S, W, A, B, C, D */

/* A benchmark's problem in one class. */
struct kernel_problem {
    uint32_t size[3]; /* points by dimension; CG: na, nonzer; IS, EP: log2 of keys, of pairs */
    uint32_t iterations;
};

enum kernel_ranks { RANKS_POWER_OF_TWO, RANKS_SQUARE, RANKS_ANY };

struct kernel {
    struct kernel_problem problems[KERNEL_CLASSES];
    enum kernel_ranks ranks;
    uint32_t least; /* points of a grid's dimension that a rank must have; 0: no matter */
    uint64_t (*most)(const struct kernel_problem *problem); /* ranks; NULL: no matter */
};

typedef void pattern_emitter(const struct pattern_plan *plan, struct steps *steps);

struct pattern_plan {
    const struct pattern_kind *kind;
    const char *name;
    char label[64]; /* the name of its phase, unless the kind says more */
    uint32_t n;
    uint32_t phases;              /* 1, unless the kind says more */
    struct pattern_request asked; /* without its words and lists; the kind may add defaults */
    unsigned choice;              /* of a word, by the kind */
    void *state;                  /* the kind's own: one block that free() ends, or NULL */
    /* Emits the schedule of steps->rank in steps->phase (steps.h); NULL: none. */
    pattern_emitter *emit;
    uint64_t bytes;        /* of a message; what that is exactly, the kind says */
    uint32_t local_phases; /* the kind's own, that are steps of the plan's only phase; 0: none */
    /* Of an application kernel: */
    uint32_t iterations;
    const struct kernel_problem *problem;
};

#define ALGORITHMS_MAX 3

struct pattern_kind {
    unsigned knows;       /* enum pattern_param, or-ed */
    bool in_turn;         /* as pattern_in_turn */
    bool floats;          /* it reduces: bytes is a multiple of 4 */
    struct kernel kernel; /* of the NAS benchmarks */
    /* A schedule by nature: how it is emitted, by algorithm, the default first. */
    pattern_emitter *emit[ALGORITHMS_MAX];
    const char *algorithms[ALGORITHMS_MAX + 1]; /* none: there is one way */
    /* Checks the request and sets what the plan has beyond it; NULL: nothing is left to do. n is
     * valid and no unknown parameter is set. Returns 0, pattern_refuse() or -ENOMEM. */
    int (*make)(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why);
    /* As pattern_phase_name; NULL: plan->label and, of several phases, by how many ranks the roles
     * have moved. */
    int (*phase_name)(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size);
    /* Adds the flows that list->rank has on list->side in list->phase. NULL: all plans of this kind
     * are schedules, which emit them. */
    void (*flows)(const struct pattern_plan *plan, struct pattern_flow_list *list);
};

/* The patterns in their order. */
/* clang-format off */
#define PATTERNS(X)                                                                                \
    X(chain) X(pairs) X(aapc) X(ring) X(random)                                                    \
    X(full_mesh) X(incast) X(fanout) X(partial_mesh) X(head_of_line) X(flows)                      \
    X(pingpong) X(pingping) X(sendrecv) X(exchange)                                                \
    X(bcast) X(reduce) X(allreduce) X(reduce_scatter) X(allgather) X(allgatherv)                   \
    X(alltoall) X(alltoallv) X(barrier)                                                            \
    X(nas_ep) X(nas_is) X(nas_cg) X(nas_mg) X(nas_ft) X(nas_lu) X(nas_sp) X(nas_bt)                \
    X(hpl) X(halo)
/* clang-format on */
#define DECLARE(word) extern const struct pattern_kind kind_##word;
PATTERNS(DECLARE)

/* Writes the sentence and returns -EINVAL. */
int pattern_refuse(struct pattern_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The index of `word` in the NULL-terminated `words`; 0, the default, when it is NULL. A word that
 * is not there is refused, with those that are; `what` is the parameter's name. */
int pattern_choose(const char *what, const char *const *words, const char *word,
                   struct pattern_why *why);

/* Refuses the first parameter that is set and not in `known`; `who` takes it or not. */
int pattern_check_params(const char *who, const struct pattern_request *request, unsigned known,
                         struct pattern_why *why);

/* Refuses a rank that is none of n or comes twice in these lists, and any that is empty. `what` is
 * the parameter's name. Returns 0, -EINVAL or -ENOMEM. */
int pattern_check_ranks(const char *what, const struct pattern_ranks *lists, size_t count,
                        uint32_t n, struct pattern_why *why);

/* Adds the flow between the list's rank and `peer`, in the direction of the list's side, with its
 * share of its source's load (struct pattern_flow); or one without, that the rank generates. */
void pattern_add_flow(struct pattern_flow_list *list, uint32_t peer, enum pattern_role role,
                      uint32_t share);
void pattern_add(struct pattern_flow_list *list, uint32_t peer);

/* The rank that has a place when all roles have moved to the next rank so often, and its inverse.
 */
static inline uint32_t pattern_turned(const struct pattern_plan *plan, uint32_t place,
                                      uint32_t phase)
{
    return (uint32_t)(((uint64_t)place + phase) % plan->n);
}

static inline uint32_t pattern_turned_back(const struct pattern_plan *plan, uint32_t rank,
                                           uint32_t phase)
{
    return rank >= phase ? rank - phase : rank + plan->n - phase;
}

/* Writes the flows of an ordinary pattern; there is room for those of a rank, n - 1. Returns how
 * many there are. */
size_t pattern_list(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                    enum pattern_side side, struct pattern_flow *flows);

/* As plan->emit, of an ordinary pattern whose phases are the steps of one. */
void pattern_emit_local(const struct pattern_plan *plan, struct steps *steps);

#endif
