/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An ordinary pattern as one schedule: each phase in which a rank has a flow is a step of it. All
 * its messages are sent from one place; those that arrive in one phase have a place each, which
 * the next phase uses again.
 */
#include "kind.h"
#include "schedule_builder.h"

/* Tells the flows of one rank in a phase on one side. */
struct teller {
    struct pattern_flow_list list; /* first: what takes the flows is given it */
    const struct pattern_plan *plan;
    struct steps *steps;
    enum pattern_role role; /* of the sends that are told now */
    bool forwards;          /* a send of the other role was passed over */
    uint64_t received;
};

static struct piece place(const struct teller *teller, uint64_t number)
{
    return (struct piece){number * teller->plan->bytes, teller->plan->bytes};
}

/* What is forwarded lies where the first message arrives. */
static void tell_send(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct teller *teller = (struct teller *)list;

    if (flow->role == teller->role)
        steps_send(teller->steps, flow->dst, place(teller, flow->role == PATTERN_FORWARD));
    else
        teller->forwards = true;
}

static void tell_receive(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct teller *teller = (struct teller *)list;

    steps_receive(teller->steps, flow->src, place(teller, ++teller->received));
}

static void count_received(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    (void)flow;
    ((struct teller *)list)->received++;
}

/* What is forwarded was made by the chain's head. */
static void hold_received(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct teller *teller = (struct teller *)list;

    steps_hold_of(teller->steps, STEPS_RESULT, flow->role == PATTERN_FORWARD ? 0 : flow->src,
                  place(teller, ++teller->received));
}

static void visit(struct teller *teller, uint32_t phase,
                  void (*take)(struct pattern_flow_list *list, const struct pattern_flow *flow))
{
    teller->list.take = take;
    teller->list.phase = phase;
    teller->list.side = take == tell_send ? PATTERN_SENDS : PATTERN_RECEIVES;
    teller->received = 0;
    teller->plan->kind->flows(teller->plan, &teller->list);
}

static void tell_phase(struct teller *teller, uint32_t phase)
{
    teller->role = PATTERN_GENERATE;
    teller->forwards = false;
    visit(teller, phase, tell_send);
    visit(teller, phase, tell_receive);
    steps_next(teller->steps);
    if (!teller->forwards)
        return;
    teller->role = PATTERN_FORWARD;
    visit(teller, phase, tell_send);
    steps_next(teller->steps);
}

void pattern_tell_local(const struct pattern_plan *plan, struct steps *steps)
{
    struct teller teller = {.list = {.rank = steps->rank}, .plan = plan, .steps = steps};

    steps_hold_of(steps, STEPS_INPUT, steps->rank, place(&teller, 0));
    for (uint32_t phase = 0; phase < plan->local_phases; phase++)
        tell_phase(&teller, phase);
    /* The last phase in which the rank receives leaves its messages there. */
    for (uint32_t phase = plan->local_phases; phase-- > 0 && steps->holds != NULL;) {
        visit(&teller, phase, count_received);
        if (teller.received == 0)
            continue;
        visit(&teller, phase, hold_received);
        break;
    }
}
