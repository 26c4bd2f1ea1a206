/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_sim.h"

#include "test_patterns_util.h"

#include <inttypes.h>
#include <string.h>

#include "permutation.h"

/* One rank: the ops of its open step are ops[first] to ops[messages - 1], then local ones to end.*/
struct actor {
    struct schedule schedule;
    unsigned char *memory;
    bool *done; /* by op */
    size_t first, messages, end;
    size_t left; /* messages of the open step */
    uint32_t repetitions;
};

struct schedule_sim {
    const struct pattern_plan *plan;
    uint32_t phase, n;
    uint64_t seed, drawn;
    bool spoil; /* the next message */
    struct actor *actors;
};

static bool is_message(const struct schedule_op *op)
{
    return op->action == SCHEDULE_SEND || op->action == SCHEDULE_RECEIVE;
}

static bool overlap(const struct schedule_op *a, const struct schedule_op *b)
{
    return a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

static void check_places(const struct schedule *schedule, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        for (size_t j = first; j < i; j++) {
            const struct schedule_op *a = &schedule->ops[i], *b = &schedule->ops[j];

            if (a->action == SCHEDULE_RECEIVE || b->action == SCHEDULE_RECEIVE)
                assert_false(overlap(a, b));
        }
}

static void check_op(const struct schedule *schedule, const struct schedule_op *op, uint32_t n,
                     uint32_t rank)
{
    assert_true(op->step < schedule->steps);
    assert_true(op->at + op->bytes <= schedule->memory);
    if (is_message(op)) {
        assert_true(op->peer < n && op->peer != rank);
        return;
    }
    if (op->action == SCHEDULE_WORK)
        return;
    assert_true(op->from + op->bytes <= schedule->memory);
    assert_true(op->from >= op->at + op->bytes || op->at >= op->from + op->bytes);
    if (op->action == SCHEDULE_REDUCE) {
        assert_true(schedule->reduces);
        assert_int_equal(op->bytes % 4, 0);
        assert_int_equal(op->at % 4, 0);
        assert_int_equal(op->from % 4, 0);
    }
}

/* What schedule.h promises of one rank's ops. */
static void check_schedule(const struct schedule *schedule, uint32_t n, uint32_t rank)
{
    uint32_t step = 0;
    size_t first = 0;

    for (size_t i = 0; i < schedule->count; i++) {
        const struct schedule_op *op = &schedule->ops[i];

        check_op(schedule, op, n, rank);
        if (op->step != step) {
            assert_int_equal(op->step, step + 1);
            step++;
            first = i;
        } else if (is_message(op) && i > first) {
            assert_true(is_message(&schedule->ops[i - 1]));
        }
        if (is_message(op) &&
            (i + 1 == schedule->count || !is_message(op + 1) || op[1].step != step))
            check_places(schedule, first, i + 1);
    }
    assert_int_equal(schedule->steps, schedule->count > 0 ? step + 1 : 0);
}

static void open_step(struct actor *actor, size_t first)
{
    const struct schedule *schedule = &actor->schedule;

    actor->first = actor->messages = actor->end = first;
    while (actor->end < schedule->count &&
           schedule->ops[actor->end].step == schedule->ops[first].step) {
        if (is_message(&schedule->ops[actor->end]))
            actor->messages++;
        actor->done[actor->end++] = false;
    }
    actor->left = actor->messages - first;
}

static void reduce(unsigned char *memory, const struct schedule_op *op)
{
    for (uint64_t i = 0; i < op->bytes; i += sizeof(float)) {
        float a, b;

        memcpy(&a, memory + op->at + i, sizeof(a));
        memcpy(&b, memory + op->from + i, sizeof(b));
        a += b;
        memcpy(memory + op->at + i, &a, sizeof(a));
    }
}

static void do_local(struct actor *actor)
{
    for (size_t i = actor->messages; i < actor->end; i++) {
        const struct schedule_op *op = &actor->schedule.ops[i];

        if (op->action == SCHEDULE_REDUCE)
            reduce(actor->memory, op);
        else if (op->action == SCHEDULE_COPY)
            memcpy(actor->memory + op->at, actor->memory + op->from, op->bytes);
    }
}

/* The first open op with this action and peer: what the next message of the pair is for. */
static size_t first_open(const struct actor *actor, enum schedule_action action, uint32_t peer)
{
    for (size_t i = actor->first; i < actor->messages; i++)
        if (!actor->done[i] && actor->schedule.ops[i].action == action &&
            actor->schedule.ops[i].peer == peer)
            return i;
    return SIZE_MAX;
}

/* Hands over what this send is for, when both ends have it first in their line. */
static bool hand_over(struct schedule_sim *sim, uint32_t rank, size_t index)
{
    struct actor *sender = &sim->actors[rank], *receiver;
    const struct schedule_op *send = &sender->schedule.ops[index], *receive;
    size_t match;

    if (first_open(sender, SCHEDULE_SEND, send->peer) != index)
        return false;
    receiver = &sim->actors[send->peer];
    match = first_open(receiver, SCHEDULE_RECEIVE, rank);
    if (match == SIZE_MAX)
        return false;
    receive = &receiver->schedule.ops[match];
    if (receive->bytes != send->bytes)
        fail_msg("rank %u sends %" PRIu64 " bytes to rank %u, which expects %" PRIu64, rank,
                 send->bytes, send->peer, receive->bytes);
    if (send->bytes > 0)
        memcpy(receiver->memory + receive->at, sender->memory + send->at, send->bytes);
    if (send->bytes > 0 && sim->spoil) {
        receiver->memory[receive->at + receive->bytes - 1] ^= 1;
        sim->spoil = false;
    }
    sender->done[index] = receiver->done[match] = true;
    sender->left--;
    receiver->left--;
    return true;
}

static uint32_t draw(struct schedule_sim *sim, uint32_t below)
{
    return (uint32_t)(random_word(sim->seed, sim->drawn++) % below);
}

/* Ends the step of a rank that has no message left; opens its next one. */
static bool step_on(struct actor *actor, uint32_t repetitions)
{
    if (actor->schedule.count == 0)
        actor->repetitions = repetitions;
    if (actor->repetitions == repetitions || actor->left > 0)
        return false;
    do_local(actor);
    actor->repetitions += actor->end == actor->schedule.count;
    if (actor->repetitions < repetitions)
        open_step(actor, actor->end == actor->schedule.count ? 0 : actor->end);
    return true;
}

/* Some of a rank's sends, from a random one on, then perhaps its next step. */
static bool progress(struct schedule_sim *sim, uint32_t rank, uint32_t repetitions)
{
    struct actor *actor = &sim->actors[rank];
    uint32_t count = (uint32_t)(actor->messages - actor->first);
    uint32_t tries = count > 0 ? 1 + draw(sim, count) : 0;
    uint32_t begin = count > 0 ? draw(sim, count) : 0;
    bool moved = false;

    if (actor->repetitions == repetitions)
        return false;
    for (uint32_t i = 0; i < tries; i++) {
        size_t index = actor->first + (begin + i) % count;

        if (!actor->done[index] && actor->schedule.ops[index].action == SCHEDULE_SEND)
            moved |= hand_over(sim, rank, index);
    }
    return step_on(actor, repetitions) || moved;
}

static bool all_ended(const struct schedule_sim *sim, uint32_t repetitions)
{
    for (uint32_t rank = 0; rank < sim->n; rank++)
        if (sim->actors[rank].repetitions < repetitions)
            return false;
    return true;
}

/* Whether any rank moves when each tries everything once. */
static bool sweep(struct schedule_sim *sim, uint32_t repetitions)
{
    bool moved = false;

    for (uint32_t rank = 0; rank < sim->n; rank++) {
        struct actor *actor = &sim->actors[rank];

        if (actor->repetitions == repetitions)
            continue;
        for (size_t i = actor->first; i < actor->messages; i++)
            if (!actor->done[i] && actor->schedule.ops[i].action == SCHEDULE_SEND)
                moved |= hand_over(sim, rank, i);
        moved |= step_on(actor, repetitions);
    }
    return moved;
}

bool schedule_sim_run(struct schedule_sim *sim, uint32_t repetitions)
{
    for (uint32_t rank = 0; rank < sim->n; rank++) {
        sim->actors[rank].repetitions = 0;
        if (sim->actors[rank].schedule.count > 0)
            open_step(&sim->actors[rank], 0);
    }
    for (;;) {
        uint32_t tries = 2 * sim->n;

        while (tries-- > 0)
            progress(sim, draw(sim, sim->n), repetitions);
        if (!sweep(sim, repetitions))
            return all_ended(sim, repetitions);
    }
}

struct schedule_sim *schedule_sim_make(const struct pattern_plan *plan, uint32_t phase, uint32_t n,
                                       uint64_t seed)
{
    struct schedule_sim *sim = calloc(1, sizeof(*sim));

    assert_non_null(sim);
    *sim = (struct schedule_sim){.plan = plan, .phase = phase, .n = n, .seed = seed};
    sim->actors = calloc(n, sizeof(*sim->actors));
    assert_non_null(sim->actors);
    for (uint32_t rank = 0; rank < n; rank++) {
        struct actor *actor = &sim->actors[rank];

        assert_int_equal(pattern_schedule(plan, phase, rank, &actor->schedule), 0);
        check_schedule(&actor->schedule, n, rank);
        actor->memory = malloc(actor->schedule.memory + 1);
        actor->done = calloc(actor->schedule.count + 1, sizeof(*actor->done));
        assert_non_null(actor->memory);
        assert_non_null(actor->done);
        schedule_fill(plan, phase, rank, &actor->schedule, actor->memory);
    }
    return sim;
}

void schedule_sim_free(struct schedule_sim *sim)
{
    for (uint32_t rank = 0; rank < sim->n; rank++) {
        schedule_free(&sim->actors[rank].schedule);
        free(sim->actors[rank].memory);
        free(sim->actors[rank].done);
    }
    free(sim->actors);
    free(sim);
}

void assert_sums(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    struct schedule schedule;
    struct schedule_sum sum = pattern_schedule_sum(plan, phase, rank);
    uint64_t messages = 0, bytes = 0;

    assert_int_equal(pattern_schedule(plan, phase, rank, &schedule), 0);
    for (size_t i = 0; i < schedule.count; i++) {
        bool sent = schedule.ops[i].action == SCHEDULE_SEND;

        messages += sent;
        bytes += sent ? schedule.ops[i].bytes : 0;
    }
    assert_int_equal(sum.messages, messages);
    assert_int_equal(sum.bytes, bytes);
    assert_int_equal(sum.steps, schedule.steps);
    assert_int_equal(sum.memory, schedule.memory);
    assert_int_equal(sum.flows, pattern_flows(plan, phase, rank, PATTERN_SENDS, NULL, 0));
    schedule_free(&schedule);
}

const struct schedule *schedule_sim_schedule(const struct schedule_sim *sim, uint32_t rank)
{
    return &sim->actors[rank].schedule;
}

void *schedule_sim_memory(struct schedule_sim *sim, uint32_t rank)
{
    return sim->actors[rank].memory;
}

void schedule_sim_spoil(struct schedule_sim *sim)
{
    sim->spoil = true;
}

void schedule_sim_verify(const struct schedule_sim *sim)
{
    for (uint32_t rank = 0; rank < sim->n; rank++) {
        const struct actor *actor = &sim->actors[rank];
        struct schedule_wrong wrong;

        if (!schedule_verify(sim->plan, sim->phase, rank, &actor->schedule, actor->memory, &wrong))
            fail_msg("rank %u of %u: at byte %" PRIu64 ", element %" PRIu64
                     " of rank %u: expected %g, got %g",
                     rank, sim->n, wrong.at, wrong.element, wrong.source, wrong.expected,
                     wrong.got);
    }
}
