/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_builder.h"

#include "dissemination.h"
#include "kind.h"

static uint32_t rank_of(const struct steps *steps, uint32_t member)
{
    return steps->group.first + member * steps->group.stride;
}

static void add_op(struct steps *steps, enum schedule_action action, uint32_t peer,
                   struct piece piece, uint64_t from)
{
    steps->step_used = true;
    if (steps->op != NULL)
        steps->op(steps, &(struct schedule_op){.step = steps->step,
                                               .action = (uint8_t)action,
                                               .peer = peer,
                                               .at = piece.at,
                                               .from = from,
                                               .bytes = piece.bytes});
}

void steps_send(struct steps *steps, uint32_t to, struct piece piece)
{
    add_op(steps, SCHEDULE_SEND, rank_of(steps, to), piece, 0);
}

void steps_receive(struct steps *steps, uint32_t from, struct piece piece)
{
    add_op(steps, SCHEDULE_RECEIVE, rank_of(steps, from), piece, 0);
}

void steps_reduce(struct steps *steps, struct piece piece, uint64_t from)
{
    if (piece.bytes > 0)
        add_op(steps, SCHEDULE_REDUCE, 0, piece, from);
}

void steps_copy(struct steps *steps, struct piece piece, uint64_t from)
{
    if (piece.bytes > 0)
        add_op(steps, SCHEDULE_COPY, 0, piece, from);
}

void steps_work(struct steps *steps, uint64_t operations)
{
    if (operations > 0)
        add_op(steps, SCHEDULE_WORK, 0, (struct piece){0, 0}, operations);
}

void steps_enter(struct steps *steps, uint32_t first, uint32_t stride, uint32_t count)
{
    steps->rank = (rank_of(steps, steps->rank) - first) / stride;
    steps->group = (struct group){first, stride};
    steps->n = count;
}

void steps_next(struct steps *steps)
{
    steps->step += steps->step_used;
    steps->step_used = false;
}

void steps_hold(struct steps *steps, enum steps_when when, const struct content *content)
{
    if (steps->holds != NULL)
        steps->holds(steps, when, content);
}

void steps_hold_of(struct steps *steps, enum steps_when when, uint32_t source, struct piece piece)
{
    steps_hold(steps, when, &(struct content){.piece = piece, .source = source});
}

void steps_swap(struct steps *steps, uint32_t to, struct piece out, uint32_t from, struct piece in)
{
    steps_send(steps, to, out);
    steps_receive(steps, from, in);
    steps_next(steps);
}

void steps_trade(struct steps *steps, uint64_t bytes, uint32_t slot, uint32_t to, uint32_t from)
{
    struct piece in = {slot * bytes, bytes};

    if (slot == 1)
        steps_hold_of(steps, STEPS_INPUT, steps->rank, (struct piece){0, bytes});
    steps_send(steps, to, (struct piece){0, bytes});
    steps_receive(steps, from, in);
    steps_hold_of(steps, STEPS_RESULT, from, in);
}

/* Lists a rank's partners as flows, each once. */
struct partners {
    struct steps steps; /* first: what the listener is given */
    struct pattern_flow_list *list;
    uint64_t seen[PATTERN_RANKS_MAX / 64];
};

static void meet(void *context, uint32_t peer)
{
    struct partners *partners = context;
    uint64_t bit = UINT64_C(1) << peer % 64;

    if (partners->seen[peer / 64] & bit)
        return;
    partners->seen[peer / 64] |= bit;
    pattern_add(partners->list, peer);
}

static void meet_partner(struct steps *steps, const struct schedule_op *op)
{
    struct partners *partners = (struct partners *)steps;
    enum schedule_action sought =
        partners->list->side == PATTERN_SENDS ? SCHEDULE_SEND : SCHEDULE_RECEIVE;

    if (op->action == sought)
        meet(partners, op->peer);
}

void steps_flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    struct partners partners = {
        .steps = {.n = plan->n,
                  .rank = list->rank,
                  .phase = list->phase,
                  .group = {0, 1},
                  .op = meet_partner},
        .list = list,
    };

    plan->emit(plan, &partners.steps);
    for (unsigned round = 0; round < schedule_barrier_rounds(plan->n); round++)
        meet(&partners, list->side == PATTERN_SENDS
                            ? schedule_barrier_to(list->rank, round, plan->n)
                            : schedule_barrier_from(list->rank, round, plan->n));
}
