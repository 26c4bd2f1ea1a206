/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random: in each phase every rank picks a random partner `degree` times and sends to it with a
 * probability of one half (Zhu et al. 2012, section 7). The choices are independent, so that
 * several ranks may send to one; a partner chosen twice counts once. One rank, in rotation, always
 * sends: no phase is empty.
 *
 * The senders to a rank are found by drawing for all ranks: time grows with n times the degree.
 */
#include "kind.h"
#include "permutation.h"

#include <stdio.h>

#define PHASES_MAX 65536u
#define DEGREE_MAX 16u

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    if (request->count == 0 || request->count > PHASES_MAX)
        return pattern_refuse(why,
                              "random: count %u: the number of random patterns must be 1 to %u",
                              request->count, PHASES_MAX);
    if (request->degree > DEGREE_MAX)
        return pattern_refuse(why, "random: degree %u is more than the maximum, %u",
                              request->degree, DEGREE_MAX);
    if (request->degree == 0)
        plan->asked.degree = 1;
    plan->phases = request->count;
    return 0;
}

static int phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    (void)plan;
    return snprintf(name, size, "random %u", phase + 1);
}

/* Choose the random partner number `turn` of a rank in a phase; return whether the rank sends to
 * it. */
static bool draw(const struct pattern_plan *plan, uint32_t phase, uint32_t rank, uint32_t turn,
                 uint32_t *partner)
{
    uint64_t stream = ((uint64_t)phase * DEGREE_MAX + turn) * PATTERN_RANKS_MAX + rank;
    uint64_t word = random_word(plan->asked.seed, stream);
    uint32_t other = (uint32_t)(((word >> 32) * (plan->n - 1)) >> 32);

    *partner = other < rank ? other : other + 1;
    return (word & 1) != 0 || (turn == 0 && rank == phase % plan->n);
}

/* Find the distinct ranks to which `rank` sends in a phase, in the order of its random choices. */
static uint32_t partners(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                         uint32_t found[DEGREE_MAX])
{
    uint32_t count = 0;

    for (uint32_t turn = 0; turn < plan->asked.degree; turn++) {
        uint32_t partner, i;

        if (!draw(plan, phase, rank, turn, &partner))
            continue;
        for (i = 0; i < count && found[i] != partner; i++)
            ;
        if (i == count)
            found[count++] = partner;
    }
    return count;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    bool sends = list->side == PATTERN_SENDS;
    uint32_t found[DEGREE_MAX], end = sends ? list->rank + 1 : plan->n;

    for (uint32_t rank = sends ? list->rank : 0; rank < end; rank++) {
        uint32_t count = partners(plan, list->phase, rank, found);

        for (uint32_t i = 0; i < count; i++)
            if (sends || found[i] == list->rank)
                pattern_add(list, sends ? found[i] : rank);
    }
}

const struct pattern_kind kind_random = {
    .knows = PATTERN_PARAM_COUNT | PATTERN_PARAM_DEGREE,
    .make = make,
    .phase_name = phase_name,
    .flows = flows,
};
