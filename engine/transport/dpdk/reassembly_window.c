/* SPDX-License-Identifier: BSD-3-Clause */
#include "reassembly_window.h"

#include <errno.h>
#include <stdlib.h>

#define WORD 64u
#define HALF_LEAST 4u
#define HALF_MOST 4096u

static uint64_t length_of(const struct reassembly_cycle *cycle)
{
    return cycle->meetings + (uint64_t)cycle->count * cycle->batch;
}

/* A message is in the window from now on. */
static void enter(struct reassembly_window *window, uint64_t number)
{
    struct reassembly_message *message = reassembly_window_message(window, number);
    uint64_t place = number % length_of(&window->cycle);
    bool meeting = place < window->cycle.meetings;
    uint32_t bytes =
        meeting ? 0 : window->cycle.bytes[(place - window->cycle.meetings) % window->cycle.count];
    uint32_t segments = message_segments(&window->cut, bytes);
    size_t at = number % (2 * (uint64_t)window->half) * window->words;

    *message = (struct reassembly_message){.bytes = bytes, .missing = segments, .meeting = meeting};
    memset(window->seen + at, 0, (segments / WORD + 1) * sizeof *window->seen);
}

/* A source is ahead by a batch and a barrier at most, unless frames are lost. */
static uint32_t choose_half(const struct reassembly_window *window, size_t most_bytes)
{
    uint64_t useful = 2 * length_of(&window->cycle);
    size_t each = 2 * (sizeof *window->messages + window->words * sizeof *window->seen);
    uint64_t half = most_bytes / each;

    half = half < useful ? half : useful;
    half = half < HALF_MOST ? half : HALF_MOST;
    return half > HALF_LEAST ? (uint32_t)half : HALF_LEAST;
}

int reassembly_window_make(struct reassembly_window *window, const struct reassembly_cycle *cycle,
                           const struct message_cut *cut, size_t most_bytes)
{
    uint32_t most = 0;

    *window = (struct reassembly_window){.cycle = *cycle, .cut = *cut};
    for (uint32_t i = 0; i < cycle->count; i++)
        most = cycle->bytes[i] > most ? cycle->bytes[i] : most;
    window->words = message_segments(cut, most) / WORD + 1;
    window->half = choose_half(window, most_bytes);
    window->messages = calloc(2 * (size_t)window->half, sizeof *window->messages);
    window->seen = calloc(2 * (size_t)window->half * window->words, sizeof *window->seen);
    if (window->messages == NULL || window->seen == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < window->half && length_of(cycle) > 0; i++)
        enter(window, i);
    return 0;
}

void reassembly_window_free(struct reassembly_window *window)
{
    free(window->cycle.bytes);
    free(window->messages);
    free(window->seen);
    *window = (struct reassembly_window){.base = 0};
}

enum reassembly_place reassembly_window_find(const struct reassembly_window *window, uint32_t wire,
                                             uint64_t *number)
{
    int64_t distance = (int32_t)(wire - (uint32_t)window->base);

    if (distance >= (int64_t)window->half)
        return WINDOW_EARLY;
    if (distance < -(int64_t)window->half || (int64_t)window->base + distance < 0)
        return WINDOW_OLD;
    *number = (uint64_t)((int64_t)window->base + distance);
    return WINDOW_KEPT;
}

enum sequence_verdict reassembly_window_take(struct reassembly_window *window, uint64_t number,
                                             uint32_t segment)
{
    struct reassembly_message *message = reassembly_window_message(window, number);
    size_t at = number % (2 * (uint64_t)window->half) * window->words;
    uint64_t *word = &window->seen[at + segment / WORD];
    uint64_t bit = UINT64_C(1) << segment % WORD;

    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    if (number < window->base)
        return SEQUENCE_LATE;
    assert(message->missing > 0);
    message->missing--;
    if (segment < message->expected)
        return SEQUENCE_REORDERED;
    message->expected = segment + 1;
    return SEQUENCE_FRESH;
}

void reassembly_window_close(struct reassembly_window *window)
{
    assert(reassembly_window_waits(window));
    window->base++;
    enter(window, window->base + window->half - 1);
}
