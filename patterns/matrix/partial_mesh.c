/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Partially meshed traffic (RFC 2285, 3.3.2): each sending rank sends to each receiving rank, all
 * at once and in rotation (RFC 2889, 5.4.3). By its parameters it is
 *
 * incast        many to one, N-1 to 1 ... 2 to N-2 (RFC 2889, 5.2; RFC 8239, 3.2 and 4.2)
 * fanout        one to many
 * partial_mesh  one half to the other (RFC 2889, 5.4), or one group to another; in both
 *               directions the traffic of an uplink between two devices (5.3)
 *
 * The first ranks send, the last receive. With `rotate` all roles move to the next rank in each
 * phase, until every rank has had each role.
 */
#include "kind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NOWHERE UINT32_MAX

enum { ALSO_BACK = 1 << 0, BY_RECEIVER = 1 << 1 }; /* plan->choice, or-ed */

/* Fill plan->state for groups: the ranks by place, followed by the places by rank. */
static void take_groups(uint32_t *ranks, uint32_t n, const struct pattern_ranks groups[2])
{
    uint32_t *places = ranks + n, place = 0;

    for (uint32_t rank = 0; rank < n; rank++)
        places[rank] = NOWHERE;
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < groups[i].count; j++) {
            places[groups[i].rank[j]] = place;
            ranks[place++] = groups[i].rank[j];
        }
    }
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int both = pattern_choose("directions", (const char *const[]){"forward", "both", NULL},
                              request->directions, why);
    int by_receiver = pattern_choose("load_of", (const char *const[]){"senders", "receivers", NULL},
                                     request->load_of, why);
    bool incast = plan->kind->knows & PATTERN_PARAM_RECEIVERS;
    bool fanout = plan->kind->knows & PATTERN_PARAM_SENDERS;
    bool grouped = request->group_count > 0;
    uint32_t n = plan->n, few = incast ? request->receivers : request->senders;
    int result = 0;

    if (both < 0 || by_receiver < 0)
        return -EINVAL;
    if (few >= n)
        return pattern_refuse(
            why, "%s: %u of %u ranks: it must be 1 to %u, so that another rank is left",
            incast ? "receivers" : "senders", few, n, n - 1);
    if (grouped && request->group_count != 2)
        return pattern_refuse(why, "partial_mesh needs 2 groups, senders and receivers, not %zu",
                              request->group_count);
    if (grouped && request->rotate)
        return pattern_refuse(why, "partial_mesh with groups has no parameter rotate");
    result = pattern_check_ranks("groups", request->groups, request->group_count, request->n, why);
    if (result < 0)
        return result;
    few = few > 0 ? few : 1;
    plan->asked.senders = incast ? n - few : fanout ? few : n / 2;
    plan->asked.receivers = incast ? few : fanout ? n - few : n / 2;
    if (grouped) {
        plan->state = malloc(2 * n * sizeof(uint32_t));
        if (plan->state == NULL)
            return -ENOMEM;
        take_groups(plan->state, n, request->groups);
        plan->asked.senders = (uint32_t)request->groups[0].count;
        plan->asked.receivers = (uint32_t)request->groups[1].count;
    }
    plan->phases = request->rotate ? n : 1;
    plan->choice = (both ? ALSO_BACK : 0) | (by_receiver ? BY_RECEIVER : 0);
    snprintf(plan->label, sizeof(plan->label), "%u to %u", plan->asked.senders,
             plan->asked.receivers);
    return 0;
}

/* Add the flows of a rank. Senders have the first places, receivers the next; the remaining ranks
 * idle. */
static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    const uint32_t *ranks = plan->state;
    uint32_t senders = plan->asked.senders, receivers = plan->asked.receivers;
    uint32_t place = ranks != NULL ? ranks[plan->n + list->rank]
                                   : pattern_turned_back(plan, list->rank, list->phase);
    bool first = place < senders;
    bool forward = first == (list->side == PATTERN_SENDS);
    uint32_t own = first ? place : place - senders, others = first ? receivers : senders;
    uint32_t share = PATTERN_WHOLE / (forward ? senders : receivers);

    if (place == NOWHERE || place >= senders + receivers ||
        (!forward && !(plan->choice & ALSO_BACK)))
        return;
    for (uint32_t i = 0; i < others; i++) {
        uint32_t other = (first ? senders : 0) + (uint32_t)(((uint64_t)own + i) % others);

        pattern_add_flow(list,
                         ranks != NULL ? ranks[other] : pattern_turned(plan, other, list->phase),
                         PATTERN_GENERATE, plan->choice & BY_RECEIVER ? share : 0);
    }
}

#define KNOWS (PATTERN_PARAM_DIRECTIONS | PATTERN_PARAM_ROTATE | PATTERN_PARAM_LOAD_OF)

const struct pattern_kind kind_incast = {
    .knows = KNOWS | PATTERN_PARAM_RECEIVERS,
    .in_turn = true,
    .make = make,
    .flows = flows,
};

const struct pattern_kind kind_fanout = {
    .knows = KNOWS | PATTERN_PARAM_SENDERS,
    .in_turn = true,
    .make = make,
    .flows = flows,
};

const struct pattern_kind kind_partial_mesh = {
    .knows = KNOWS | PATTERN_PARAM_GROUPS,
    .in_turn = true,
    .make = make,
    .flows = flows,
};
