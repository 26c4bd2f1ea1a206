/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_executor.h"

#include "clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_BYTES (4u << 20)   /* reduced or copied at a time */
#define SLICE_OPERATIONS 480000u /* the same of floating point operations: a millisecond or so */
#define OPERATIONS_A_TURN 24u    /* of all points: r * x * (1 - x) */
#define GROWTH 3.9               /* chaotic: no value repeats or dies away */
#define SLOWEST_OPERATIONS_NS 10 /* of one, that nobody is slower than */

static_assert(OPERATIONS_A_TURN == EXECUTOR_POINTS * 3, "three operations a point");

int64_t executor_compute_ns(const struct schedule_executor *executor)
{
    uint64_t operations = 0;

    for (size_t i = 0; i < executor->schedule.count; i++)
        if (executor->schedule.ops[i].action == SCHEDULE_WORK)
            operations += executor->schedule.ops[i].from;
    return (int64_t)(operations * SLOWEST_OPERATIONS_NS);
}

/* --- between the messages --- */

static void add_up(float *restrict sum, const float *restrict part, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += part[i];
}

static void work(struct schedule_executor *executor, uint64_t operations)
{
    double *x = executor->x;

    for (uint64_t turn = 0; turn < operations; turn += OPERATIONS_A_TURN)
        for (unsigned i = 0; i < EXECUTOR_POINTS; i++)
            x[i] = GROWTH * x[i] * (1 - x[i]);
}

/* The next slice of a local operation; true: that was the last. Where no data are looked at there
 * is nothing to be reduced or copied. */
static bool operate(struct schedule_executor *executor, const struct schedule_op *op)
{
    bool works = op->action == SCHEDULE_WORK;
    uint64_t most = works ? SLICE_OPERATIONS : SLICE_BYTES;
    uint64_t left = (works ? op->from : op->bytes) - executor->done;
    uint64_t slice = left < most ? left : most;
    uint8_t *to = executor->place + op->at + executor->done;
    const uint8_t *from = executor->place + op->from + executor->done;

    if (!works && !executor->phase->schedule.compute)
        return true;
    if (works)
        work(executor, slice);
    else if (op->action == SCHEDULE_COPY)
        memcpy(to, from, slice);
    else
        add_up((float *)(void *)to, (const float *)(const void *)from, slice / sizeof(float));
    executor->done += slice;
    return slice == left;
}

/* What follows the messages of the present step. False: there is more. */
static bool run_locals(struct schedule_executor *executor)
{
    const struct executor_step *step = &executor->steps[executor->position];
    const struct schedule_op *ops = executor->schedule.ops;

    for (; executor->local < step->local_count; executor->local++) {
        if (!operate(executor, &ops[step->first_local + executor->local]))
            return false;
        executor->done = 0;
    }
    return true;
}

/* --- repetitions, batches, the barrier --- */

/* What this rank has to say of the batch that is next. */
static uint8_t own_bits(const struct schedule_executor *executor)
{
    const struct phase *phase = executor->phase;
    const struct schedule_options *options = &phase->schedule;
    const struct execution *execution = &executor->execution;
    bool any = execution->batches > 0;
    int64_t now_ns = clock_now();
    bool over, outside;

    if (executor->batch < options->warmup)
        return EXECUTOR_UNCOUNTED;
    if (options->count > 0)
        return execution->repetitions >= options->count ? EXECUTOR_STOP : 0;
    /* A batch that is longer than the window is measured all the same, once. */
    over = any && now_ns >= phase->stop_ns;
    outside = now_ns < phase->open_ns || (any && now_ns >= phase->close_ns);
    return (uint8_t)((over ? EXECUTOR_STOP : 0) | (outside ? EXECUTOR_UNCOUNTED : 0));
}

static void begin_barrier(struct schedule_executor *executor)
{
    executor->position = executor->step_count;
    executor->bits = own_bits(executor);
}

static void choose_repetition(struct schedule_executor *executor, uint32_t repetition)
{
    executor->repetition = repetition;
    executor->place = executor->memory + repetition % executor->copies * executor->stride;
}

static void begin_batch(struct schedule_executor *executor)
{
    executor->counted = (executor->bits & EXECUTOR_UNCOUNTED) == 0;
    choose_repetition(executor, 0);
    executor->position = 0;
    executor->begun_ns = clock_now();
}

