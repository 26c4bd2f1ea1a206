/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Head-of-line blocking and backpressure: groups of four ranks, all at once (RFC 2889, 5.5; RFC
 * 8239, 5.2). In a group the first rank sends to the two receivers in rotation, half to each; the
 * second rank sends to the last one, which is thus offered 150 % of one rank's load. The flow from
 * the first rank to the other receiver meets no congestion: its loss is head-of-line blocking.
 *
 * RFC 8239 also divides the first rank's traffic among four receivers, a quarter to each: with
 * `receivers` 4 a group has six ranks. With `rotate` all roles move to the next rank in each phase.
 */
#include "kind.h"

#include <stdio.h>

#define SOURCES 2u

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    uint32_t receivers = request->receivers > 0 ? request->receivers : 2;
    uint32_t fitting = receivers < plan->n ? plan->n / (SOURCES + receivers) : 0;

    if (receivers < 2)
        return pattern_refuse(why,
                              "head_of_line: receivers %u: a group needs at least 2, one that is "
                              "congested and one that is not",
                              receivers);
    if (fitting == 0)
        return pattern_refuse(why,
                              "head_of_line: a group of %u senders and %u receivers needs more "
                              "than %u ranks",
                              SOURCES, receivers, plan->n);
    if (request->count > fitting)
        return pattern_refuse(why,
                              "head_of_line: count %u is more than the %u groups of %u that "
                              "%u ranks make",
                              request->count, fitting, SOURCES + receivers, plan->n);
    plan->asked.receivers = receivers;
    plan->asked.count = request->count > 0 ? request->count : fitting;
    plan->phases = request->rotate ? plan->n : 1;
    snprintf(plan->label, sizeof(plan->label), "%u x %u", plan->asked.count, SOURCES + receivers);
    return 0;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    uint32_t phase = list->phase, size = SOURCES + plan->asked.receivers;
    uint32_t place = pattern_turned_back(plan, list->rank, phase);
    uint32_t own = place % size, start = place - own, last = size - 1;
    bool sends = list->side == PATTERN_SENDS;

    if (place >= size * plan->asked.count || sends != (own < SOURCES))
        return;
    for (uint32_t other = 0; other < size; other++) {
        uint32_t source = sends ? own : other, receiver = sends ? other : own;

        if (source < SOURCES && receiver >= SOURCES && (source == 0 || receiver == last))
            pattern_add(list, pattern_turned(plan, start + other, phase));
    }
}

const struct pattern_kind kind_head_of_line = {
    .knows = PATTERN_PARAM_RECEIVERS | PATTERN_PARAM_COUNT | PATTERN_PARAM_ROTATE,
    .in_turn = true,
    .make = make,
    .flows = flows,
};
