/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Communication patterns: functions without side effects that compute a plan from a number
 * of ranks, parameters and a seed.
 *
 * A plan is a list of phases; a phase is a set of flows that run at the same time; a flow is an
 * ordered pair of ranks. A pattern only returns flows: it never measures, waits or prints. Each
 * rank computes its own part of a phase in time and memory proportional to its own flows, so that
 * no rank of 65,536 needs an n x n table. The same request gives the same plan on every machine:
 * integers only, no libc random numbers.
 *
 * Sources: Switchbench (Rauch 2005) 4.1 to 4.3; HPCC's natural and random rings; Zhu et al. 2012.
 *
 * @see Rauch: Switchbench, 2005, 4.1 to 4.3; RFC 2889; RFC 8239; Zhu et al. 2012
 */
#ifndef PATTERNS_PATTERN_H
#define PATTERNS_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_RANKS_MAX 65536u
#define PATTERN_BYTES_MAX (UINT64_C(1) << 30)
#define PATTERN_WHOLE 1000000000u /**< unit of shares, which are in billionths */

/** @brief Origin of the traffic of a flow that a rank sends. */
enum pattern_role {
    PATTERN_GENERATE, /**< the rank's own stream */
    PATTERN_FORWARD,  /**< data received in this phase (middle ranks of a chain) */
};

struct pattern_flow {
    uint32_t src; /**< rank that sends, 0..n-1 */
    uint32_t dst; /**< rank that receives, never equal to src */
    enum pattern_role role;
    /**
     * @brief Share of its source's load; 0: the source's flows divide the load evenly. Either all
     * flows of a rank have a share, or none has.
     */
    uint32_t share;
};

enum pattern_side { PATTERN_SENDS, PATTERN_RECEIVES };

/**
 * @brief A list of ranks, or of pairs of ranks (even length: a0 b0 a1 b1 ...).
 *
 * Not owned.
 */
struct pattern_ranks {
    const uint32_t *rank;
    size_t count;
};

/**
 * @brief Request for a pattern: its name and parameters.
 *
 * Strings are the configuration's words (doc/reference/configuration.md); NULL or 0 means the
 * pattern's default. Parameters that a pattern does not have must be unset.
 */
struct pattern_request {
    const char *name;       /**< one of PATTERNS (kind.h) */
    uint32_t n;             /**< ranks, 2..PATTERN_RANKS_MAX */
    uint64_t seed;          /**< of all random choices */
    const char *order;      /**< aapc: shift (default) | pairwise | xor | naive */
    const char *partners;   /**< pairs: neighbours (default) | halves | shift | inside | across |
                               random | list */
    const char *directions; /**< pairs, ring: both (default) | forward; incast, fanout,
                               partial_mesh: forward (default) | both */
    const char *draw;       /**< ring: distribution of random rings, uniform (default) | hpcc */
    bool forward;           /**< chain: middle ranks forward what they receive */
    uint32_t shift;         /**< pairs, partners shift: k; 2k divides n */
    uint32_t count;         /**< pairs: maximum pairs; ring: random rings; random: phases;
                               pingpong, pingping: random pairs, one per phase (default: ranks 0
                               and 1); head_of_line: maximum groups */
    uint32_t degree;        /**< random: partners chosen per rank, 1 (default) to 16 */
    const bool *natural;    /**< ring: the natural ring is phase 0; NULL: true */
    bool round_trip; /**< any: of two opposite flows of a phase, only the lower rank's exists,
                            because its messages are returned */
    bool local;      /**< any: the plan is one schedule (schedule.h), the phases are its steps;
                        implied where it has no other form */
    uint64_t bytes;  /**< of a message in a schedule, 0 to PATTERN_BYTES_MAX */
    const char *algorithm; /**< collectives: one of their own (doc/reference/patterns.md) */
    const char *class;     /**< nas_...: S (default) | W | A | B | C | D */
    uint32_t matrix;       /**< hpl: N, rows of the matrix, default 8192 */
    uint32_t block;        /**< hpl: NB, columns of a panel, default 128 */
    uint32_t dimensions;   /**< halo: of the grid of ranks, 2 (default) | 3 */
    uint32_t senders;      /**< fanout: sending ranks, 1 (default) to n - 1; the others receive */
    uint32_t receivers;    /**< incast: receiving ranks, 1 (default) to n - 1; the others send.
                              head_of_line: of a group, 2 (default) or more */
    bool rotate;         /**< incast, fanout, partial_mesh, head_of_line: n phases, in each of which
                            all roles move to the next rank */
    const char *load_of; /**< incast, fanout, partial_mesh: line that the load is a share of,
                            senders (default) | receivers: the senders to one divide it */
    struct pattern_ranks list; /**< pairs, partners list; flows: sources and destinations */
    const uint32_t *shares;    /**< flows: share of each flow (struct pattern_flow); 0: none */
    size_t share_count;        /**< 0: no flow has a share */
    /** @brief Groups of ranks: pairs with partners inside | across; partial_mesh: disjoint. */
    const struct pattern_ranks *groups;
    size_t group_count;
};

