/* SPDX-License-Identifier: BSD-3-Clause */
#include "disorder.h"

#include <string.h>

/* --- RFC 5236 --- */

static uint64_t waiting(const struct density *density, uint32_t place)
{
    return density->window[(density->first + place) % DENSITY_WINDOW];
}

static bool came(const struct density *density)
{
    bool found = (density->early & 1) != 0;

    for (uint32_t i = 0; i < density->count && !found; i++)
        found = waiting(density, i) == density->index;
    return found;
}

/* The least number in window and buffer. */
static uint64_t least(const struct density *density)
{
    uint64_t number = waiting(density, 0);

    for (uint32_t i = 1; i < density->count; i++)
        number = waiting(density, i) < number ? waiting(density, i) : number;
    if (density->early != 0) {
        uint64_t early = density->index + (uint64_t)__builtin_ctzll(density->early);

        number = early < number ? early : number;
    }
    return number;
}

static void advance(struct density *density, uint64_t by)
{
    density->index += by;
    density->early = by < 64 ? density->early >> by : 0;
}

/* Gives the first that waits its displacement. Indices of frames that did not come are passed. */
static void settle_first(struct density *density)
{
    int64_t displacement;

    while (!came(density)) {
        uint64_t next = least(density);

        advance(density, next > density->index ? next - density->index : 1);
    }
    displacement = (int64_t)(density->index - waiting(density, 0));
    density->first = (density->first + 1) % DENSITY_WINDOW;
    density->count--;
    if (displacement < -(int64_t)DISORDER_REACH || displacement > (int64_t)DISORDER_REACH)
        return; /* as if it had been lost */
    density->displaced[displacement + (int64_t)DISORDER_REACH]++;
    if (displacement < 0)
        density->early |= UINT64_C(1) << -displacement;
    advance(density, 1);
}

/* A number that was passed counts as lost, and is not heard when it comes after all. So there are
 * never fewer indices to give than arrivals that wait. */
static void feed(struct density *density, uint64_t number)
{
    if (density->count == DENSITY_WINDOW)
        settle_first(density);
    if (number < density->index)
        return;
    density->window[(density->first + density->count++) % DENSITY_WINDOW] = number;
}

static void drain(struct density *density)
{
    while (density->count > 0)
        settle_first(density);
}

static bool seen(const struct sequence *stream, const struct sequence_past *past, uint64_t number)
{
    uint64_t word = number / 64 == (stream->next - 1) / 64
                        ? stream->recent
                        : past->seen[number / 64 % SEQUENCE_WORDS];

    return (word >> number % 64 & 1) != 0;
}

/* Feeds what came between the last reordered frame and this one: all other numbers from `fed_next`
 * on that were seen, in their order. Of many only the last are: those before them were in order
 * among themselves and far from any other, so each had a displacement of 0. */
static void catch_up(struct disorder *disorder, const struct sequence *stream,
                     const struct sequence_past *past, const struct disorder_frame *frame)
{
    struct density *density = &disorder->density;
    uint64_t arrivals = frame->arrival - 1 - disorder->fed;
    uint64_t oldest = stream->next > SEQUENCE_WINDOW ? stream->next - SEQUENCE_WINDOW : 0;
    uint64_t number = stream->next, found = 0;

    oldest = oldest > disorder->fed_next ? oldest : disorder->fed_next;
    while (number > oldest && found < DENSITY_WINDOW)
        found += --number != frame->number && seen(stream, past, number);
    if (found < arrivals) { /* more than the window holds, or than is remembered */
        drain(density);
        density->displaced[DISORDER_REACH] += arrivals - found;
        density->index = number;
        density->early = 0;
    }
    for (; number < stream->next; number++)
        if (number != frame->number && seen(stream, past, number))
            feed(density, number);
}

void disorder_density(const struct disorder *disorder, uint64_t arrivals,
                      struct flow_disorder *count)
{
    struct density density = disorder->density;

    drain(&density);
    density.displaced[DISORDER_REACH] += arrivals - disorder->fed;
    for (unsigned i = 0; i < DISORDER_REACH * 2 + 1; i++)
        count->displaced[i] += density.displaced[i];
}

/* --- RFC 4737 --- */

void disorder_gap(struct disorder *disorder, const struct sequence *stream, uint64_t from,
                  uint64_t arrival)
{
    uint64_t end = stream->next - 1;

    if (end - from > SEQUENCE_WINDOW)
        from = end - SEQUENCE_WINDOW; /* those before it would be late */
    for (uint64_t number = from; number < end; number++)
        disorder->overtaken[number % SEQUENCE_WINDOW] = (uint32_t)arrival;
}

/* How many arrivals directly before the frame have a greater number: all since it was overtaken,
 * but for reordered ones with a smaller number. Exact up to DISORDER_NEAR. */
static uint64_t count_nearest(const struct disorder *disorder, const struct disorder_frame *frame,
                              uint64_t extent)
{
    uint64_t nearest = extent;

    for (unsigned i = 0; i < DISORDER_NEAR; i++) {
        uint64_t arrival = disorder->recent[i].arrival;

        if (arrival != 0 && disorder->recent[i].number < frame->number &&
            frame->arrival - 1 - arrival < nearest)
            nearest = frame->arrival - 1 - arrival;
    }
    return nearest;
}

void disorder_add(struct disorder *disorder, const struct sequence *stream,
                  const struct sequence_past *past, const struct disorder_frame *frame,
                  struct flow_disorder *count)
{
    uint64_t extent =
        (uint32_t)frame->arrival - disorder->overtaken[frame->number % SEQUENCE_WINDOW];

    extent = (uint32_t)extent; /* arrivals may have wrapped in 32 bits */
    count->extent_sum += extent;
    count->extent_most = extent > count->extent_most ? extent : count->extent_most;
    count->near += count_nearest(disorder, frame, extent) >= DISORDER_NEAR;
    disorder->recent[disorder->recent_at].number = frame->number;
    disorder->recent[disorder->recent_at].arrival = frame->arrival;
    disorder->recent_at = (disorder->recent_at + 1) % DISORDER_NEAR;
    catch_up(disorder, stream, past, frame);
    feed(&disorder->density, frame->number);
    disorder->fed = frame->arrival;
    disorder->fed_next = stream->next;
}
