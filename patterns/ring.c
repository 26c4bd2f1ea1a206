/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ring: every rank has a successor and a predecessor in one cycle over all ranks, the natural one
 * (0 1 2 ...) and random ones (HPCC's b_eff). A random ring is a permutation read as a cycle: the
 * neighbours of a rank are the elements at the positions beside its own.
 */
#include "kind.h"
#include "permutation.h"
#include "steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define RINGS_MAX 65536u

enum { BOTH, FORWARD };
static const char *const direction_words[] = {[BOTH] = "both", [FORWARD] = "forward", NULL};

enum { SENDRECV, NONBLOCKING };
static const char *const method_words[] = {
    [SENDRECV] = "sendrecv", [NONBLOCKING] = "nonblocking", NULL};

struct ring {
    bool natural;
    bool both;
    bool one_step; /* scheduled: both directions at once */
};

static void tell(const struct pattern_plan *plan, uint32_t phase, struct steps *steps);

/* Each ring becomes a schedule. */
static int take_method(struct pattern_plan *plan, const struct pattern_request *request,
                       struct pattern_why *why)
{
    struct ring *ring = plan->state;
    int method = pattern_choose("method", method_words, request->method, why);

    if (method < 0)
        return method;
    if (!ring->both)
        return pattern_refuse(why,
                              "ring: method %s sends both ways: it takes no directions forward",
                              method_words[method]);
    if (request->local)
        return pattern_refuse(why, "ring: method %s runs each ring alone: it takes no local",
                              method_words[method]);
    ring->one_step = method == NONBLOCKING;
    plan->tell = tell;
    return 0;
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int directions = pattern_choose("directions", direction_words, request->directions, why);
    struct ring *ring = NULL;

    if (directions < 0)
        return directions;
    if (!request->natural && request->count == 0)
        return pattern_refuse(why, "ring has no phase: it needs natural, or a count of at least 1");
    if (request->count > RINGS_MAX)
        return pattern_refuse(why, "ring: count %u is more than %u", request->count, RINGS_MAX);
    ring = malloc(sizeof(*ring));
    if (ring == NULL)
        return -ENOMEM;
    ring->natural = request->natural;
    ring->both = directions == BOTH;
    plan->phases = (request->natural ? 1 : 0) + request->count;
    plan->state = ring;
    return request->method != NULL ? take_method(plan, request, why) : 0;
}

static bool is_natural(const struct ring *ring, uint32_t phase)
{
    return ring->natural && phase == 0;
}

/* Random rings are numbered from 1, with a natural ring before them or without. */
static uint32_t number(const struct ring *ring, uint32_t phase)
{
    return ring->natural ? phase : phase + 1;
}

static int phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    const struct ring *ring = plan->state;

    if (is_natural(ring, phase))
        return snprintf(name, size, "natural");
    return snprintf(name, size, "random %u", number(ring, phase));
}

/* The ranks in the order of one ring. */
struct cycle {
    bool natural;
    struct permutation order;
};

static struct cycle cycle_of(const struct pattern_plan *plan, uint32_t phase)
{
    const struct ring *ring = plan->state;

    if (is_natural(ring, phase))
        return (struct cycle){.natural = true};
    return (struct cycle){.order = permutation_draw(plan->n, plan->seed, number(ring, phase))};
}

static uint32_t position_of(const struct cycle *cycle, uint32_t rank)
{
    return cycle->natural ? rank : permutation_position(&cycle->order, rank);
}

/* The ranks beside a rank. */
struct neighbours {
    uint32_t ahead;
    uint32_t behind;
};

static struct neighbours neighbours_of(const struct cycle *cycle, uint32_t n, uint32_t rank)
{
    uint32_t position = position_of(cycle, rank);
    struct neighbours ranks = {
        .ahead = position + 1 < n ? position + 1 : 0,
        .behind = position > 0 ? position - 1 : n - 1,
    };

    if (!cycle->natural)
        permutation_at_both(&cycle->order, &ranks.ahead, &ranks.behind);
    return ranks;
}

/* The forward flow comes first on both sides: to the successor, from the predecessor. Of two ranks
 * each is the other's successor and predecessor: one flow each way, in both directions or one. */
static void flows(const struct pattern_plan *plan, uint32_t phase, struct pattern_flow_list *list)
{
    const struct ring *ring = plan->state;
    struct cycle cycle = cycle_of(plan, phase);
    struct neighbours ranks = neighbours_of(&cycle, plan->n, list->rank);
    bool sends = list->side == PATTERN_SENDS;

    pattern_add(list, sends ? ranks.ahead : ranks.behind, PATTERN_GENERATE);
    if (ring->both && plan->n > 2)
        pattern_add(list, sends ? ranks.behind : ranks.ahead, PATTERN_GENERATE);
}

static void hold(const struct pattern_plan *plan, struct steps *steps, uint64_t at, uint32_t source)
{
    steps_hold(steps, source == steps->rank ? STEPS_INPUT : STEPS_RESULT,
               &(struct content){.piece = {at, plan->bytes}, .source = source});
}

/* HPCC's exchange of a ring (b_eff): a message to each neighbour; by MPI_Sendrecv first ahead, then
 * back, or all by non-blocking calls at once. */
static void tell(const struct pattern_plan *plan, uint32_t phase, struct steps *steps)
{
    const struct ring *ring = plan->state;
    struct cycle cycle = cycle_of(plan, phase);
    struct neighbours ranks = neighbours_of(&cycle, plan->n, steps->rank);
    uint64_t bytes = plan->bytes;

    hold(plan, steps, 0, steps->rank);
    steps_send(steps, ranks.ahead, (struct piece){0, bytes});
    steps_receive(steps, ranks.behind, (struct piece){bytes, bytes});
    if (!ring->one_step)
        steps_next(steps);
    steps_send(steps, ranks.behind, (struct piece){0, bytes});
    steps_receive(steps, ranks.ahead, (struct piece){2 * bytes, bytes});
    hold(plan, steps, bytes, ranks.behind);
    hold(plan, steps, 2 * bytes, ranks.ahead);
}

const struct pattern_kind pattern_ring = {
    .knows = PATTERN_PARAM_DIRECTIONS | PATTERN_PARAM_COUNT | PATTERN_PARAM_NATURAL |
             PATTERN_PARAM_METHOD,
    .make = make,
    .phase_name = phase_name,
    .flows = flows,
};
