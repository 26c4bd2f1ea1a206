/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring with one writer and one reader.
 */
#include "interval_ring.h"

#include <stdatomic.h>
#include <stdlib.h>

struct interval_ring {
    struct interval_grid grid;
    uint32_t flows;
    _Atomic uint32_t made;  /* marks; written by the worker */
    _Atomic uint32_t taken; /* of them; written by the main thread */
    int64_t at_ns[INTERVAL_ROOM];
    uint32_t number[INTERVAL_ROOM];
    uint64_t bytes[]; /* by place in the ring, by flow */
};

struct interval_ring *interval_ring_make(uint32_t flows)
{
    struct interval_ring *ring;

    ring = calloc(1, sizeof *ring + (size_t)flows * INTERVAL_ROOM * sizeof ring->bytes[0]);
    if (ring != NULL)
        ring->flows = flows;
    return ring;
}

void interval_ring_free(struct interval_ring *ring)
{
    free(ring);
}

void interval_ring_begin(struct interval_ring *ring, const struct interval_grid *grid)
{
    ring->grid = *grid;
    atomic_store(&ring->made, 0);
    atomic_store(&ring->taken, 0);
}

static void fill(struct interval_ring *ring, uint32_t place, const struct lane_flow *flows)
{
    uint64_t *bytes = &ring->bytes[(size_t)place * ring->flows];

    for (uint32_t i = 0; i < ring->flows; i++)
        bytes[i] = flows[i].side->live.payload_bytes;
}

int64_t interval_ring_mark(struct interval_ring *ring, const struct lane_flow *flows,
                           int64_t now_ns)
{
    const struct interval_grid *grid = &ring->grid;
    uint32_t made = atomic_load_explicit(&ring->made, memory_order_relaxed);
    uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    int64_t number, last, next_ns;

    if (now_ns < grid->open_ns)
        return grid->open_ns;
    last = grid->close_ns == CLOCK_NEVER ? INT64_MAX
                                         : (grid->close_ns - grid->open_ns) / grid->step_ns;
    number = (now_ns - grid->open_ns) / grid->step_ns;
    number = number < last ? number : last;
    if (made - taken < INTERVAL_ROOM) {
        uint32_t place = made % INTERVAL_ROOM;

        ring->at_ns[place] = now_ns;
        ring->number[place] = (uint32_t)number;
        fill(ring, place, flows);
        atomic_store_explicit(&ring->made, made + 1, memory_order_release);
    }
    next_ns = grid->open_ns + (number + 1) * grid->step_ns;
    return number == last ? CLOCK_NEVER : next_ns;
}

uint32_t interval_ring_waiting(const struct interval_ring *ring)
{
    return atomic_load_explicit(&ring->made, memory_order_acquire) -
           atomic_load_explicit(&ring->taken, memory_order_relaxed);
}

struct interval_mark interval_ring_first(const struct interval_ring *ring)
{
    uint32_t place = atomic_load_explicit(&ring->taken, memory_order_relaxed) % INTERVAL_ROOM;

    return (struct interval_mark){
        .at_ns = ring->at_ns[place],
        .number = ring->number[place],
        .bytes = &ring->bytes[(size_t)place * ring->flows],
    };
}

void interval_ring_drop(struct interval_ring *ring)
{
    atomic_fetch_add_explicit(&ring->taken, 1, memory_order_release);
}
