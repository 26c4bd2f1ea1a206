/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes ops of the steps that a pattern tells, and fills and verifies memory by what it says that
 * is there.
 */
#include "schedule.h"

#include "kind.h"
#include "permutation.h"
#include "steps.h"

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

static struct steps steps_of(const struct pattern_plan *plan, uint32_t rank)
{
    return (struct steps){.n = plan->n, .rank = rank, .group = {0, 1}};
}

/* --- ops ------------------------------------------------------------------------------------ */

struct writer {
    struct steps steps; /* first: what the listener is given */
    struct schedule schedule;
    size_t room;
    int rc;
};

static bool make_room(struct writer *writer)
{
    size_t room = writer->room > 0 ? 2 * writer->room : FIRST_ROOM;
    struct schedule_op *ops = NULL;

    if (writer->schedule.count < writer->room)
        return true;
    ops = realloc(writer->schedule.ops, room * sizeof(*ops));
    if (ops == NULL) {
        writer->rc = -ENOMEM;
        return false;
    }
    writer->schedule.ops = ops;
    writer->room = room;
    return true;
}

static void reach(struct schedule *schedule, uint64_t end)
{
    if (end > schedule->memory)
        schedule->memory = end;
}

static void write_op(struct steps *steps, const struct schedule_op *op)
{
    struct writer *writer = (struct writer *)steps;
    struct schedule *schedule = &writer->schedule;

    if (writer->rc < 0 || !make_room(writer))
        return;
    schedule->ops[schedule->count++] = *op;
    schedule->steps = op->step + 1;
    schedule->reduces |= op->action == SCHEDULE_REDUCE;
    reach(schedule, op->at + op->bytes);
    if (op->action == SCHEDULE_REDUCE || op->action == SCHEDULE_COPY)
        reach(schedule, op->from + op->bytes);
}

static void include_content(struct steps *steps, enum steps_when when,
                            const struct content *content)
{
    (void)when;
    reach(&((struct writer *)steps)->schedule, content->piece.at + content->piece.bytes);
}

int pattern_schedule(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     struct schedule *schedule)
{
    struct writer writer = {.steps = steps_of(plan, rank)};

    assert(plan->tell != NULL && phase < plan->phases && rank < plan->n);
    writer.steps.op = write_op;
    writer.steps.holds = include_content;
    plan->tell(plan, phase, &writer.steps);
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

/* --- the barrier ---------------------------------------------------------------------------- */

unsigned schedule_barrier_rounds(uint32_t ranks)
{
    unsigned rounds = 0;

    while (UINT32_C(1) << rounds < ranks)
        rounds++;
    return rounds;
}

uint32_t schedule_barrier_to(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + (UINT32_C(1) << round)) % ranks;
}

uint32_t schedule_barrier_from(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + ranks - (UINT32_C(1) << round)) % ranks;
}

/* --- contents ------------------------------------------------------------------------------- */

/* Floats are 1 to 251: 65,536 of them add up to less than 2^24, so that no sum is rounded. 251 is
 * prime: blocks of two's powers that changed places don't look alike. */
#define VALUES 251u
static_assert(VALUES * PATTERN_RANKS_MAX <= 1u << 24, "whole numbers below are exact in a float");

static float value_of(uint32_t rank, uint64_t element)
{
    return (float)(1 + (rank + element) % VALUES);
}

/* Eight bytes of what a rank has for another. */
static uint64_t bytes_of(const struct content *content, uint64_t word)
{
    uint64_t pair = (uint64_t)content->source * PATTERN_RANKS_MAX + content->target;

    return random_word(pair, word);
}

/* Expected elements of contents, one after the other. */
struct expected {
    const struct content *content;
    float sums[VALUES]; /* of all ranks, by an element's number modulo VALUES */
};

static void expect_sums(struct expected *expected, uint32_t n)
{
    for (uint32_t element = 0; element < VALUES; element++) {
        float sum = 0;

        for (uint32_t rank = 0; rank < n; rank++)
            sum += value_of(rank, element);
        expected->sums[element] = sum;
    }
}

static float float_at(const struct expected *expected, uint64_t element)
{
    const struct content *content = expected->content;

    return content->source == SCHEDULE_SUM ? expected->sums[element % VALUES]
                                           : value_of(content->source, element);
}

