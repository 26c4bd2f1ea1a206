/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Internal interface of patterns: one file, one `struct pattern_kind` and one word in PATTERNS for
 * each. Only the files of this folder include this header.
 */
#ifndef PATTERNS_KIND_H
#define PATTERNS_KIND_H

#include "pattern.h"

/* Bits of the parameters that only some patterns have (PATTERN_PARAMS). */
#define PATTERN_PLACE(word, key, type, member, count) PATTERN_PLACE_##word,
#define PATTERN_BIT(word, key, type, member, count)                                                \
    PATTERN_PARAM_##word = 1 << PATTERN_PLACE_##word,
enum { PATTERN_PARAMS(PATTERN_PLACE) };
enum pattern_param { PATTERN_PARAMS(PATTERN_BIT) };

/* Buffer for the error sentence of an invalid request. */
struct pattern_why {
    char *text;
    size_t size;
};

/* List of the flows of one rank on one side, to which a pattern adds flows. */
struct pattern_flow_list {
    uint32_t rank;
    uint32_t phase;
    enum pattern_side side;
    struct pattern_flow *flows; /* takes the first `room` flows */
    size_t room, count;
    const uint32_t *only; /* only this peer's flows are counted; NULL: all */
    /* Where two flows of this plan are opposite, only the lower rank's counts; NULL: both count */
    const struct pattern_plan *one_way;
    uint64_t *seen; /* one bit per peer, so that each counts once; NULL: every flow counts */
};

struct steps;

#define KERNEL_CLASSES 6 /* S, W, A, B, C, D */

/* Problem size of a benchmark in one class. */
struct kernel_problem {
    uint32_t size[3]; /* points by dimension; CG: na, nonzer; IS, EP: log2 of keys, of pairs */
    uint32_t iterations;
};

enum kernel_ranks { RANKS_POWER_OF_TWO, RANKS_SQUARE, RANKS_ANY };

struct kernel {
    struct kernel_problem problems[KERNEL_CLASSES];
    enum kernel_ranks ranks;
    uint32_t least; /* minimum points of a grid dimension per rank; 0: no minimum */
    uint64_t (*most)(const struct kernel_problem *problem); /* maximum ranks; NULL: no maximum */
};

typedef void pattern_emitter(const struct pattern_plan *plan, struct steps *steps);

struct pattern_plan {
    const struct pattern_kind *kind;
    const char *name;
    char label[64]; /* name of its phase, unless the kind names it */
    uint32_t n;
    uint32_t phases;              /* 1, unless the kind sets it */
    struct pattern_request asked; /* without words and lists; the kind may add defaults */
    unsigned choice;              /* index of a word, set by the kind */
    void *state;                  /* the kind's own block, released by free(); or NULL */
    /* Emits the schedule of the rank steps->rank in the phase steps->phase (steps.h); NULL:
     * none. */
    pattern_emitter *emit;
    uint64_t bytes; /* bytes of a message, as the kind defines them */
    /* Phases of the kind that become steps of the plan's only phase; 0: none */
    uint32_t local_phases;
    /* Set for application kernels: */
    uint32_t iterations;
    const struct kernel_problem *problem;
};

#define ALGORITHMS_MAX 3

struct pattern_kind {
    unsigned knows;       /* accepted parameters: enum pattern_param, or-ed */
    bool in_turn;         /* value of pattern_in_turn() */
    bool floats;          /* reduces floats: bytes is a multiple of 4 */
    struct kernel kernel; /* for the NAS benchmarks */
    /* Emitters of a kind that is always a schedule, by algorithm, the default first. */
    pattern_emitter *emit[ALGORITHMS_MAX];
    const char *algorithms[ALGORITHMS_MAX + 1]; /* names of the algorithms; empty: only one */
    /* Checks the request and sets the rest of the plan; NULL: nothing to set. n is valid and no
     * unknown parameter is set. Returns 0, pattern_refuse() or -ENOMEM. */
    int (*make)(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why);
    /* Writes a phase's name for pattern_phase_name(); NULL: plan->label, followed by the
     * rotation of the roles where there are several phases. */
    int (*phase_name)(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size);
    /* Adds the flows of list->rank on list->side in list->phase. NULL: all plans of this kind
     * are schedules, which emit their flows. */
    void (*flows)(const struct pattern_plan *plan, struct pattern_flow_list *list);
};

/* All patterns, in their order. */
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

/* Write the error sentence of an invalid request, and return -EINVAL. */
int pattern_refuse(struct pattern_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Return the index of `word` in the NULL-terminated `words`; 0, the default, where it is NULL.
 * An unknown word is an error that lists the valid words; `what` is the parameter's name. */
int pattern_choose(const char *what, const char *const *words, const char *word,
                   struct pattern_why *why);

/* Reject a request with a parameter that is set but not in `known`, naming the first one; `name` is
 * the pattern's name. Returns 0 or -EINVAL. */
int pattern_check_params(const char *name, const struct pattern_request *request, unsigned known,
                         struct pattern_why *why);

/* Reject ranks outside of 0 to n - 1, duplicate ranks, and empty lists. `what` is the
 * parameter's name. Returns 0, -EINVAL or -ENOMEM. */
int pattern_check_ranks(const char *what, const struct pattern_ranks *lists, size_t count,
                        uint32_t n, struct pattern_why *why);

/* Add the flow between the list's rank and `peer`, in the direction of the list's side.
 * pattern_add_flow() sets its role and its share of its source's load (struct pattern_flow);
 * pattern_add() adds a generated flow without a share. */
void pattern_add_flow(struct pattern_flow_list *list, uint32_t peer, enum pattern_role role,
                      uint32_t share);
void pattern_add(struct pattern_flow_list *list, uint32_t peer);

/* Return the rank that has the role of `place` in a phase, where all roles move to the next rank in
 * each phase. pattern_turned_back() is the inverse: it returns the place whose role a rank has. */
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

/* Write the flows of a rank on one side in one phase of an ordinary pattern (no schedule) into an
 * array with room for n - 1 flows; return their number. */
size_t pattern_list(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                    enum pattern_side side, struct pattern_flow *flows);

/* Emit the schedule of an ordinary pattern with `local`: the pattern's phases become the steps of
 * one phase. */
void pattern_emit_local(const struct pattern_plan *plan, struct steps *steps);

#endif
