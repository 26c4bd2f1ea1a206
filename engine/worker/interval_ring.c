/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring with one writer and one reader.
 */
#include "interval_ring.h"

#include <stdatomic.h>
#include <stdlib.h>

struct interim {
    struct interim_grid grid;
    uint32_t flows;
    _Atomic uint32_t made;  /* marks; written by the worker */
    _Atomic uint32_t taken; /* of them; written by the main thread */
    int64_t at_ns[INTERIM_ROOM];
    uint32_t number[INTERIM_ROOM];
    uint64_t bytes[]; /* by place in the ring, by flow */
};

struct interim *interim_make(uint32_t flows)
{
    struct interim *interim;

    interim = calloc(1, sizeof *interim + (size_t)flows * INTERIM_ROOM * sizeof interim->bytes[0]);
    if (interim != NULL)
        interim->flows = flows;
    return interim;
}

void interim_free(struct interim *interim)
{
    free(interim);
}

void interim_begin(struct interim *interim, const struct interim_grid *grid)
{
    interim->grid = *grid;
    atomic_store(&interim->made, 0);
    atomic_store(&interim->taken, 0);
}

static void fill(struct interim *interim, uint32_t place, const struct lane_flow *flows)
{
    uint64_t *bytes = &interim->bytes[(size_t)place * interim->flows];

    for (uint32_t i = 0; i < interim->flows; i++)
        bytes[i] = flows[i].side->live.payload_bytes;
}

int64_t interim_mark(struct interim *interim, const struct lane_flow *flows, int64_t now_ns)
{
    const struct interim_grid *grid = &interim->grid;
    uint32_t made = atomic_load_explicit(&interim->made, memory_order_relaxed);
    uint32_t taken = atomic_load_explicit(&interim->taken, memory_order_acquire);
    int64_t number, last, next_ns;

    if (now_ns < grid->open_ns)
        return grid->open_ns;
    last = grid->close_ns == CLOCK_NEVER ? INT64_MAX
                                         : (grid->close_ns - grid->open_ns) / grid->step_ns;
    number = (now_ns - grid->open_ns) / grid->step_ns;
    number = number < last ? number : last;
    if (made - taken < INTERIM_ROOM) {
        uint32_t place = made % INTERIM_ROOM;

        interim->at_ns[place] = now_ns;
        interim->number[place] = (uint32_t)number;
        fill(interim, place, flows);
        atomic_store_explicit(&interim->made, made + 1, memory_order_release);
    }
    next_ns = grid->open_ns + (number + 1) * grid->step_ns;
    return number == last ? CLOCK_NEVER : next_ns;
}

uint32_t interim_waiting(const struct interim *interim)
{
    return atomic_load_explicit(&interim->made, memory_order_acquire) -
           atomic_load_explicit(&interim->taken, memory_order_relaxed);
}

struct interim_mark interim_first(const struct interim *interim)
{
    uint32_t place = atomic_load_explicit(&interim->taken, memory_order_relaxed) % INTERIM_ROOM;

    return (struct interim_mark){
        .at_ns = interim->at_ns[place],
        .number = interim->number[place],
        .bytes = &interim->bytes[(size_t)place * interim->flows],
    };
}

void interim_drop(struct interim *interim)
{
    atomic_fetch_add_explicit(&interim->taken, 1, memory_order_release);
}
