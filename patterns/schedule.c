/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes ops of the steps that a pattern emits, and fills and verifies memory by what it says that
 * is there.
 */
#include "schedule.h"

#include "kind.h"
#include "permutation.h"
#include "schedule_builder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64u
#define NOTHING_YET 0xff /* in every byte: a float that is equal to none */

bool pattern_is_scheduled(const struct pattern_plan *plan)
{
    return plan->emit != NULL;
}

bool pattern_verifies(const struct pattern_plan *plan)
{
    return plan->emit != NULL && plan->iterations == 0;
}

uint32_t pattern_iterations(const struct pattern_plan *plan)
{
    return plan->iterations;
}

static struct steps steps_of(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    return (struct steps){.n = plan->n, .rank = rank, .phase = phase, .group = {0, 1}};
}

/* --- ops ------------------------------------------------------------------------------------ */

struct writer {
    struct steps steps; /* first: what the listener is given */
    struct schedule schedule;
    size_t room;
    bool stores; /* ops; else they are only summed up */
    int rc;
};

static void reach(struct schedule *schedule, uint64_t end)
{
    if (end > schedule->memory)
        schedule->memory = end;
}

static void store(struct writer *writer, const struct schedule_op *op)
{
    struct schedule *schedule = &writer->schedule;
    size_t room = writer->room > 0 ? 2 * writer->room : FIRST_ROOM;
    struct schedule_op *ops = NULL;

    if (schedule->count == writer->room) {
        ops = realloc(schedule->ops, room * sizeof(*ops));
        if (ops == NULL) {
            writer->rc = -ENOMEM;
            return;
        }
        schedule->ops = ops;
        writer->room = room;
    }
    schedule->ops[schedule->count++] = *op;
}

static void write_op(struct steps *steps, const struct schedule_op *op)
{
    struct writer *writer = (struct writer *)steps;
    struct schedule *schedule = &writer->schedule;
    bool sends = op->action == SCHEDULE_SEND;

    schedule->steps = op->step + 1;
    schedule->reduces |= op->action == SCHEDULE_REDUCE;
    schedule->messages += sends;
    schedule->bytes += sends ? op->bytes : 0;
    reach(schedule, op->at + op->bytes);
    if (op->action == SCHEDULE_REDUCE || op->action == SCHEDULE_COPY)
        reach(schedule, op->from + op->bytes);
    if (writer->stores && writer->rc == 0)
        store(writer, op);
}

static void include_content(struct steps *steps, enum steps_when when,
                            const struct content *content)
{
    (void)when;
    reach(&((struct writer *)steps)->schedule, content->piece.at + content->piece.bytes);
}

static struct writer write_schedule(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                                    bool stores)
{
    struct writer writer = {.steps = steps_of(plan, phase, rank), .stores = stores};

    assert(plan->emit != NULL && phase < plan->phases && rank < plan->n);
    writer.steps.op = write_op;
    writer.steps.holds = include_content;
    plan->emit(plan, &writer.steps);
    return writer;
}

int pattern_schedule(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     struct schedule *schedule)
{
    struct writer writer = write_schedule(plan, phase, rank, true);

    if (writer.rc < 0)
        schedule_free(&writer.schedule);
    *schedule = writer.schedule;
    return writer.rc;
}

struct schedule pattern_schedule_sum(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    return write_schedule(plan, phase, rank, false).schedule;
}

void schedule_free(struct schedule *schedule)
{
    free(schedule->ops);
    *schedule = (struct schedule){0};
}

/* --- contents ------------------------------------------------------------------------------- */

/* Whole numbers up to this one are exact in a float, in whatever order they are added: the values
 * of n ranks are at most EXACT / n. */
#define EXACT (UINT32_C(1) << 24)

/* A value is a part for its rank and one for its place. The rank's is one of PARTS random numbers
 * of the rank, in turn from element to element: a rank whose values took those of another's place
 * is found in so many elements. The place's has PLACES values, a prime number, and begins anew
 * elsewhere after them: pieces that changed places don't look alike. */
#define PARTS 3u
#define PLACES 211u
static_assert(PLACES < EXACT / PATTERN_RANKS_MAX, "there are numbers for ranks");

static uint32_t place_of(uint64_t element)
{
    uint64_t round = element / PLACES;

    return (uint32_t)((element + (round * UINT64_C(0x9e3779b97f4a7c15) >> 40)) % PLACES);
}

/* What is to be added: the values of one rank, or of all. */
struct values {
    uint32_t ranks;
    uint32_t own[PARTS];
};

