/* SPDX-License-Identifier: BSD-3-Clause */
#include "reassembly_window.h"

#include <errno.h>
#include <stdlib.h>

#define WORD 64u
#define HALF_LEAST 4u
#define HALF_MOST 4096u

static uint64_t length_of(const struct ahead_cycle *cycle)
{
    return cycle->meetings + (uint64_t)cycle->count * cycle->batch;
}

/* A message is in the window from now on. */
static void enter(struct ahead *ahead, uint64_t number)
{
    struct ahead_message *message = ahead_message(ahead, number);
    uint64_t place = number % length_of(&ahead->cycle);
    bool meeting = place < ahead->cycle.meetings;
    uint32_t bytes =
        meeting ? 0 : ahead->cycle.bytes[(place - ahead->cycle.meetings) % ahead->cycle.count];
    uint32_t segments = message_segments(&ahead->cut, bytes);
    size_t at = number % (2 * (uint64_t)ahead->half) * ahead->words;

    *message = (struct ahead_message){.bytes = bytes, .missing = segments, .meeting = meeting};
    memset(ahead->seen + at, 0, (segments / WORD + 1) * sizeof *ahead->seen);
}

/* A source is ahead by a batch and a barrier at most, unless frames are lost. */
static uint32_t choose_half(const struct ahead *ahead, size_t most_bytes)
{
    uint64_t useful = 2 * length_of(&ahead->cycle);
    size_t each = 2 * (sizeof *ahead->messages + ahead->words * sizeof *ahead->seen);
    uint64_t half = most_bytes / each;

    half = half < useful ? half : useful;
    half = half < HALF_MOST ? half : HALF_MOST;
    return half > HALF_LEAST ? (uint32_t)half : HALF_LEAST;
}

int ahead_make(struct ahead *ahead, const struct ahead_cycle *cycle, const struct message_cut *cut,
               size_t most_bytes)
{
    uint32_t most = 0;

    *ahead = (struct ahead){.cycle = *cycle, .cut = *cut};
    for (uint32_t i = 0; i < cycle->count; i++)
        most = cycle->bytes[i] > most ? cycle->bytes[i] : most;
    ahead->words = message_segments(cut, most) / WORD + 1;
    ahead->half = choose_half(ahead, most_bytes);
    ahead->messages = calloc(2 * (size_t)ahead->half, sizeof *ahead->messages);
    ahead->seen = calloc(2 * (size_t)ahead->half * ahead->words, sizeof *ahead->seen);
    if (ahead->messages == NULL || ahead->seen == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < ahead->half && length_of(cycle) > 0; i++)
        enter(ahead, i);
    return 0;
}

void ahead_free(struct ahead *ahead)
{
    free(ahead->cycle.bytes);
    free(ahead->messages);
    free(ahead->seen);
    *ahead = (struct ahead){.base = 0};
}

enum ahead_place ahead_find(const struct ahead *ahead, uint32_t wire, uint64_t *number)
{
    int64_t distance = (int32_t)(wire - (uint32_t)ahead->base);

    if (distance >= (int64_t)ahead->half)
        return AHEAD_EARLY;
    if (distance < -(int64_t)ahead->half || (int64_t)ahead->base + distance < 0)
        return AHEAD_OLD;
    *number = (uint64_t)((int64_t)ahead->base + distance);
    return AHEAD_KEPT;
}

enum sequence_verdict ahead_take(struct ahead *ahead, uint64_t number, uint32_t segment)
{
    struct ahead_message *message = ahead_message(ahead, number);
    size_t at = number % (2 * (uint64_t)ahead->half) * ahead->words;
    uint64_t *word = &ahead->seen[at + segment / WORD];
    uint64_t bit = UINT64_C(1) << segment % WORD;

    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    if (number < ahead->base)
        return SEQUENCE_LATE;
    assert(message->missing > 0);
    message->missing--;
    if (segment < message->expected)
        return SEQUENCE_REORDERED;
    message->expected = segment + 1;
    return SEQUENCE_FRESH;
}

void ahead_close(struct ahead *ahead)
{
    assert(ahead_waits(ahead));
    ahead->base++;
    enter(ahead, ahead->base + ahead->half - 1);
}
