/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All-to-all personalised communication: every rank sends to every other one. Three orders divide
 * it into phases in which a rank has at most one partner per direction (Rauch 2005, 4.3); `naive`
 * is the uncontrolled order, all at once.
 *
 * A full mesh (RFC 2889, 5.1.3) has the flows of `naive` in one phase, and each rank sends one
 * frame to each of the others in rotation, from the next rank on.
 */
#include "kind.h"

#include <stdio.h>

enum { SHIFT, PAIRWISE, XOR, NAIVE };

static const char *const orders[] = {
    [SHIFT] = "shift", [PAIRWISE] = "pairwise", [XOR] = "xor", [NAIVE] = "naive", NULL,
};

static uint32_t ahead(uint32_t n, uint32_t rank, uint32_t distance)
{
    return rank + distance < n ? rank + distance : rank + distance - n;
}

/* Add the flow between the list's rank and the rank at a distance: ahead for the flow that it
 * sends, behind for the flow that it receives. */
static void add_at(uint32_t n, uint32_t distance, struct pattern_flow_list *list)
{
    pattern_add(list, ahead(n, list->rank, list->side == PATTERN_SENDS ? distance : n - distance));
}

/* Return the odd number m of the circle method of round-robin tournaments: in round r, ranks meet
 * whose numbers add up to r modulo m. The rank that would meet itself idles (n odd, m = n), or
 * meets the last rank, which is outside of the circle (n even, m = n - 1). */
static uint32_t circle(uint32_t n)
{
    return n % 2 == 0 ? n - 1 : n;
}

static void add_in_round(uint32_t n, struct pattern_flow_list *list)
{
    uint32_t m = circle(n);
    /* Half of the round's number modulo m, as (m + 1) / 2 is the inverse of 2. */
    uint32_t alone = (uint32_t)((uint64_t)list->phase * ((m + 1) / 2) % m);
    uint32_t partner = alone;

    if (list->rank == alone)
        partner = m;
    else if (list->rank != m)
        partner = ahead(m, list->phase, m - list->rank);
    if (partner < n)
        pattern_add(list, partner);
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    bool all_at_once = !(plan->kind->knows & PATTERN_PARAM_ORDER);
    int order = all_at_once ? NAIVE : pattern_choose("order", orders, request->order, why);

    if (order < 0)
        return order;
    if (order == XOR && (plan->n & (plan->n - 1)) != 0)
        return pattern_refuse(why, "order xor needs a power of two of ranks, not %u", plan->n);
    plan->choice = (unsigned)order;
    plan->phases = order == NAIVE ? 1 : order == PAIRWISE ? circle(plan->n) : plan->n - 1;
    return 0;
}

static int phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    static const char *const steps[] = {"distance", "round", "mask"};

    if (plan->choice == NAIVE)
        return snprintf(name, size, "all at once");
    return snprintf(name, size, "%s %u", steps[plan->choice], phase + 1);
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    switch (plan->choice) {
    case SHIFT:
        add_at(plan->n, list->phase + 1, list);
        break;
    case PAIRWISE:
        add_in_round(plan->n, list);
        break;
    case XOR:
        pattern_add(list, list->rank ^ (list->phase + 1));
        break;
    default:
        for (uint32_t distance = 1; distance < plan->n; distance++)
            add_at(plan->n, distance, list);
    }
}

const struct pattern_kind kind_aapc = {
    .knows = PATTERN_PARAM_ORDER,
    .make = make,
    .phase_name = phase_name,
    .flows = flows,
};

const struct pattern_kind kind_full_mesh = {
    .in_turn = true,
    .make = make,
    .phase_name = phase_name,
    .flows = flows,
};
