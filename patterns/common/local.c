/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An ordinary pattern as one schedule: each phase in which a rank has a flow is a step of it. All
 * its messages are sent from one place; those that arrive in one phase have a place each, which
 * the next phase uses again.
 */
#include "kind.h"
#include "schedule_builder.h"

/* Emits the flows of one rank in a phase on one side. */
struct emitter {
    struct pattern_flow_list list; /* first: what takes the flows is given it */
    const struct pattern_plan *plan;
    struct steps *steps;
    enum pattern_role role; /* of the sends that are emitted now */
    uint64_t received;
};

static struct piece place(const struct emitter *emitter, uint64_t number)
{
    return (struct piece){number * emitter->plan->bytes, emitter->plan->bytes};
}

/* What is forwarded lies where the first message arrives. */
static void emit_send(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct emitter *emitter = (struct emitter *)list;

    if (flow->role == emitter->role)
        steps_send(emitter->steps, flow->dst, place(emitter, flow->role == PATTERN_FORWARD));
}

static void emit_receive(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct emitter *emitter = (struct emitter *)list;

    steps_receive(emitter->steps, flow->src, place(emitter, ++emitter->received));
}

/* What is forwarded was made by the chain's head. */
static void hold_received(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct emitter *emitter = (struct emitter *)list;

    steps_hold_of(emitter->steps, STEPS_RESULT, flow->role == PATTERN_FORWARD ? 0 : flow->src,
                  place(emitter, ++emitter->received));
}

static void visit(struct emitter *emitter, uint32_t phase,
                  void (*take)(struct pattern_flow_list *list, const struct pattern_flow *flow))
{
    emitter->list.take = take;
    emitter->list.phase = phase;
    emitter->list.side = take == emit_send ? PATTERN_SENDS : PATTERN_RECEIVES;
    emitter->received = 0;
    emitter->plan->kind->flows(emitter->plan, &emitter->list);
}

/* What a rank forwards goes in a step behind the one in which it arrives. */
void pattern_emit_local(const struct pattern_plan *plan, struct steps *steps)
{
    struct emitter emitter = {.list = {.rank = steps->rank}, .plan = plan, .steps = steps};
    uint32_t last = plan->local_phases;

    steps_hold_of(steps, STEPS_INPUT, steps->rank, place(&emitter, 0));
    for (uint32_t phase = 0; phase < plan->local_phases; phase++) {
        emitter.role = PATTERN_GENERATE;
        visit(&emitter, phase, emit_send);
        visit(&emitter, phase, emit_receive);
        last = emitter.received > 0 ? phase : last;
        steps_next(steps);
        emitter.role = PATTERN_FORWARD;
        visit(&emitter, phase, emit_send);
        steps_next(steps);
    }
    /* The last phase in which the rank receives leaves its messages there. */
    if (last < plan->local_phases)
        visit(&emitter, last, hold_received);
}
