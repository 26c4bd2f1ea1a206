/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filling and verification of a rank's memory, by the contents that its schedule declares.
 */
#include "schedule.h"

#include "permutation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING_YET 0xff /* in every byte: a float that is equal to none */

void schedule_free(struct schedule *schedule)
{
    free(schedule->ops);
    free(schedule->contents);
    *schedule = (struct schedule){0};
}

/* Whole numbers up to this one are exact in a float, in whatever order they are added: the values
 * of n ranks are at most EXACT / n. */
#define EXACT (UINT32_C(1) << 24)

/* A float is the sum of a part that depends on its rank and a part that depends on its place. The
 * rank's part is one of PARTS random numbers of the rank, in rotation from element to element, so
 * that values of a wrong rank are found within PARTS elements. The place's part repeats after
 * PLACES values, a prime number, so that exchanged pieces differ. */
#define PARTS 3u
#define PLACES 211u
static_assert(PLACES < EXACT / PATTERN_RANKS_MAX, "there are numbers for ranks");

static uint32_t place_of(uint64_t element)
{
    uint64_t round = element / PLACES;

    return (uint32_t)((element + (round * UINT64_C(0x9e3779b97f4a7c15) >> 40)) % PLACES);
}

/* Parts of the floats of one rank, or of the sum over all ranks. */
struct values {
    uint32_t ranks; /* 0: not reckoned yet */
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

/* Write `bytes` bytes of the declared content of a piece, from the offset `from` in the piece
 * on. */
static void write_content(const struct schedule *schedule, const struct content *content,
                          struct values *sum, uint64_t from, unsigned char *into, uint64_t bytes)
{
    uint64_t pair = (uint64_t)content->source * PATTERN_RANKS_MAX + content->target;
    uint64_t first = content->offset + from, word = 0;
    struct values values;

    if (!content->floats) {
        for (uint64_t i = 0; i < bytes; i++) {
            if (i == 0 || (first + i) % 8 == 0)
                word = random_word(pair, (first + i) / 8);
            into[i] = (unsigned char)(word >> 8 * ((first + i) % 8));
        }
        return;
    }
    if (content->source == SCHEDULE_SUM && sum->ranks == 0)
        *sum = values_of(schedule->ranks, SCHEDULE_SUM);
    values = content->source == SCHEDULE_SUM ? *sum : values_of(schedule->ranks, content->source);
    for (uint64_t i = 0; i < bytes; i += sizeof(float)) {
        uint64_t element = (first + i) / sizeof(float);
        float value = (float)(values.own[element % PARTS] + values.ranks * place_of(element));

        memcpy(into + i, &value, sizeof(value));
    }
}

void schedule_fill(const struct schedule *schedule, void *memory)
{
    struct values sum = {0};

    if (schedule->memory > 0)
        memset(memory, NOTHING_YET, schedule->memory);
    for (size_t i = 0; i < schedule->content_count && schedule->memory > 0; i++) {
        const struct content *content = &schedule->contents[i];

        if (content->time == STEPS_INPUT)
            write_content(schedule, content, &sum, 0, (unsigned char *)memory + content->piece.at,
                          content->piece.bytes);
    }
}

#define COMPARED 4096u /* bytes at a time: whole floats */

/* Compare a part of a piece in memory with its declared content; return false at the first
 * difference, which `wrong` describes. */
static bool compare(const struct content *content, uint64_t from, const unsigned char *found,
                    const unsigned char *right, uint64_t bytes, struct schedule_wrong *wrong)
{
    size_t size = content->floats ? sizeof(float) : 1;
    float expected, got;
    uint64_t i = 0;

    if (memcmp(found, right, bytes) == 0)
        return true;
    while (i + size < bytes && memcmp(found + i, right + i, size) == 0)
        i += size;
    if (content->floats) {
        memcpy(&expected, right + i, size);
        memcpy(&got, found + i, size);
    } else {
        expected = right[i];
        got = found[i];
    }
    *wrong = (struct schedule_wrong){
        .at = content->piece.at + from + i,
        .element = (content->offset + from + i) / size,
        .source = content->source,
        .expected = expected,
        .got = got,
    };
    return false;
}

bool schedule_verify(const struct schedule *schedule, const void *memory,
                     struct schedule_wrong *wrong)
{
    unsigned char right[COMPARED];
    struct values sum = {0};

    for (size_t i = 0; i < schedule->content_count; i++) {
        const struct content *content = &schedule->contents[i];
        const unsigned char *found = (const unsigned char *)memory + content->piece.at;
        uint64_t bytes = content->time == STEPS_RESULT ? content->piece.bytes : 0, some;

        for (uint64_t from = 0; from < bytes; from += some) {
            some = bytes - from < COMPARED ? bytes - from : COMPARED;
            write_content(schedule, content, &sum, from, right, some);
            if (!compare(content, from, found + from, right, some, wrong))
                return false;
        }
    }
    return true;
}