static struct values values_of(uint32_t n, uint32_t source)
{
    bool all = source == SCHEDULE_SUM;
    struct values values = {.ranks = all ? n : 1};

    for (uint32_t rank = all ? 0 : source; rank < (all ? n : source + 1); rank++)
        for (uint32_t i = 0; i < PARTS; i++)
            values.own[i] += (uint32_t)(random_word(rank, i) % (EXACT / n - PLACES));
    return values;
}

static float float_at(const struct values *values, uint64_t element)
{
    return (float)(values->own[element % PARTS] + values->ranks * place_of(element));
}

/* Eight bytes of what a rank has for another. */
static uint64_t bytes_of(const struct content *content, uint64_t word)
{
    uint64_t pair = (uint64_t)content->source * PATTERN_RANKS_MAX + content->target;

    return random_word(pair, word);
}

/* Writes what a repetition begins with, or looks whether what it leaves is right. */
struct keeper {
    struct steps steps;  /* first: what the listener is given */
    uint32_t n;          /* of the plan */
    unsigned char *fill; /* is written; NULL: `memory` is verified */
    const unsigned char *memory;
    uint64_t size;
    struct values sum; /* of all ranks; .ranks 0: not yet */
    struct schedule_wrong *wrong;
    bool right;
};

static void note_wrong(struct keeper *keeper, const struct content *content, uint64_t i,
                       double expected, double got)
{
    keeper->right = false;
    *keeper->wrong = (struct schedule_wrong){
        .at = content->piece.at + i,
        .element = (content->offset + i) / (content->floats ? sizeof(float) : 1),
        .source = content->source,
        .expected = expected,
        .got = got,
    };
}

static void keep_bytes(struct keeper *keeper, const struct content *content)
{
    uint64_t word = 0;

    for (uint64_t i = 0; i < content->piece.bytes && keeper->right; i++) {
        uint64_t element = content->offset + i, at = content->piece.at + i;
        unsigned char expected;

        if (i == 0 || element % 8 == 0)
            word = bytes_of(content, element / 8);
        expected = (unsigned char)(word >> 8 * (element % 8));
        if (keeper->fill != NULL)
            keeper->fill[at] = expected;
        else if (keeper->memory[at] != expected)
            note_wrong(keeper, content, i, expected, keeper->memory[at]);
    }
}

static void keep_floats(struct keeper *keeper, const struct content *content)
{
    struct values one, *values = &keeper->sum;

    if (content->source != SCHEDULE_SUM) {
        one = values_of(keeper->n, content->source);
        values = &one;
    } else if (values->ranks == 0) {
        *values = values_of(keeper->n, SCHEDULE_SUM);
    }
    for (uint64_t i = 0; i < content->piece.bytes && keeper->right; i += sizeof(float)) {
        float expected = float_at(values, (content->offset + i) / sizeof(float)), got;

        if (keeper->fill != NULL) {
            memcpy(keeper->fill + content->piece.at + i, &expected, sizeof(expected));
            continue;
        }
        memcpy(&got, keeper->memory + content->piece.at + i, sizeof(got));
        if (got != expected)
            note_wrong(keeper, content, i, expected, got);
    }
}

static void keep_content(struct steps *steps, enum steps_when when, const struct content *content)
{
    struct keeper *keeper = (struct keeper *)steps;

    assert(content->piece.at + content->piece.bytes <= keeper->size);
    if (when != (keeper->fill != NULL ? STEPS_INPUT : STEPS_RESULT))
        return;
    if (content->floats)
        keep_floats(keeper, content);
    else
        keep_bytes(keeper, content);
}

static bool keep(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                 const struct schedule *schedule, struct keeper *keeper)
{
    keeper->n = plan->n;
    keeper->steps = steps_of(plan, phase, rank);
    keeper->steps.holds = keep_content;
    keeper->size = schedule->memory;
    keeper->right = true;
    if (schedule->memory > 0)
        plan->emit(plan, &keeper->steps);
    return keeper->right;
}

void schedule_fill(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                   const struct schedule *schedule, void *memory)
{
    if (schedule->memory > 0)
        memset(memory, NOTHING_YET, schedule->memory);
    keep(plan, phase, rank, schedule, &(struct keeper){.fill = memory});
}

bool schedule_verify(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     const struct schedule *schedule, const void *memory,
                     struct schedule_wrong *wrong)
{
    return keep(plan, phase, rank, schedule, &(struct keeper){.memory = memory, .wrong = wrong});
}
