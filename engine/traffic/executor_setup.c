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

/* The lane's flow to or from a peer, by the peer. */
struct flow_key {
    uint32_t peer;
    uint32_t flow;
};

struct flow_table {
    struct flow_key *keys;
    size_t count;
};

static int compare_keys(const void *a, const void *b)
{
    const struct flow_key *x = a, *y = b;

    return x->peer < y->peer ? -1 : x->peer > y->peer;
}

static int make_table(struct flow_table *table, const struct lane_flow *flows, uint32_t count,
                      bool sends)
{
    table->keys = calloc((size_t)count + 1, sizeof *table->keys);
    if (table->keys == NULL)
        return -ENOMEM;
    table->count = count;
    for (uint32_t i = 0; i < count; i++)
        table->keys[i] = (struct flow_key){sends ? flows[i].dst : flows[i].src, i};
    qsort(table->keys, count, sizeof *table->keys, compare_keys);
    return 0;
}

static uint32_t flow_of(const struct flow_table *table, uint32_t peer)
{
    struct flow_key key = {.peer = peer};
    const struct flow_key *found =
        bsearch(&key, table->keys, table->count, sizeof key, compare_keys);

    assert(found != NULL); /* a plan's flows are all pairs of its schedules and barriers */
    return found->flow;
}

/* What turns operations into steps. */
struct compiler {
    struct schedule_executor *executor;
    struct flow_table sends, receives;
    uint32_t *last_send, *last_receive; /* by flow: its last message, counted over all steps */
    uint32_t filled;                    /* messages */
};

static void add_message(struct compiler *compiler, const struct schedule_op *op, uint32_t first)
{
    bool sends = op->action == SCHEDULE_SEND;
    uint32_t flow = flow_of(sends ? &compiler->sends : &compiler->receives, op->peer);
    uint32_t *last = &(sends ? compiler->last_send : compiler->last_receive)[flow];
    bool again = *last != EXECUTOR_NONE && *last >= first;

    compiler->executor->messages[compiler->filled] = (struct step_message){
        .flow = flow,
        .after = again ? *last - first : EXECUTOR_NONE,
        .next = EXECUTOR_NONE,
        .bytes = op->bytes,
        .at = op->at,
    };
    if (again)
        compiler->executor->messages[*last].next = compiler->filled - first;
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

static uint32_t *no_messages(uint32_t flows)
{
    uint32_t *last = malloc(((size_t)flows + 1) * sizeof *last);

    for (uint32_t i = 0; last != NULL && i < flows; i++)
        last[i] = EXECUTOR_NONE;
    return last;
}

static int compile(struct schedule_executor *executor, const struct executor_conf *conf)
{
    struct compiler compiler = {
        .executor = executor,
        .last_send = no_messages(conf->send_count),
        .last_receive = no_messages(conf->receive_count),
    };
    int rc = make_table(&compiler.sends, conf->sends, conf->send_count, true);

    if (rc == 0)
        rc = make_table(&compiler.receives, conf->receives, conf->receive_count, false);
    if (compiler.last_send == NULL || compiler.last_receive == NULL)
        rc = -ENOMEM;
    if (rc == 0)
        add_steps(&compiler);
    free(compiler.sends.keys);
    free(compiler.receives.keys);
    free(compiler.last_send);
    free(compiler.last_receive);
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
