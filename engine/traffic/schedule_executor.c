/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_executor.h"

#include "clock.h"
#include "memory.h"

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
#define PAGE 4096u
#define CACHE_LINE 64u
/* More than this is not in the nearer caches: an allreduce of 4 KiB, 500 times in memory of their
 * own, took a fifth longer than in one and the same. */
#define KEPT_BYTES (256u * 1024)

static_assert(OPERATIONS_A_TURN == STEPPER_POINTS * 3, "three operations a point");

/* --- preparation --- */

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
    struct stepper *stepper;
    struct flow_table sends, receives;
    uint32_t *last_send, *last_receive; /* by flow: its last message, counted over all steps */
    uint32_t filled;                    /* messages */
};

static void add_message(struct compiler *compiler, const struct schedule_op *op, uint32_t first)
{
    bool sends = op->action == SCHEDULE_SEND;
    uint32_t flow = flow_of(sends ? &compiler->sends : &compiler->receives, op->peer);
    uint32_t *last = &(sends ? compiler->last_send : compiler->last_receive)[flow];
    bool again = *last != STEPPER_NONE && *last >= first;

    compiler->stepper->messages[compiler->filled] = (struct stepper_message){
        .flow = flow,
        .after = again ? *last - first : STEPPER_NONE,
        .bytes = op->bytes,
        .at = op->at,
    };
    *last = compiler->filled++;
    if (op->bytes > compiler->stepper->most_bytes)
        compiler->stepper->most_bytes = op->bytes;
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

static void add_step(struct compiler *compiler, struct stepper_step *step,
                     const struct schedule_op *ops, size_t count)
{
    struct stepper *stepper = compiler->stepper;

    step->first_send = compiler->filled;
    step->send_count = add_messages(compiler, ops, count, SCHEDULE_SEND);
    step->first_receive = compiler->filled;
    step->receive_count = add_messages(compiler, ops, count, SCHEDULE_RECEIVE);
    step->local_count = count - step->send_count - step->receive_count;
    if (step->send_count > stepper->most_sends)
        stepper->most_sends = step->send_count;
    if (step->receive_count > stepper->most_receives)
        stepper->most_receives = step->receive_count;
}

static void add_steps(struct compiler *compiler)
{
    struct stepper *stepper = compiler->stepper;
    const struct schedule *schedule = &stepper->schedule;
    size_t next = 0;

    for (uint32_t i = 0; i < stepper->step_count; i++) {
        size_t first = next;

        while (next < schedule->count && schedule->ops[next].step == i)
            next++;
        if (next == first) /* a rank that idles has no list, either */
            continue;
        add_step(compiler, &stepper->steps[i], schedule->ops + first, next - first);
        stepper->steps[i].first_local = next - stepper->steps[i].local_count;
    }
    assert(next == schedule->count); /* operations are in the order of steps */
    for (uint32_t i = 0; i < stepper->rounds; i++) {
        const struct schedule_op round[] = {
            {.action = SCHEDULE_SEND,
             .peer = schedule_barrier_to(stepper->rank, i, stepper->ranks)},
            {.action = SCHEDULE_RECEIVE,
             .peer = schedule_barrier_from(stepper->rank, i, stepper->ranks)},
        };

        add_step(compiler, &stepper->steps[stepper->step_count + i], round, 2);
    }
}

static uint32_t *no_messages(uint32_t flows)
{
    uint32_t *last = malloc(((size_t)flows + 1) * sizeof *last);

    for (uint32_t i = 0; last != NULL && i < flows; i++)
        last[i] = STEPPER_NONE;
    return last;
}

static int compile(struct stepper *stepper, const struct stepper_conf *conf)
{
    struct compiler compiler = {
        .stepper = stepper,
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

int stepper_needs(const struct phase *phase, const struct pattern_plan *plan, uint32_t rank,
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
static int make_memory(struct stepper *stepper)
{
    stepper->memory_bytes = bytes_of(stepper->schedule.memory, &stepper->phase->schedule);
    if (stepper->memory_bytes > memory_spare())
        return -ENOMEM;
    if (posix_memalign((void **)&stepper->memory, PAGE, stepper->memory_bytes) != 0) {
        stepper->memory = NULL;
        return -ENOMEM;
    }
    stepper->place = stepper->memory;
    stepper->stride = stride_of(stepper->schedule.memory);
    stepper->copies = copies_of(stepper->schedule.memory, &stepper->phase->schedule);
    memset(stepper->memory, 0, stepper->memory_bytes);
    return 0;
}

static int prepare(struct stepper *stepper, const struct stepper_conf *conf)
{
    int rc = pattern_schedule(conf->plan, conf->phase->number, conf->rank, &stepper->schedule);

    if (rc < 0)
        return rc;
    stepper->step_count = stepper->schedule.steps > 0 ? stepper->schedule.steps : 1;
    stepper->rounds = schedule_barrier_rounds(conf->ranks);
    stepper->steps = calloc((size_t)stepper->step_count + stepper->rounds, sizeof *stepper->steps);
    stepper->messages =
        calloc(stepper->schedule.count + 2 * stepper->rounds, sizeof *stepper->messages);
    if (stepper->steps == NULL || stepper->messages == NULL)
        return -ENOMEM;
    rc = make_memory(stepper);
    return rc == 0 ? compile(stepper, conf) : rc;
}

int stepper_make(struct stepper **stepper, const struct stepper_conf *conf, struct err *err)
{
    struct stepper *s = calloc(1, sizeof *s);
    int rc = -ENOMEM;

    if (s != NULL) {
        s->phase = conf->phase;
        s->plan = conf->plan;
        s->rank = conf->rank;
        s->ranks = conf->ranks;
        for (unsigned i = 0; i < STEPPER_POINTS; i++)
            s->x[i] = 0.1 + 0.05 * i;
        rc = prepare(s, conf);
    }
    if (rc == 0) {
        *stepper = s;
        return 0;
    }
    err_set(err, rc, "rank %u needs %llu bytes for its messages: %s", conf->rank,
            s != NULL ? (unsigned long long)s->memory_bytes : 0, strerror(-rc));
    stepper_free(s);
    return rc;
}

void stepper_free(struct stepper *stepper)
{
    if (stepper == NULL)
        return;
    schedule_free(&stepper->schedule);
    free(stepper->memory);
    free(stepper->messages);
    free(stepper->steps);
    free(stepper);
}

void stepper_each_receive(const struct stepper *stepper, bool meeting,
                          void (*show)(void *context, const struct stepper_message *message),
                          void *context)
{
    uint32_t first = meeting ? stepper->step_count : 0;
    uint32_t end = stepper->step_count + (meeting ? stepper->rounds : 0);

    for (uint32_t i = first; i < end; i++)
        for (uint32_t j = 0; j < stepper->steps[i].receive_count; j++)
            show(context, &stepper->messages[stepper->steps[i].first_receive + j]);
}

int64_t stepper_work_ns(const struct stepper *stepper)
{
    uint64_t operations = 0;

    for (size_t i = 0; i < stepper->schedule.count; i++)
        if (stepper->schedule.ops[i].action == SCHEDULE_WORK)
            operations += stepper->schedule.ops[i].from;
    return (int64_t)(operations * SLOWEST_OPERATIONS_NS);
}

/* --- between the messages --- */

static void add_up(float *restrict sum, const float *restrict part, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += part[i];
}

static void work(struct stepper *stepper, uint64_t operations)
{
    double *x = stepper->x;

    for (uint64_t turn = 0; turn < operations; turn += OPERATIONS_A_TURN)
        for (unsigned i = 0; i < STEPPER_POINTS; i++)
            x[i] = GROWTH * x[i] * (1 - x[i]);
}

/* The next slice of a local operation; true: that was the last. Where no data are looked at there
 * is nothing to be reduced or copied. */
static bool operate(struct stepper *stepper, const struct schedule_op *op)
{
    bool works = op->action == SCHEDULE_WORK;
    uint64_t most = works ? SLICE_OPERATIONS : SLICE_BYTES;
    uint64_t left = (works ? op->from : op->bytes) - stepper->done;
    uint64_t slice = left < most ? left : most;
    uint8_t *to = stepper->place + op->at + stepper->done;
    const uint8_t *from = stepper->place + op->from + stepper->done;

    if (!works && !stepper->phase->schedule.compute)
        return true;
    if (works)
        work(stepper, slice);
    else if (op->action == SCHEDULE_COPY)
        memcpy(to, from, slice);
    else
        add_up((float *)(void *)to, (const float *)(const void *)from, slice / sizeof(float));
    stepper->done += slice;
    return slice == left;
}

/* What follows the messages of the present step. False: there is more. */
static bool run_locals(struct stepper *stepper)
{
    const struct stepper_step *step = &stepper->steps[stepper->position];
    const struct schedule_op *ops = stepper->schedule.ops;

    for (; stepper->local < step->local_count; stepper->local++) {
        if (!operate(stepper, &ops[step->first_local + stepper->local]))
            return false;
        stepper->done = 0;
    }
    return true;
}

/* --- repetitions, batches, the barrier --- */

/* What this rank has to say of the batch that is next. */
static uint8_t own_bits(const struct stepper *stepper)
{
    const struct phase *phase = stepper->phase;
    const struct schedule_options *options = &phase->schedule;
    const struct execution *execution = &stepper->execution;
    bool any = execution->batches > 0;
    int64_t now_ns = clock_now();
    bool over, outside;

    if (stepper->batch < options->warmup)
        return STEPPER_UNCOUNTED;
    if (options->count > 0)
        return execution->repetitions >= options->count ? STEPPER_STOP : 0;
    /* A batch that is longer than the window is measured all the same, once. */
    over = any && now_ns >= phase->stop_ns;
    outside = now_ns < phase->open_ns || (any && now_ns >= phase->close_ns);
    return (uint8_t)((over ? STEPPER_STOP : 0) | (outside ? STEPPER_UNCOUNTED : 0));
}

static void meet(struct stepper *stepper)
{
    stepper->position = stepper->step_count;
    stepper->bits = own_bits(stepper);
}

static void choose_repetition(struct stepper *stepper, uint32_t repetition)
{
    stepper->repetition = repetition;
    stepper->place = stepper->memory + repetition % stepper->copies * stepper->stride;
}

static void begin_batch(struct stepper *stepper)
{
    stepper->counted = (stepper->bits & STEPPER_UNCOUNTED) == 0;
    choose_repetition(stepper, 0);
    stepper->position = 0;
    stepper->begun_ns = clock_now();
}

static void complain(struct stepper *stepper, const struct schedule_wrong *wrong)
{
    char source[32] = "all ranks";

    if (wrong->source != SCHEDULE_SUM)
        snprintf(source, sizeof source, "rank %u", wrong->source);
    err_set(&stepper->error, -EBADMSG,
            "rank %u has a wrong result: element %llu, of %s, is %g and should be %g",
            stepper->rank, (unsigned long long)wrong->element, source, wrong->got, wrong->expected);
}

static bool verify(struct stepper *stepper)
{
    struct schedule_wrong wrong;

    if (!schedule_verify(stepper->plan, stepper->phase->number, stepper->rank, &stepper->schedule,
                         stepper->place, &wrong)) {
        complain(stepper, &wrong);
        return false;
    }
    stepper->execution.verified += stepper->counted;
    return true;
}

static void measure(struct stepper *stepper)
{
    struct execution *execution = &stepper->execution;
    uint64_t spent_ns = stepper->spent_ns;
    uint32_t repetitions = stepper->phase->schedule.batch;

    stepper->batch++;
    if (!stepper->counted)
        return;
    execution->batches++;
    execution->repetitions += repetitions;
    execution->sum_ns += spent_ns;
    histogram_add(&execution->times, spent_ns / repetitions);
}

static void end_batch(struct stepper *stepper)
{
    stepper->spent_ns = (uint64_t)(clock_now() - stepper->begun_ns);
    stepper->ran = true;
    stepper->attends = stepper->phase->schedule.compute;
    choose_repetition(stepper, 0);
    if (stepper->attends)
        return;
    measure(stepper);
    meet(stepper);
}

static void end_repetition(struct stepper *stepper)
{
    const struct schedule_options *options = &stepper->phase->schedule;
    uint32_t next = stepper->repetition + 1;

    stepper->position = 0;
    if (next == options->lead)
        stepper->begun_ns = clock_now();
    if (next < options->lead + options->batch)
        choose_repetition(stepper, next);
    else
        end_batch(stepper);
}

/* The results of a batch are verified, and input is made anew, what else there was is lost: of one
 * repetition's memory in a call. Only then do the ranks meet, so that nobody's time holds another's
 * filling.
 */
static enum stepper_state attend(struct stepper *stepper)
{
    if (stepper->ran && !verify(stepper))
        return STEPPER_WRONG;
    schedule_fill(stepper->plan, stepper->phase->number, stepper->rank, &stepper->schedule,
                  stepper->place);
    if (stepper->repetition + 1 < stepper->copies) {
        choose_repetition(stepper, stepper->repetition + 1);
        return STEPPER_BUSY;
    }
    stepper->attends = false;
    if (stepper->ran)
        measure(stepper);
    meet(stepper);
    return STEPPER_OPEN;
}

/* Shows the transport the messages of the present step; false: it has none. */
static bool open_step(struct stepper *stepper)
{
    const struct stepper_step *step = &stepper->steps[stepper->position];

    stepper->local = 0;
    stepper->done = 0;
    stepper->meeting = stepper->position >= stepper->step_count;
    stepper->sends = stepper->messages + step->first_send;
    stepper->send_count = step->send_count;
    stepper->receives = stepper->messages + step->first_receive;
    stepper->receive_count = step->receive_count;
    stepper->sends_left = step->send_count;
    stepper->receives_left = step->receive_count;
    return step->send_count + step->receive_count > 0;
}

void stepper_begin(struct stepper *stepper)
{
    stepper->begun = true;
    stepper->attends = stepper->phase->schedule.compute;
    if (stepper->attends)
        return;
    meet(stepper);
    open_step(stepper);
}

/* The present step is complete: which one is next? */
static enum stepper_state pass_on(struct stepper *stepper)
{
    stepper->position++;
    if (stepper->position == stepper->step_count)
        end_repetition(stepper);
    if (stepper->position < stepper->step_count + stepper->rounds)
        return STEPPER_OPEN;
    if ((stepper->bits & STEPPER_STOP) != 0) {
        stepper->ended = true;
        return STEPPER_ENDED;
    }
    begin_batch(stepper);
    return STEPPER_OPEN;
}

/* As stepper_next; `busy` is its caller's. */
static enum stepper_state go_on(struct stepper *stepper)
{
    for (;;) {
        enum stepper_state state = STEPPER_OPEN;

        if (!stepper->attends) {
            if (!run_locals(stepper))
                return STEPPER_BUSY;
            state = pass_on(stepper);
        }
        if (stepper->attends)
            state = attend(stepper);
        if (state != STEPPER_OPEN || open_step(stepper))
            return state;
    }
}

enum stepper_state stepper_next(struct stepper *stepper)
{
    enum stepper_state state = go_on(stepper);

    stepper->busy = state == STEPPER_BUSY;
    return state;
}
