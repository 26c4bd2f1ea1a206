/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An ordinary pattern as one schedule: each phase in which a rank has a flow is a step of it. All
 * its messages are sent from one place; those that arrive in one phase have a place each, which
 * the next phase uses again.
 */
#include "local.h"
#include "schedule_builder.h"

/* Tells the flows of one rank in a phase on one side. */
struct teller {
    struct pattern_flow_list list; /* first: what the visitor is given */
    struct steps *steps;
    uint64_t bytes;
    enum pattern_role role; /* of the sends that are told now */
    bool forwards;          /* a send of the other role was passed over */
    uint64_t received;
};

static struct piece slot(const struct teller *teller, uint64_t number)
{
    return (struct piece){(1 + number) * teller->bytes, teller->bytes};
}

static void tell_send(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct teller *teller = (struct teller *)list;

    if (flow->role != teller->role)
        teller->forwards = true;
    else if (flow->role == PATTERN_FORWARD)
        steps_send(teller->steps, flow->dst, slot(teller, 0));
    else
        steps_send(teller->steps, flow->dst, (struct piece){0, teller->bytes});
}

static void tell_receive(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct teller *teller = (struct teller *)list;

    steps_receive(teller->steps, flow->src, slot(teller, teller->received++));
}

/* What is forwarded was made by the chain's head. */
static void hold_received(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct teller *teller = (struct teller *)list;

    steps_hold(teller->steps, STEPS_RESULT,
               &(struct content){.piece = slot(teller, teller->received++),
                                 .source = flow->role == PATTERN_FORWARD ? 0 : flow->src});
}

typedef void visitor(struct pattern_flow_list *list, const struct pattern_flow *flow);

static size_t visit(const struct pattern_plan *plan, uint32_t phase, struct teller *teller,
                    visitor *visits)
{
    teller->list.visit = visits;
    teller->list.side = visits == tell_send ? PATTERN_SENDS : PATTERN_RECEIVES;
    teller->list.count = 0;
    teller->received = 0;
    teller->list.phase = phase;
    plan->kind->flows(plan, &teller->list);
    return teller->list.count;
}

static void tell_phase(const struct pattern_plan *plan, uint32_t phase, struct teller *teller)
{
    teller->role = PATTERN_GENERATE;
    teller->forwards = false;
    visit(plan, phase, teller, tell_send);
    visit(plan, phase, teller, tell_receive);
    steps_next(teller->steps);
    if (!teller->forwards)
        return;
    teller->role = PATTERN_FORWARD;
    visit(plan, phase, teller, tell_send);
    steps_next(teller->steps);
}

/* What the last phase in which the rank receives leaves there. */
static void hold_last(const struct pattern_plan *plan, struct teller *teller)
{
    uint32_t phase = plan->local_phases;

    while (phase > 0 && visit(plan, phase - 1, teller, NULL) == 0)
        phase--;
    if (phase > 0)
        visit(plan, phase - 1, teller, hold_received);
}

void pattern_tell_local(const struct pattern_plan *plan, struct steps *steps)
{
    struct teller teller = {.list = {.rank = steps->rank}, .steps = steps, .bytes = plan->bytes};

    steps_hold(steps, STEPS_INPUT,
               &(struct content){.piece = {0, plan->bytes}, .source = steps->rank});
    for (uint32_t own = 0; own < plan->local_phases; own++)
        tell_phase(plan, own, &teller);
    if (steps->holds != NULL)
        hold_last(plan, &teller);
}