/* Parameters that only some patterns have: a constant, the key in a document, the type, the
 * member and, for a list, the member with its length. */
/* clang-format off */
#define PATTERN_PARAMS(X)                                                                          \
    X(ORDER, "order", WORD, order, )                                                               \
    X(PARTNERS, "partners", WORD, partners, )                                                      \
    X(DIRECTIONS, "directions", WORD, directions, )                                                \
    X(FORWARD, "forward", FLAG, forward, )                                                         \
    X(SHIFT, "shift", NUMBER, shift, )                                                             \
    X(COUNT, "count", NUMBER, count, )                                                             \
    X(NATURAL, "natural", FLAG_OR_DEFAULT, natural, )                                              \
    X(LIST, "list", NUMBERS, list.rank, list.count)                                                \
    X(GROUPS, "groups", GROUPS, groups, group_count)                                               \
    X(DEGREE, "degree", NUMBER, degree, )                                                          \
    X(ALGORITHM, "algorithm", WORD, algorithm, )                                                   \
    X(BYTES, "bytes", NUMBER, bytes, )                                                             \
    X(LOCAL, "local", FLAG, local, )                                                               \
    X(CLASS, "class", WORD, class, )                                                               \
    X(MATRIX, "matrix", NUMBER, matrix, )                                                          \
    X(BLOCK, "block", NUMBER, block, )                                                             \
    X(DIMENSIONS, "dimensions", NUMBER, dimensions, )                                              \
    X(DRAW, "random_generator", WORD, draw, )                                                      \
    X(SENDERS, "senders", NUMBER, senders, )                                                       \
    X(RECEIVERS, "receivers", NUMBER, receivers, )                                                 \
    X(ROTATE, "rotate", FLAG, rotate, )                                                            \
    X(LOAD_OF, "load_of", WORD, load_of, )                                                         \
    X(SHARES, "shares", NUMBERS, shares, share_count)
/* clang-format on */

struct pattern_plan; /* opaque */

/**
 * @brief Make the plan of a request.
 *
 * @param[out] plan Plan.
 * @param request Request; its strings and lists are not kept.
 * @param[out] why Error message, set on failure; may be NULL with size 0.
 * @param why_size Bytes of `why`.
 * @return 0, and the caller frees the plan by pattern_plan_free(); -EINVAL: an invalid request, and
 *        `why` holds an error message that names the parameter, its value and the valid values;
 *        -ENOMEM.
 */
int pattern_plan_make(struct pattern_plan **plan, const struct pattern_request *request, char *why,
                      size_t why_size);
/**
 * @brief Free a plan; NULL is none.
 *
 * @param plan Plan.
 */
void pattern_plan_free(struct pattern_plan *plan);

/**
 * @brief Return the number of phases of a plan.
 *
 * @param plan Plan.
 * @return Number of phases, at least 1.
 */
uint32_t pattern_phases(const struct pattern_plan *plan);

/**
 * @brief Write a short name of one phase for users: "distance 3", "round 2", "natural", "random 4".
 *
 * @param plan Plan.
 * @param phase Phase of the plan, from 0.
 * @param[out] name Name.
 * @param size Size of the buffer, bytes.
 * @return Length of the whole name, as snprintf() returns it.
 */
int pattern_phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size);

/**
 * @brief List the flows of a phase that a rank sends or receives, ordered by the other rank's turn
 * in the pattern.
 *
 * `phase` and `rank` must be in range.
 *
 * @param plan Plan.
 * @param phase Phase of the plan, from 0.
 * @param rank Rank, from 0.
 * @param side Flows that the rank sends, or those that it receives.
 * @param[out] flows Flows; NULL with room 0.
 * @param room Number of flows for which `flows` has room.
 * @return Number of flows, which may exceed `room`; 0: the rank is idle on that side.
 */
size_t pattern_flows(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     enum pattern_side side, struct pattern_flow *flows, size_t room);

/**
 * @brief Return whether each rank must send one frame of each of its flows in rotation (RFC 2889,
 * 5.1.3), rather than in any order.
 *
 * @param plan Plan.
 * @return True: in rotation.
 */
bool pattern_in_turn(const struct pattern_plan *plan);

#endif
