/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_executor.h"

#include "clock.h"
#include "sysfs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
/* Maximum bytes of all memories of repetitions, which the nearer caches hold. With more, data come
 * from farther caches: 500 repetitions of an allreduce of 4 KiB, each with its own memory, took a
 * fifth longer than in one memory. */
#define KEPT_BYTES (256u * 1024)
#define SLICE_BYTES (4u << 20)   /* reduced or copied at a time */
#define SLICE_OPERATIONS 480000u /* floating point operations at a time: about a millisecond */
#define OPERATIONS_A_TURN 24u    /* of all points: r * x * (1 - x) */
#define GROWTH 3.9               /* chaotic: no value repeats or dies away */
#define SLOWEST_OPERATIONS_NS 10 /* maximum time of one operation */

static_assert(OPERATIONS_A_TURN == EXECUTOR_POINTS * 3, "three operations a point");

/* --- making --- */

/* Allocate the memory of the repetitions, in whole pages. If results are verified, as many
 * repetitions of a batch as fit have their own memory. All pages are touched now, so that no page
 * fault is measured, and the next rank of this node sees how much memory is left. The kernel would
 * promise more memory than there is, and kill a process that uses it. */
static int make_memory(struct schedule_executor *executor, struct err *err)
{
    const struct schedule_options *options = &executor->phase->schedule;
    uint64_t memory = executor->schedule.memory, spare = memory_spare(), fit;

    executor->stride = (memory / CACHE_LINE + 1) * CACHE_LINE;
    fit = options->compute ? KEPT_BYTES / executor->stride : 0;
    fit = fit < options->batch ? fit : options->batch;
    executor->copies = fit > 0 ? (uint32_t)fit : 1;
    memory += (executor->copies - 1) * executor->stride;
    executor->memory_bytes = (memory / PAGE + 1) * PAGE;
    if (executor->memory_bytes > spare)
        return err_set(err, -EINVAL,
                       "the messages of rank %u need %llu MiB of memory, and %llu MiB are "
                       "available: use smaller messages or fewer ranks",
                       executor->rank, (unsigned long long)executor->memory_bytes >> 20,
                       (unsigned long long)spare >> 20);
    if (posix_memalign((void **)&executor->memory, PAGE, executor->memory_bytes) != 0) {
        executor->memory = NULL;
        return err_set(err, -ENOMEM, "out of memory");
    }
    memset(executor->memory, 0, executor->memory_bytes);
    return 0;
}

static void choose_repetition(struct schedule_executor *executor, uint32_t repetition)
{
    executor->repetition = repetition;
    executor->place = executor->memory + repetition % executor->copies * executor->stride;
}

int executor_make(struct schedule_executor **executor, const struct phase *phase,
                  const struct pattern_plan *plan, uint32_t rank, uint32_t ranks, struct err *err)
{
    struct schedule_executor *made = calloc(1, sizeof *made);
    uint32_t rounds = schedule_barrier_rounds(ranks);
    struct schedule_op *ops = NULL;
    int rc = -ENOMEM;

    if (made != NULL) {
        made->phase = phase;
        made->rank = rank;
        for (unsigned i = 0; i < EXECUTOR_POINTS; i++)
            made->x[i] = 0.1 + 0.05 * i;
        made->refilling = true;
        rc = pattern_schedule(plan, phase->number, rank, &made->schedule);
    }
    if (rc == 0) {
        ops = realloc(made->schedule.ops,
                      (made->schedule.count + 2 * (size_t)rounds + 1) * sizeof *ops);
        rc = ops != NULL ? 0 : -ENOMEM;
    }
    if (rc < 0) {
        executor_free(made);
        return err_set(err, rc, "out of memory");
    }
    /* The barrier's rounds are further steps behind those of the schedule. */
    made->ops = made->schedule.ops = ops;
    made->op_count = made->schedule.count;
    for (uint32_t i = 0; i < 2 * rounds; i++)
        ops[made->op_count++] =
            (struct schedule_op){.step = made->schedule.steps + i / 2,
                                 .action = i % 2 == 0 ? SCHEDULE_SEND : SCHEDULE_RECEIVE,
                                 .peer = i % 2 == 0 ? schedule_barrier_to(rank, i / 2, ranks)
                                                    : schedule_barrier_from(rank, i / 2, ranks)};
    rc = make_memory(made, err);
    if (rc < 0) {
        executor_free(made);
        return rc;
    }
    choose_repetition(made, 0);
    for (size_t i = 0; i < made->schedule.count; i++) {
        const struct schedule_op *op = &made->ops[i];

        if ((op->action == SCHEDULE_SEND || op->action == SCHEDULE_RECEIVE) &&
            op->bytes > made->most_bytes)
            made->most_bytes = op->bytes;
    }
    *executor = made;
    return 0;
}

void executor_free(struct schedule_executor *executor)
{
    if (executor == NULL)
        return;
    schedule_free(&executor->schedule);
    free(executor->memory);
    free(executor);
}

int64_t executor_compute_ns(const struct schedule_executor *executor)
{
    uint64_t operations = 0;

    for (size_t i = 0; i < executor->schedule.count; i++)
        if (executor->ops[i].action == SCHEDULE_WORK)
            operations += executor->ops[i].from;
    return (int64_t)(operations * SLOWEST_OPERATIONS_NS);
}

/* --- between the messages --- */

/* Execute the next slice of a local operation; return true if the operation is complete. Without
 * verification nothing is reduced or copied. */
