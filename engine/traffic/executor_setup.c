/* SPDX-License-Identifier: BSD-3-Clause */
#include "executor_setup.h"

#include "memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define CACHE_LINE 64u
/* More than this is not in the nearer caches: an allreduce of 4 KiB, 500 times in memory of their
 * own, took a fifth longer than in one and the same. */
#define KEPT_BYTES (256u * 1024)

/* What turns operations into steps. */
struct compiler {
    struct schedule_executor *executor;
    uint32_t *flow[2]; /* by peer: the lane's flow to it, and the one from it */
    uint32_t *last[2]; /* by flow: its last message, counted over all steps */
    uint32_t filled;   /* messages */
};

static void add_message(struct compiler *compiler, const struct schedule_op *op, uint32_t first)
{
    bool receives = op->action != SCHEDULE_SEND;
    uint32_t flow = compiler->flow[receives][op->peer];
    uint32_t *last;

    assert(flow != EXECUTOR_NONE); /* a plan's flows are all pairs of its schedules and barriers */
    last = &compiler->last[receives][flow];
    compiler->executor->messages[compiler->filled] = (struct step_message){
        .flow = flow,
        .after = *last != EXECUTOR_NONE && *last >= first ? *last - first : EXECUTOR_NONE,
        .bytes = op->bytes,
        .at = op->at,
    };
    *last = compiler->filled++;
    if (op->bytes > compiler->executor->most_bytes)
        compiler->executor->most_bytes = op->bytes;
}

static uint32_t add_messages(struct compiler *compiler, const struct schedule_op *ops, size_t count,
                             enum schedule_action action)
{
    uint32_t first = compiler->filled;

    for (size_t i = 0; i < count; i++)
        if (ops[i].action == action)
            add_message(compiler, &ops[i], first);
    return compiler->filled - first;
}

static void add_step(struct compiler *compiler, struct executor_step *step,
                     const struct schedule_op *ops, size_t count)
{
    struct schedule_executor *executor = compiler->executor;

    step->first_send = compiler->filled;
    step->send_count = add_messages(compiler, ops, count, SCHEDULE_SEND);
    step->first_receive = compiler->filled;
    step->receive_count = add_messages(compiler, ops, count, SCHEDULE_RECEIVE);
    step->local_count = count - step->send_count - step->receive_count;
    if (step->send_count > executor->most_sends)
        executor->most_sends = step->send_count;
    if (step->receive_count > executor->most_receives)
        executor->most_receives = step->receive_count;
}

static void add_steps(struct compiler *compiler)
{
    struct schedule_executor *executor = compiler->executor;
    const struct schedule *schedule = &executor->schedule;
    size_t next = 0;

    for (uint32_t i = 0; i < executor->step_count; i++) {
        size_t first = next;

        while (next < schedule->count && schedule->ops[next].step == i)
            next++;
        if (next == first) /* a rank that idles has no list, either */
            continue;
        add_step(compiler, &executor->steps[i], schedule->ops + first, next - first);
        executor->steps[i].first_local = next - executor->steps[i].local_count;
    }
    assert(next == schedule->count); /* operations are in the order of steps */
    for (uint32_t i = 0; i < executor->rounds; i++) {
        const struct schedule_op round[] = {
            {.action = SCHEDULE_SEND,
             .peer = schedule_barrier_to(executor->rank, i, executor->ranks)},
            {.action = SCHEDULE_RECEIVE,
             .peer = schedule_barrier_from(executor->rank, i, executor->ranks)},
        };

        add_step(compiler, &executor->steps[executor->step_count + i], round, 2);
    }
}

static int compile(struct schedule_executor *executor, const struct executor_conf *conf)
{
    struct compiler compiler = {.executor = executor};
    int rc = 0;

    for (unsigned side = 0; side < 2; side++) {
        const struct lane_flow *flows = side == 0 ? conf->sends : conf->receives;
        uint32_t count = side == 0 ? conf->send_count : conf->receive_count;

        compiler.flow[side] = malloc(conf->ranks * sizeof *compiler.flow[side]);
        compiler.last[side] = malloc((count + 1) * sizeof *compiler.last[side]);
        if (compiler.flow[side] == NULL || compiler.last[side] == NULL) {
            rc = -ENOMEM;
            break;
        }
        memset(compiler.flow[side], UINT8_MAX, conf->ranks * sizeof *compiler.flow[side]);
        memset(compiler.last[side], UINT8_MAX, count * sizeof *compiler.last[side]);
        for (uint32_t i = 0; i < count; i++)
            compiler.flow[side][side == 0 ? flows[i].dst : flows[i].src] = i;
    }
    if (rc == 0)
        add_steps(&compiler);
    for (unsigned side = 0; side < 2; side++) {
        free(compiler.flow[side]);
        free(compiler.last[side]);
    }
    return rc;
}