static bool same_bytes(const struct content *content, const unsigned char *memory,
                       struct schedule_wrong *wrong)
{
    const unsigned char *got = memory + content->piece.at;
    uint64_t word = 0;

    for (uint64_t i = 0; i < content->piece.bytes; i++) {
        uint64_t element = content->offset + i;
        unsigned char expected;

        if (i == 0 || element % 8 == 0)
            word = bytes_of(content, element / 8);
        expected = (unsigned char)(word >> 8 * (element % 8));
        if (got[i] == expected)
            continue;
        *wrong = (struct schedule_wrong){.at = content->piece.at + i,
                                         .element = element,
                                         .source = content->source,
                                         .expected = expected,
                                         .got = got[i]};
        return false;
    }
    return true;
}

static bool same_floats(const struct expected *expected, const unsigned char *memory,
                        struct schedule_wrong *wrong)
{
    const struct content *content = expected->content;

    for (uint64_t i = 0; i < content->piece.bytes; i += sizeof(float)) {
        uint64_t element = (content->offset + i) / sizeof(float);
        float should = float_at(expected, element), got;

        memcpy(&got, memory + content->piece.at + i, sizeof(got));
        if (got == should)
            continue;
        *wrong = (struct schedule_wrong){.at = content->piece.at + i,
                                         .element = element,
                                         .source = content->source,
                                         .expected = should,
                                         .got = got};
        return false;
    }
    return true;
}

static void write_bytes(const struct content *content, unsigned char *memory)
{
    uint64_t word = 0;

    for (uint64_t i = 0; i < content->piece.bytes; i++) {
        uint64_t element = content->offset + i;

        if (i == 0 || element % 8 == 0)
            word = bytes_of(content, element / 8);
        memory[content->piece.at + i] = (unsigned char)(word >> 8 * (element % 8));
    }
}

static void write_floats(const struct content *content, unsigned char *memory)
{
    for (uint64_t i = 0; i < content->piece.bytes; i += sizeof(float)) {
        float value = value_of(content->source, (content->offset + i) / sizeof(float));

        memcpy(memory + content->piece.at + i, &value, sizeof(value));
    }
}

struct filler {
    struct steps steps; /* first: what the listener is given */
    unsigned char *memory;
    uint64_t size;
};

static void fill_content(struct steps *steps, enum steps_when when, const struct content *content)
{
    struct filler *filler = (struct filler *)steps;

    assert(content->piece.at + content->piece.bytes <= filler->size);
    if (when != STEPS_INPUT)
        return;
    if (content->floats)
        write_floats(content, filler->memory);
    else
        write_bytes(content, filler->memory);
}

void schedule_fill(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                   const struct schedule *schedule, void *memory)
{
    struct filler filler = {
        .steps = steps_of(plan, rank), .memory = memory, .size = schedule->memory};

    if (schedule->memory == 0)
        return;
    filler.steps.holds = fill_content;
    memset(memory, NOTHING_YET, schedule->memory);
    plan->tell(plan, phase, &filler.steps);
}

struct verifier {
    struct steps steps; /* first: what the listener is given */
    const unsigned char *memory;
    uint32_t n; /* of the plan */
    bool sums_known;
    struct expected expected;
    struct schedule_wrong *wrong;
    bool right;
};

static void verify_content(struct steps *steps, enum steps_when when, const struct content *content)
{
    struct verifier *verifier = (struct verifier *)steps;

    if (when != STEPS_RESULT || !verifier->right)
        return;
    verifier->expected.content = content;
    if (content->source == SCHEDULE_SUM && !verifier->sums_known) {
        expect_sums(&verifier->expected, verifier->n);
        verifier->sums_known = true;
    }
    verifier->right = content->floats
                          ? same_floats(&verifier->expected, verifier->memory, verifier->wrong)
                          : same_bytes(content, verifier->memory, verifier->wrong);
}

bool schedule_verify(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     const struct schedule *schedule, const void *memory,
                     struct schedule_wrong *wrong)
{
    struct verifier verifier = {.steps = steps_of(plan, rank),
                                .memory = memory,
                                .n = plan->n,
                                .wrong = wrong,
                                .right = true};

    if (schedule->memory == 0)
        return true;
    verifier.steps.holds = verify_content;
    plan->tell(plan, phase, &verifier.steps);
    return verifier.right;
}
