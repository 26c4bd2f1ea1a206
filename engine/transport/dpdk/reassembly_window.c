/* SPDX-License-Identifier: BSD-3-Clause */
#include "reassembly_window.h"

#include <errno.h>
#include <stdlib.h>

#define HALF_LEAST 4u
#define HALF_MOST 4096u

static uint64_t length_of(const struct reassembly_cycle *cycle)
{
    return cycle->barrier_rounds + (uint64_t)cycle->count * cycle->batch;
}

static uint64_t *seen_of(const struct reassembly_window *window, uint64_t number)
{
    return window->seen + number % (2 * (uint64_t)window->half) * window->words;
}

/* A message is in the window from now on. */
static void enter(struct reassembly_window *window, uint64_t number)
{
    const struct reassembly_cycle *cycle = &window->cycle;
    struct reassembly_message *message = reassembly_window_message(window, number);
    uint64_t place = number % length_of(cycle);
    bool in_barrier = place < cycle->barrier_rounds;

    *message = (struct reassembly_message){
        .bytes = in_barrier ? 0 : cycle->bytes[(place - cycle->barrier_rounds) % cycle->count],
        .in_barrier = in_barrier,
    };
    segment_set_begin(&message->set, seen_of(window, number),
                      message_segments(&window->segmentation, message->bytes));
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
                           const struct segmentation *segmentation, size_t most_bytes)
{
    uint32_t most = 0;

    *window = (struct reassembly_window){.cycle = *cycle, .segmentation = *segmentation};
    for (uint32_t i = 0; i < cycle->count; i++)
        most = cycle->bytes[i] > most ? cycle->bytes[i] : most;
    window->words = segment_words(message_segments(segmentation, most));
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
    enum sequence_verdict verdict =
        segment_set_take(&message->set, seen_of(window, number), segment);

    return number < window->base && verdict != SEQUENCE_DUPLICATE ? SEQUENCE_LATE : verdict;
}

void reassembly_window_close(struct reassembly_window *window)
{
    assert(reassembly_window_waits(window));
    window->base++;
    enter(window, window->base + window->half - 1);
}