static void complain(struct schedule_executor *executor, const struct schedule_wrong *wrong)
{
    char source[32] = "all ranks";

    if (wrong->source != SCHEDULE_SUM)
        snprintf(source, sizeof source, "rank %u", wrong->source);
    err_set(&executor->error, -EBADMSG,
            "rank %u has a wrong result: element %llu, of %s, is %g and should be %g",
            executor->rank, (unsigned long long)wrong->element, source, wrong->got,
            wrong->expected);
}

static bool verify(struct schedule_executor *executor)
{
    struct schedule_wrong wrong;

    if (!schedule_verify(executor->plan, executor->phase->number, executor->rank,
                         &executor->schedule, executor->place, &wrong)) {
        complain(executor, &wrong);
        return false;
    }
    executor->execution.verified += executor->counted;
    return true;
}

static void measure(struct schedule_executor *executor)
{
    struct execution *execution = &executor->execution;
    uint64_t spent_ns = executor->spent_ns;
    uint32_t repetitions = executor->phase->schedule.batch;

    executor->batch++;
    if (!executor->counted)
        return;
    execution->batches++;
    execution->repetitions += repetitions;
    execution->sum_ns += spent_ns;
    histogram_add(&execution->times, spent_ns / repetitions);
}

static void end_batch(struct schedule_executor *executor)
{
    executor->spent_ns = (uint64_t)(clock_now() - executor->begun_ns);
    executor->ran = true;
    executor->refilling = executor->phase->schedule.compute;
    choose_repetition(executor, 0);
    if (executor->refilling)
        return;
    measure(executor);
    begin_barrier(executor);
}

static void end_repetition(struct schedule_executor *executor)
{
    uint32_t next = executor->repetition + 1;

    executor->position = 0;
    if (next < executor->phase->schedule.batch)
        choose_repetition(executor, next);
    else
        end_batch(executor);
}

/* The results of a batch are verified, and input is made anew, what else there was is lost: of one
 * repetition's memory in a call. Only then do the ranks meet, so that nobody's time holds another's
 * filling.
 */
static enum executor_state verify_and_refill(struct schedule_executor *executor)
{
    if (executor->ran && !verify(executor))
        return EXECUTOR_WRONG;
    schedule_fill(executor->plan, executor->phase->number, executor->rank, &executor->schedule,
                  executor->place);
    if (executor->repetition + 1 < executor->copies) {
        choose_repetition(executor, executor->repetition + 1);
        return EXECUTOR_BUSY;
    }
    executor->refilling = false;
    if (executor->ran)
        measure(executor);
    begin_barrier(executor);
    return EXECUTOR_OPEN;
}

/* Shows the transport the messages of the present step; false: it has none. */
static bool open_step(struct schedule_executor *executor)
{
    const struct executor_step *step = &executor->steps[executor->position];

    executor->local = 0;
    executor->done = 0;
    executor->in_barrier = executor->position >= executor->step_count;
    executor->sends = executor->messages + step->first_send;
    executor->send_count = step->send_count;
    executor->receives = executor->messages + step->first_receive;
    executor->receive_count = step->receive_count;
    executor->sends_left = step->send_count;
    executor->receives_left = step->receive_count;
    return step->send_count + step->receive_count > 0;
}

void executor_begin(struct schedule_executor *executor)
{
    executor->begun = true;
    executor->refilling = executor->phase->schedule.compute;
    if (executor->refilling)
        return;
    begin_barrier(executor);
    open_step(executor);
}

/* The present step is complete: which one is next? */
static enum executor_state choose_step(struct schedule_executor *executor)
{
    executor->position++;
    if (executor->position == executor->step_count)
        end_repetition(executor);
    if (executor->position < executor->step_count + executor->rounds)
        return EXECUTOR_OPEN;
    if ((executor->bits & EXECUTOR_STOP) != 0) {
        executor->ended = true;
        return EXECUTOR_ENDED;
    }
    begin_batch(executor);
    return EXECUTOR_OPEN;
}

/* As executor_next; `busy` is its caller's. */
static enum executor_state advance_step(struct schedule_executor *executor)
{
    for (;;) {
        enum executor_state state = EXECUTOR_OPEN;

        if (!executor->refilling) {
            if (!run_locals(executor))
                return EXECUTOR_BUSY;
            state = choose_step(executor);
        }
        if (executor->refilling)
            state = verify_and_refill(executor);
        if (state != EXECUTOR_OPEN || open_step(executor))
            return state;
    }
}

enum executor_state executor_next(struct schedule_executor *executor)
{
    enum executor_state state = advance_step(executor);

    executor->busy = state == EXECUTOR_BUSY;
    return state;
}
