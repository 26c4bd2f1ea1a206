/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes ops of the steps that a pattern tells, and fills and verifies memory by what it says that
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
    return plan->tell != NULL;
}

bool pattern_verifies(const struct pattern_plan *plan)
{
    return plan->tell != NULL && plan->iterations == 0;
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
    struct schedule_sum sum;
    size_t room;
    bool stores; /* ops; else they are only summed up */
    int rc;
};

static void reach(struct writer *writer, uint64_t end)
{
    if (end > writer->schedule.memory)
        writer->schedule.memory = end;
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

    writer->schedule.steps = op->step + 1;
    writer->schedule.reduces |= op->action == SCHEDULE_REDUCE;
    reach(writer, op->at + op->bytes);
    if (op->action == SCHEDULE_REDUCE || op->action == SCHEDULE_COPY)
        reach(writer, op->from + op->bytes);
    if (op->action == SCHEDULE_SEND) {
        writer->sum.messages++;
        writer->sum.bytes += op->bytes;
    }
    if (writer->stores && writer->rc == 0)
        store(writer, op);
}

static void include_content(struct steps *steps, enum steps_when when,
                            const struct content *content)
{
    (void)when;
    reach((struct writer *)steps, content->piece.at + content->piece.bytes);
}

static struct writer write_schedule(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                                    bool stores)
{
    struct writer writer = {.steps = steps_of(plan, phase, rank), .stores = stores};

    assert(plan->tell != NULL && phase < plan->phases && rank < plan->n);
    writer.steps.op = write_op;
    writer.steps.holds = include_content;
    plan->tell(plan, &writer.steps);
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

void schedule_free(struct schedule *schedule)
{
    free(schedule->ops);
    *schedule = (struct schedule){0};
}

struct schedule_sum pattern_schedule_sum(const struct pattern_plan *plan, uint32_t phase,
                                         uint32_t rank)
{
    struct writer writer = write_schedule(plan, phase, rank, false);

    writer.sum.steps = writer.schedule.steps;
    writer.sum.memory = writer.schedule.memory;
    writer.sum.flows = (uint32_t)pattern_flows(plan, phase, rank, PATTERN_SENDS, NULL, 0);
    return writer.sum;
}

/* --- contents ------------------------------------------------------------------------------- */

/* Whole numbers up to this one are exact in a float, in whatever order they are added: the values
 * of n ranks are at most EXACT / n. */
#define EXACT (UINT32_C(1) << 24)

/* A value is a part for its rank and one for its place. The rank's is its number, or, where that is
 * too large, one of the number's digits, in turn from element to element: a rank whose values took
 * those of another's place is found in so many elements. The place's has PLACES values, a prime
 * number, and begins anew elsewhere after them: pieces that changed places don't look alike. */
#define PLACES 211u
#define DIGITS_MOST 3u

struct digits {
    uint32_t base;
    uint32_t count; /* 1 to DIGITS_MOST */
};

static_assert(41 * 41 * 41 >= PATTERN_RANKS_MAX && 41 + PLACES <= EXACT / PATTERN_RANKS_MAX,
              "three digits are enough");

/* The smallest number that is at least n to the power of so many. */
static uint32_t root_above(uint32_t n, uint32_t power)
{
    for (uint64_t root = 1;; root++) {
        uint64_t reached = 1;

        for (uint32_t i = 0; i < power; i++)
            reached *= root;
        if (reached >= n)
            return (uint32_t)root;
    }
}

static struct digits digits_of(uint32_t n)
{
    struct digits digits = {.base = n, .count = 1};

    while (digits.base + PLACES > EXACT / n)
        digits.base = root_above(n, ++digits.count);
    assert(digits.count <= DIGITS_MOST);
    return digits;
}

static uint32_t place_of(uint64_t element)
{
    uint64_t round = element / PLACES;

    return (uint32_t)((element + (round * UINT64_C(0x9e3779b97f4a7c15) >> 40)) % PLACES);
}

/* What is to be added: the values of one rank, or of all. A value is `own` of the element's number
 * modulo the count of digits, and `ranks` times the place's part. */
struct values {
    struct digits digits;
    uint32_t ranks;
    uint32_t own[DIGITS_MOST];
};

static void add_rank(struct values *values, uint32_t rank)
{
    values->ranks++;
    for (uint32_t i = 0; i < values->digits.count; i++) {
        values->own[i] += 1 + rank % values->digits.base;
        rank /= values->digits.base;
    }
}

static struct values values_of(uint32_t n, uint32_t source)
{
    struct values values = {.digits = digits_of(n)};

    if (source != SCHEDULE_SUM)
        add_rank(&values, source);
    for (uint32_t rank = 0; source == SCHEDULE_SUM && rank < n; rank++)
        add_rank(&values, rank);
    return values;
}

static float float_at(const struct values *values, uint64_t element)
{
    uint64_t digit = values->digits.count > 1 ? element % values->digits.count : 0;

    return (float)(values->own[digit] + values->ranks * place_of(element));
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
        plan->tell(plan, &keeper->steps);
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