/* --- the executor --- */

/* From the memory of one repetition to that of the next. */
static uint64_t stride_of(uint64_t memory)
{
    return (memory / CACHE_LINE + 1) * CACHE_LINE;
}

/* Repetitions of a batch whose results are kept apart. */
static uint32_t copies_of(uint64_t memory, const struct schedule_options *options)
{
    uint64_t fit = KEPT_BYTES / stride_of(memory);

    if (!options->compute || fit == 0)
        return 1;
    return fit < options->batch ? (uint32_t)fit : options->batch;
}

/* In whole pages. */
static uint64_t bytes_of(uint64_t memory, const struct schedule_options *options)
{
    uint64_t others = (copies_of(memory, options) - 1) * stride_of(memory);

    return ((memory + others) / PAGE + 1) * PAGE;
}

int executor_needs(const struct phase *phase, const struct pattern_plan *plan, uint32_t rank,
                   uint64_t *bytes)
{
    struct schedule schedule;
    int rc = pattern_schedule(plan, phase->number, rank, &schedule);

    if (rc < 0)
        return rc;
    *bytes = bytes_of(schedule.memory, &phase->schedule);
    schedule_free(&schedule);
    return 0;
}

/* Touched now, so that no page has to be found while it is measured. */
static int make_memory(struct schedule_executor *executor)
{
    executor->memory_bytes = bytes_of(executor->schedule.memory, &executor->phase->schedule);
    if (executor->memory_bytes > memory_spare())
        return -ENOMEM;
    if (posix_memalign((void **)&executor->memory, PAGE, executor->memory_bytes) != 0) {
        executor->memory = NULL;
        return -ENOMEM;
    }
    executor->place = executor->memory;
    executor->stride = stride_of(executor->schedule.memory);
    executor->copies = copies_of(executor->schedule.memory, &executor->phase->schedule);
    memset(executor->memory, 0, executor->memory_bytes);
    return 0;
}

static int prepare(struct schedule_executor *executor, const struct executor_conf *conf)
{
    int rc = pattern_schedule(conf->plan, conf->phase->number, conf->rank, &executor->schedule);

    if (rc < 0)
        return rc;
    executor->step_count = executor->schedule.steps > 0 ? executor->schedule.steps : 1;
    executor->rounds = schedule_barrier_rounds(conf->ranks);
    executor->steps =
        calloc((size_t)executor->step_count + executor->rounds, sizeof *executor->steps);
    executor->messages =
        calloc(executor->schedule.count + 2 * executor->rounds, sizeof *executor->messages);
    if (executor->steps == NULL || executor->messages == NULL)
        return -ENOMEM;
    rc = make_memory(executor);
    return rc == 0 ? compile(executor, conf) : rc;
}

int executor_make(struct schedule_executor **executor, const struct executor_conf *conf,
                  struct err *err)
{
    struct schedule_executor *s = calloc(1, sizeof *s);
    int rc = -ENOMEM;

    if (s != NULL) {
        s->phase = conf->phase;
        s->plan = conf->plan;
        s->rank = conf->rank;
        s->ranks = conf->ranks;
        for (unsigned i = 0; i < EXECUTOR_POINTS; i++)
            s->x[i] = 0.1 + 0.05 * i;
        rc = prepare(s, conf);
    }
    if (rc == 0) {
        *executor = s;
        return 0;
    }
    err_set(err, rc, "rank %u needs %llu bytes for its messages: %s", conf->rank,
            s != NULL ? (unsigned long long)s->memory_bytes : 0, strerror(-rc));
    executor_free(s);
    return rc;
}

void executor_free(struct schedule_executor *executor)
{
    if (executor == NULL)
        return;
    schedule_free(&executor->schedule);
    free(executor->memory);
    free(executor->messages);
    free(executor->steps);
    free(executor);
}
