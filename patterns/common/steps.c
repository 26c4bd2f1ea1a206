/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builder of a schedule from the steps that a pattern emits; an ordinary pattern's steps are its
 * phases.
 */
#include "steps.h"

#include "kind.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_ROOM 64u

/* Enlarge an array, if necessary, for one more element. */
static bool grow(struct steps *steps, void **array, size_t count, size_t *room, size_t size)
{
    void *grown = *array;

    if (count == *room) {
        *room = count > 0 ? 2 * count : FIRST_ROOM;
        grown = realloc(*array, *room * size);
    }
    if (grown == NULL)
        steps->rc = -ENOMEM;
    else
        *array = grown;
    return steps->rc == 0;
}

static void reach(struct schedule *schedule, uint64_t end)
{
    if (end > schedule->memory)
        schedule->memory = end;
}

static void add_op(struct steps *steps, enum schedule_action action, uint32_t peer,
                   struct piece piece, uint64_t from)
{
    struct schedule *schedule = &steps->schedule;
    bool sends = action == SCHEDULE_SEND;

    steps->step_used = true;
    if (steps->list != NULL) {
        if (action == (steps->list->side == PATTERN_SENDS ? SCHEDULE_SEND : SCHEDULE_RECEIVE))
            pattern_add(steps->list, peer);
        return;
    }
    schedule->steps = steps->step + 1;
    schedule->messages += sends;
    schedule->bytes += sends ? piece.bytes : 0;
    reach(schedule, piece.at + piece.bytes);
    if (action == SCHEDULE_REDUCE || action == SCHEDULE_COPY)
        reach(schedule, from + piece.bytes);
    if (steps->rc == 0 && grow(steps, (void **)&schedule->ops, schedule->count, &steps->op_room,
                               sizeof(*schedule->ops)))
        schedule->ops[schedule->count++] = (struct schedule_op){.step = steps->step,
                                                                .action = (uint8_t)action,
                                                                .peer = peer,
                                                                .at = piece.at,
                                                                .from = from,
                                                                .bytes = piece.bytes};
}

void steps_hold(struct steps *steps, const struct content *content)
{
    struct schedule *schedule = &steps->schedule;

    reach(schedule, content->piece.at + content->piece.bytes);
    if (steps->list == NULL && steps->rc == 0 &&
        grow(steps, (void **)&schedule->contents, schedule->content_count, &steps->content_room,
             sizeof(*content)))
        schedule->contents[schedule->content_count++] = *content;
}

static uint32_t rank_of(const struct steps *steps, uint32_t member)
{
    return steps->group.first + member * steps->group.stride;
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

void steps_hold_of(struct steps *steps, enum content_time time, uint32_t source, struct piece piece)
{
    steps_hold(steps, &(struct content){.piece = piece, .time = time, .source = source});
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

/* --- an ordinary pattern as one schedule ---------------------------------------------------- */

/* Return the place of a message in a rank's memory. Place 0 is the message that the rank sends; the
 * messages that arrive in one phase have the places from 1 on, which the next phase uses again.
 * Forwarded data are at place 1. */
static struct piece place(const struct pattern_plan *plan, uint64_t number)
{
    return (struct piece){number * plan->bytes, plan->bytes};
}

static void send_flows(const struct pattern_plan *plan, struct steps *steps, uint32_t phase,
                       enum pattern_role role, struct pattern_flow *flows)
{
    size_t count = pattern_list(plan, phase, steps->rank, PATTERN_SENDS, flows);

    for (size_t i = 0; i < count; i++)
        if (flows[i].role == role)
            steps_send(steps, flows[i].dst, place(plan, role == PATTERN_FORWARD));
}

/* Each phase in which the rank has a flow is a step; forwarded data go in the step after their
 * arrival. The last receiving phase leaves its messages in memory; forwarded data come from the
 * chain's head. */
void pattern_emit_local(const struct pattern_plan *plan, struct steps *steps)
{
    struct pattern_flow *flows = calloc(plan->n, sizeof(*flows));

    if (flows == NULL)
        steps->rc = -ENOMEM;
    steps_hold_of(steps, STEPS_INPUT, steps->rank, place(plan, 0));
    for (uint32_t phase = 0; phase < plan->local_phases && steps->rc == 0; phase++) {
        size_t count;

        send_flows(plan, steps, phase, PATTERN_GENERATE, flows);
        count = pattern_list(plan, phase, steps->rank, PATTERN_RECEIVES, flows);
        if (count > 0)
            steps->schedule.content_count = 1; /* only the input */
        for (size_t i = 0; i < count; i++) {
            steps_receive(steps, flows[i].src, place(plan, i + 1));
            steps_hold_of(steps, STEPS_RESULT, flows[i].role == PATTERN_FORWARD ? 0 : flows[i].src,
                          place(plan, i + 1));
        }
        steps_next(steps);
        send_flows(plan, steps, phase, PATTERN_FORWARD, flows);
        steps_next(steps);
    }
    free(flows);
}

int pattern_schedule(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     struct schedule *schedule)
{
    struct steps steps = {
        .n = plan->n, .rank = rank, .phase = phase, .group = {0, 1}, .schedule.ranks = plan->n};

    assert(plan->emit != NULL && phase < plan->phases && rank < plan->n);
    plan->emit(plan, &steps);
    if (steps.rc < 0)
        schedule_free(&steps.schedule);
    *schedule = steps.schedule;
    return steps.rc;
}
