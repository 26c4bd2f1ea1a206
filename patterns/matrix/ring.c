/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ring: every rank has a successor and a predecessor in one cycle over all ranks, the natural one
 * (0 1 2 ...) and random ones (HPCC's b_eff). A random ring is a permutation read as a cycle: the
 * neighbours of a rank are the elements at the positions beside its own.
 *
 * HPCC 1.5 (bench_lat_bw) draws its rings in another way, by linear probing, in which ranks often
 * follow their natural predecessors: 5 of 64, where a uniform draw has 1. Such rings are made and
 * kept, for no part of one can be computed by itself.
 */
#include "kind.h"
#include "permutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RINGS_MAX 65536u
#define KEPT_MAX (UINT32_C(1) << 24) /* ranks of all rings: 64 MB */

struct ring {
    bool natural;
    bool both;
    bool probed;     /* drawn as HPCC does, and kept: */
    uint16_t kept[]; /* by ring, rank by position, then position by rank */
};

/* Each rank in turn takes a random position, or the next one behind it that is free. */
static void probe(struct ring *ring, uint32_t n, uint64_t seed, uint32_t number)
{
    uint16_t *order = ring->kept + (size_t)(number - 1) * 2 * n, *position = order + n;

    memset(order, 0xff, n * sizeof(*order));
    for (uint32_t rank = 0; rank < n; rank++) {
        uint64_t word = random_word(seed, (uint64_t)number << 32 | rank);
        uint32_t at = (uint32_t)(((word >> 32) * n) >> 32);

        while (order[at] != UINT16_MAX)
            at = at + 1 < n ? at + 1 : 0;
        order[at] = (uint16_t)rank; /* the last of 65,536 ranks is UINT16_MAX, and all are placed */
        position[rank] = (uint16_t)at;
    }
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int forward = pattern_either("directions", "both", "forward", request->directions, why);
    int probed = pattern_either("random_generator", "uniform", "hpcc", request->draw, why);
    bool natural = request->natural == NULL || *request->natural;
    struct ring *ring = NULL;
    size_t kept = probed == 1 ? (size_t)request->count * plan->n : 0;

    if (forward < 0 || probed < 0)
        return -EINVAL;
    if (!natural && request->count == 0)
        return pattern_refuse(why, "ring has no phase: it needs natural, or a count of at least 1");
    if (request->count > RINGS_MAX)
        return pattern_refuse(why, "ring: count %u is more than %u", request->count, RINGS_MAX);
    if (kept > KEPT_MAX)
        return pattern_refuse(
            why, "ring: draw hpcc keeps its rings, of %u ranks in total at most: %u rings of %u",
            KEPT_MAX, request->count, plan->n);
    ring = malloc(sizeof(*ring) + 2 * kept * sizeof(*ring->kept));
    if (ring == NULL)
        return -ENOMEM;
    ring->natural = natural;
    ring->both = !forward;
    ring->probed = probed;
    for (uint32_t number = 1; ring->probed && number <= request->count; number++)
        probe(ring, plan->n, plan->asked.seed, number);
    plan->phases = natural + request->count;
    plan->state = ring;
    return 0;
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
    const uint16_t *kept; /* NULL: it is computed */
    struct permutation order;
};

static struct cycle cycle_of(const struct pattern_plan *plan, uint32_t phase)
{
    const struct ring *ring = plan->state;

    if (is_natural(ring, phase))
        return (struct cycle){.natural = true};
    if (ring->probed)
        return (struct cycle){.kept = ring->kept + (size_t)(number(ring, phase) - 1) * 2 * plan->n};
    return (struct cycle){.order =
                              permutation_draw(plan->n, plan->asked.seed, number(ring, phase))};
}

static uint32_t position_of(const struct cycle *cycle, uint32_t n, uint32_t rank)
{
    if (cycle->kept != NULL)
        return cycle->kept[n + rank];
    return cycle->natural ? rank : permutation_position(&cycle->order, rank);
}

/* The ranks beside a rank. */
struct neighbours {
    uint32_t ahead;
    uint32_t behind;
};

static struct neighbours neighbours_of(const struct cycle *cycle, uint32_t n, uint32_t rank)
{
    uint32_t position = position_of(cycle, n, rank);
    struct neighbours ranks = {
        .ahead = position + 1 < n ? position + 1 : 0,
        .behind = position > 0 ? position - 1 : n - 1,
    };

    if (cycle->kept != NULL)
        return (struct neighbours){cycle->kept[ranks.ahead], cycle->kept[ranks.behind]};
    if (!cycle->natural)
        permutation_at_both(&cycle->order, &ranks.ahead, &ranks.behind);
    return ranks;
}

/* The forward flow comes first on both sides: to the successor, from the predecessor. Of two ranks
 * each is the other's successor and predecessor: one flow each way, in both directions or one. */
static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    const struct ring *ring = plan->state;
    struct cycle cycle = cycle_of(plan, list->phase);
    struct neighbours ranks = neighbours_of(&cycle, plan->n, list->rank);
    bool sends = list->side == PATTERN_SENDS;

    pattern_add(list, sends ? ranks.ahead : ranks.behind, PATTERN_GENERATE);
    if (ring->both && plan->n > 2)
        pattern_add(list, sends ? ranks.behind : ranks.ahead, PATTERN_GENERATE);
}

const struct pattern_kind kind_ring = {
    .knows =
        PATTERN_PARAM_DIRECTIONS | PATTERN_PARAM_COUNT | PATTERN_PARAM_NATURAL | PATTERN_PARAM_DRAW,
    .make = make,
    .phase_name = phase_name,
    .flows = flows,
};
