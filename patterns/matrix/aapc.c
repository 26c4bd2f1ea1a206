/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All-to-all personalised communication: every rank sends to every other one. Three orders cut it
 * into phases in which a rank has at most one partner each way (Rauch 2005, 4.3); `naive` is the
 * uncontrolled one, all at once.
 *
 * A full mesh (RFC 2889, 5.1.3) has the flows of `naive` in one phase, and each rank sends one
 * frame to each of the others in turn, from the next rank on.
 */
#include "kind.h"

#include <stdio.h>

struct order {
    const char *step;  /* what a phase's number is called; NULL when there is one phase */
    bool power_of_two; /* the only numbers of ranks that it works for */
    uint32_t (*phases)(uint32_t n);
    void (*flows)(uint32_t n, struct pattern_flow_list *list);
};

static uint32_t ahead(uint32_t n, uint32_t rank, uint32_t distance)
{
    return rank + distance < n ? rank + distance : rank + distance - n;
}

/* The rank at `distance` on the list's side: receivers are ahead, senders behind. */
static uint32_t at_distance(uint32_t n, uint32_t distance, const struct pattern_flow_list *list)
{
    return ahead(n, list->rank, list->side == PATTERN_SENDS ? distance : n - distance);
}

static uint32_t every_distance(uint32_t n)
{
    return n - 1;
}

static void shift_flows(uint32_t n, struct pattern_flow_list *list)
{
    pattern_add(list, at_distance(n, list->phase + 1, list), PATTERN_GENERATE);
}

/* The circle method of round-robin tournaments: in round r those two meet whose numbers add up to
 * r modulo an odd m. The one that would meet itself idles (n odd, m = n), or meets the last rank,
 * which stands outside of the circle (n even, m = n - 1). */
static uint32_t circle(uint32_t n)
{
    return n % 2 == 0 ? n - 1 : n;
}

static void pairwise_flows(uint32_t n, struct pattern_flow_list *list)
{
    uint32_t m = circle(n);
    /* Half of the round's number modulo m, as (m + 1) / 2 is the inverse of 2. */
    uint32_t alone = (uint32_t)((uint64_t)list->phase * ((m + 1) / 2) % m);
    uint32_t partner;

    if (list->rank == m)
        partner = alone;
    else if (list->rank == alone)
        partner = m;
    else
        partner = ahead(m, list->phase, m - list->rank);
    if (partner < n)
        pattern_add(list, partner, PATTERN_GENERATE);
}

static void xor_flows(uint32_t n, struct pattern_flow_list *list)
{
    (void)n;
    pattern_add(list, list->rank ^ (list->phase + 1), PATTERN_GENERATE);
}

static uint32_t one_phase(uint32_t n)
{
    (void)n;
    return 1;
}

static void naive_flows(uint32_t n, struct pattern_flow_list *list)
{
    for (uint32_t distance = 1; distance < n; distance++)
        pattern_add(list, at_distance(n, distance, list), PATTERN_GENERATE);
}

enum { SHIFT, PAIRWISE, XOR, NAIVE };

static const char *const order_words[] = {
    [SHIFT] = "shift", [PAIRWISE] = "pairwise", [XOR] = "xor", [NAIVE] = "naive", NULL,
};

static const struct order orders[] = {
    [SHIFT] = {.step = "distance", .phases = every_distance, .flows = shift_flows},
    [PAIRWISE] = {.step = "round", .phases = circle, .flows = pairwise_flows},
    [XOR] = {.step = "mask", .power_of_two = true, .phases = every_distance, .flows = xor_flows},
    [NAIVE] = {.phases = one_phase, .flows = naive_flows},
};

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    bool all_at_once = !(plan->kind->knows & PATTERN_PARAM_ORDER);
    int index = all_at_once ? NAIVE : pattern_choose("order", order_words, request->order, why);

    if (index < 0)
        return index;
    if (orders[index].power_of_two && (plan->n & (plan->n - 1)) != 0)
        return pattern_refuse(why, "order %s needs a power of two of ranks, not %u",
                              order_words[index], plan->n);
    plan->choice = (unsigned)index;
    plan->phases = orders[index].phases(plan->n);
    return 0;
}

static int phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    const char *step = orders[plan->choice].step;

    if (step == NULL)
        return snprintf(name, size, "all at once");
    return snprintf(name, size, "%s %u", step, phase + 1);
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    orders[plan->choice].flows(plan->n, list);
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
