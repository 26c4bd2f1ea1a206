/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ring: every rank has a successor and a predecessor in one cycle over all ranks, the natural one
 * (0 1 2 ...) and random ones (HPCC's b_eff). A random ring is a permutation read as a cycle: the
 * neighbours of a rank are the elements at the positions beside its own.
 *
 * HPCC 1.5 (bench_lat_bw) makes its rings differently, by linear probing, in which ranks often
 * follow their natural predecessors: 5 of 64, where a uniform choice has 1. Such rings are made and
 * stored, because no part of one can be computed by itself.
 */
#include "kind.h"
#include "permutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RINGS_MAX 65536u
#define KEPT_MAX (UINT32_C(1) << 24) /* ranks of all rings: 64 MB */

enum { NATURAL = 1 << 0, BOTH = 1 << 1 }; /* plan->choice, or-ed */

/* Make a random ring as HPCC does: put each rank at a random position, or at the next free position
 * behind it. */
static void probe(uint16_t *kept, uint32_t n, uint64_t seed, uint32_t number)
{
    uint16_t *order = kept + (size_t)(number - 1) * 2 * n, *position = order + n;

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

/* Complete the plan. plan->state has the stored rings of HPCC, each as the ranks by position,
 * followed by the positions by rank. */
static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int forward = pattern_choose("directions", (const char *const[]){"both", "forward", NULL},
                                 request->directions, why);
    int probed = pattern_choose("random_generator", (const char *const[]){"uniform", "hpcc", NULL},
                                request->draw, why);
    bool natural = request->natural == NULL || *request->natural;
    size_t kept = probed == 1 ? (size_t)request->count * plan->n : 0;

    if (forward < 0 || probed < 0)
        return -EINVAL;
    if (!natural && request->count == 0)
        return pattern_refuse(why,
                              "ring has no phase: set natural: true, or a count of at least 1");
    if (request->count > RINGS_MAX)
        return pattern_refuse(why, "ring: count %u is more than the maximum, %u", request->count,
                              RINGS_MAX);
    if (kept > KEPT_MAX)
        return pattern_refuse(why,
                              "ring: random_generator hpcc stores its rings, which may have %u "
                              "ranks in total: %u rings of %u ranks are more",
                              KEPT_MAX, request->count, plan->n);
    if (kept > 0 && (plan->state = malloc(2 * kept * sizeof(uint16_t))) == NULL)
        return -ENOMEM;
    for (uint32_t number = 1; kept > 0 && number <= request->count; number++)
        probe(plan->state, plan->n, plan->asked.seed, number);
    plan->phases = natural + request->count;
    plan->choice = (natural ? NATURAL : 0) | (forward ? 0 : BOTH);
    return 0;
}

/* Return the number of a phase's ring: 0 is the natural ring, random ones count from 1. */
static uint32_t number_of(const struct pattern_plan *plan, uint32_t phase)
{
    return plan->choice & NATURAL ? phase : phase + 1;
}

static int phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    uint32_t number = number_of(plan, phase);

    return number == 0 ? snprintf(name, size, "natural")
                       : snprintf(name, size, "random %u", number);
}

/* Return the rank at a position of a ring, or, with `inverse`, the position of a rank. */
static uint32_t look_up(const struct pattern_plan *plan, uint32_t number, uint32_t at, bool inverse)
{
    const uint16_t *kept = plan->state;
    struct permutation order = permutation_draw(plan->n, plan->asked.seed, number);

    if (number == 0)
        return at;
    if (kept != NULL)
        return kept[((size_t)(number - 1) * 2 + inverse) * plan->n + at];
    return inverse ? permutation_position(&order, at) : permutation_at(&order, at);
}

/* Add the flows of a rank in a ring. The forward flow comes first on both sides: to the successor,
 * from the predecessor. With two ranks each is the other's successor and predecessor, so there is
 * one flow per direction. */
static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    uint32_t n = plan->n, number = number_of(plan, list->phase);
    uint32_t position = look_up(plan, number, list->rank, true);
    uint32_t ahead = look_up(plan, number, (position + 1) % n, false);
    uint32_t behind = look_up(plan, number, (position + n - 1) % n, false);
    bool sends = list->side == PATTERN_SENDS;

    pattern_add(list, sends ? ahead : behind);
    if ((plan->choice & BOTH) && n > 2)
        pattern_add(list, sends ? behind : ahead);
}

const struct pattern_kind kind_ring = {
    .knows =
        PATTERN_PARAM_DIRECTIONS | PATTERN_PARAM_COUNT | PATTERN_PARAM_NATURAL | PATTERN_PARAM_DRAW,
    .make = make,
    .phase_name = phase_name,
    .flows = flows,
};
