/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Partially meshed traffic (RFC 2285, 3.3.2): each of some ranks sends to each of others, all at
 * once and in turn (RFC 2889, 5.4.3). One parameter apart it is
 *
 *     incast        many to one, N-1 to 1 ... 2 to N-2 (RFC 2889, 5.2; RFC 8239, 3.2 and 4.2)
 *     fanout        one to many
 *     partial_mesh  one half to the other (RFC 2889, 5.4), or one group to another; in both
 *                   directions the traffic of an uplink between two devices (5.3)
 *
 * The first ranks send, the last receive. With `rotate` all roles move to the next rank in each
 * phase, until every rank has had each.
 */
#include "kind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NOWHERE UINT32_MAX

struct mesh {
    uint32_t senders;
    uint32_t receivers;
    bool both;
    bool by_receiver; /* the load is a receiver's, and its senders share it */
    bool grouped;
    uint32_t ranks[]; /* grouped: rank by place, then place by rank */
};

static void take_groups(struct mesh *mesh, uint32_t n, const struct pattern_ranks groups[2])
{
    uint32_t *places = mesh->ranks + n, place = 0;

    for (uint32_t rank = 0; rank < n; rank++)
        places[rank] = NOWHERE;
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < groups[i].count; j++) {
            places[groups[i].rank[j]] = place;
            mesh->ranks[place++] = groups[i].rank[j];
        }
    }
    mesh->senders = (uint32_t)groups[0].count;
    mesh->receivers = (uint32_t)groups[1].count;
    mesh->grouped = true;
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int both = pattern_either("directions", "forward", "both", request->directions, why);
    int by_receiver = pattern_either("load_of", "senders", "receivers", request->load_of, why);
    bool incast = plan->kind->knows & PATTERN_PARAM_RECEIVERS;
    bool fanout = plan->kind->knows & PATTERN_PARAM_SENDERS;
    bool grouped = request->group_count > 0;
    uint32_t n = plan->n, few = incast ? request->receivers : request->senders;
    struct mesh *mesh = NULL;
    int result = 0;

    if (both < 0 || by_receiver < 0)
        return -EINVAL;
    if (few >= n)
        return pattern_refuse(why, "%s %u of %u ranks: 1 to %u, so that one is left",
                              incast ? "receivers" : "senders", few, n, n - 1);
    if (grouped && request->group_count != 2)
        return pattern_refuse(why, "partial_mesh goes from one group to another: 2 groups, not %zu",
                              request->group_count);
    if (grouped && request->rotate)
        return pattern_refuse(why, "partial_mesh with groups takes no rotate");
    result = pattern_check_groups(request, why);
    if (result < 0)
        return result;
    mesh = calloc(1, sizeof(*mesh) + (grouped ? 2 * n * sizeof(uint32_t) : 0));
    if (mesh == NULL)
        return -ENOMEM;
    few = few > 0 ? few : 1;
    mesh->senders = incast ? n - few : fanout ? few : n / 2;
    mesh->receivers = incast ? few : fanout ? n - few : n / 2;
    mesh->both = both;
    mesh->by_receiver = by_receiver;
    if (grouped)
        take_groups(mesh, n, request->groups);
    plan->phases = request->rotate ? n : 1;
    plan->state = mesh;
    snprintf(plan->label, sizeof(plan->label), "%u to %u", mesh->senders, mesh->receivers);
    return 0;
}

/* Senders have the first places, receivers those behind them; the rest idles. */
static uint32_t place_of(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    const struct mesh *mesh = plan->state;

    if (mesh->grouped)
        return mesh->ranks[plan->n + rank];
    return rank >= phase ? rank - phase : rank + plan->n - phase;
}

static uint32_t rank_at(const struct pattern_plan *plan, uint32_t phase, uint32_t place)
{
    const struct mesh *mesh = plan->state;

    if (mesh->grouped)
        return mesh->ranks[place];
    return (uint32_t)(((uint64_t)place + phase) % plan->n);
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    const struct mesh *mesh = plan->state;
    uint32_t place = place_of(plan, list->phase, list->rank);
    bool first = place < mesh->senders;
    bool forward = first == (list->side == PATTERN_SENDS);
    uint32_t own = first ? place : place - mesh->senders;
    uint32_t others = first ? mesh->receivers : mesh->senders;
    uint32_t front = first ? mesh->senders : 0;
    uint32_t share = PATTERN_WHOLE / (forward ? mesh->senders : mesh->receivers);

    if (place == NOWHERE || place >= mesh->senders + mesh->receivers || (!forward && !mesh->both))
        return;
    for (uint32_t i = 0; i < others; i++)
        pattern_add_share(
            list, rank_at(plan, list->phase, front + (uint32_t)(((uint64_t)own + i) % others)),
            mesh->by_receiver ? share : 0);
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