static bool operate(struct schedule_executor *executor, const struct schedule_op *op)
{
    bool works = op->action == SCHEDULE_WORK;
    uint64_t most = works ? SLICE_OPERATIONS : SLICE_BYTES;
    uint64_t left = (works ? op->from : op->bytes) - executor->done;
    uint64_t slice = left < most ? left : most;
    uint8_t *to = executor->place + op->at + executor->done;
    const uint8_t *from = executor->place + op->from + executor->done;
    float *restrict sum = (float *)(void *)to;
    const float *restrict part = (const float *)(const void *)from;
    double *x = executor->x;

    if (!works && !executor->phase->schedule.compute)
        return true;
    if (op->action == SCHEDULE_COPY)
        memcpy(to, from, slice);
    for (size_t i = 0; op->action == SCHEDULE_REDUCE && i < slice / sizeof *sum; i++)
        sum[i] += part[i];
    for (uint64_t turn = 0; works && turn < slice; turn += OPERATIONS_A_TURN)
        for (unsigned i = 0; i < EXECUTOR_POINTS; i++)
            x[i] = GROWTH * x[i] * (1 - x[i]);
    executor->done += slice;
    return slice == left;
}

/* --- repetitions, batches, the barrier --- */

/* Open the step that begins at the operation `first`, and count its sends and receives; `first`
 * equal to `limit` opens an empty step. */
static void open_step(struct schedule_executor *executor, size_t first, size_t limit)
{
    executor->first = executor->end = first;
    executor->sends_left = executor->receives_left = 0;
    for (; executor->end < limit && executor->ops[executor->end].step == executor->ops[first].step;
         executor->end++) {
        executor->sends_left += executor->ops[executor->end].action == SCHEDULE_SEND;
        executor->receives_left += executor->ops[executor->end].action == SCHEDULE_RECEIVE;
    }
    executor->messages = first + executor->sends_left + executor->receives_left;
    executor->local = executor->messages;
    executor->done = 0;
}

/* Record the time of the batch that has run, if any, and begin the barrier between batches. The
 * barrier's bits say whether this rank wants a next batch, and whether the next batch is
 * measured. */
static void begin_barrier(struct schedule_executor *executor)
{
    const struct phase *phase = executor->phase;
    const struct schedule_options *options = &phase->schedule;
    struct execution *execution = &executor->execution;
    int64_t now_ns = clock_now();

    executor->batch += executor->ran;
    if (executor->ran && executor->counted) {
        execution->batches++;
        execution->repetitions += options->batch;
        execution->sum_ns += executor->spent_ns;
        histogram_add(&execution->times, executor->spent_ns / options->batch, 1);
    }
    executor->in_barrier = true;
    executor->bits = 0;
    if (executor->batch < options->warmup) {
        executor->bits = EXECUTOR_UNCOUNTED;
    } else if (options->count > 0) {
        executor->bits = execution->repetitions >= options->count ? EXECUTOR_STOP : 0;
    } else {
        /* A batch that is longer than the window is measured once, too. */
        bool any = execution->batches > 0;

        if (any && now_ns >= phase->stop_ns)
            executor->bits |= EXECUTOR_STOP;
        if (now_ns < phase->open_ns || (any && now_ns >= phase->close_ns))
            executor->bits |= EXECUTOR_UNCOUNTED;
    }
    open_step(executor, executor->schedule.count, executor->op_count);
}

/* Verify the result in one repetition's memory, and fill this memory with input again. The barrier
 * begins after the last memory, so that the filling at one rank delays no measured time of another
 * rank. */
static void verify_and_refill(struct schedule_executor *executor)
{
    bool compute = executor->phase->schedule.compute;
    struct schedule_wrong wrong;
    char source[32] = "all ranks";

    if (compute && executor->ran &&
        !schedule_verify(&executor->schedule, executor->place, &wrong)) {
        if (wrong.source != SCHEDULE_SUM)
            snprintf(source, sizeof source, "rank %u", wrong.source);
        err_set(&executor->error, -EBADMSG,
                "rank %u has a wrong result: element %llu of the data of %s is %g and should be %g",
                executor->rank, (unsigned long long)wrong.element, source, wrong.got,
                wrong.expected);
        return;
    }
    executor->execution.verified += compute && executor->ran && executor->counted;
    if (compute)
        schedule_fill(&executor->schedule, executor->place);
    executor->busy = compute && executor->repetition + 1 < executor->copies;
    if (executor->busy) {
        choose_repetition(executor, executor->repetition + 1);
    } else {
        executor->refilling = false;
        begin_barrier(executor);
    }
}

void executor_next(struct schedule_executor *executor)
{
    size_t limit = executor->in_barrier ? executor->op_count : executor->schedule.count;

    executor->busy = false;
    if (executor->refilling) {
        verify_and_refill(executor);
        return;
    }
    for (; executor->local < executor->end; executor->local++) {
        executor->busy = !operate(executor, &executor->ops[executor->local]);
        if (executor->busy)
            return;
        executor->done = 0;
    }
    /* The step is complete: open the next step, repetition, barrier or batch. */
    if (executor->end < limit) {
        open_step(executor, executor->end, limit);
    } else if (executor->in_barrier && (executor->bits & EXECUTOR_STOP) != 0) {
        executor->ended = true;
    } else if (executor->in_barrier) {
        executor->in_barrier = false;
        executor->counted = (executor->bits & EXECUTOR_UNCOUNTED) == 0;
        choose_repetition(executor, 0);
        executor->begun_ns = clock_now();
        open_step(executor, 0, executor->schedule.count);
    } else if (executor->repetition + 1 < executor->phase->schedule.batch) {
        choose_repetition(executor, executor->repetition + 1);
        open_step(executor, 0, limit);
    } else {
        executor->spent_ns = (uint64_t)(clock_now() - executor->begun_ns);
        executor->ran = executor->refilling = true;
        choose_repetition(executor, 0);
        open_step(executor, limit, limit);
    }
}
