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
    uint32_t filled;        /* flows of the mark that is being made ... */
    bool filling;           /* ... if one is */
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
    ring->filled = 0;
    ring->filling = false;
    atomic_store(&ring->made, 0);
    atomic_store(&ring->taken, 0);
}

/* The next flows of the mark that is being made; true: it has all. */
static bool fill(struct interval_ring *ring, const struct lane_flow *flows, uint32_t most)
{
    uint32_t made = atomic_load_explicit(&ring->made, memory_order_relaxed);
    uint64_t *bytes = &ring->bytes[(size_t)(made % INTERVAL_ROOM) * ring->flows];
    uint32_t left = ring->flows - ring->filled;
    uint32_t end = ring->filled + (left < most ? left : most);

    for (; ring->filled < end; ring->filled++)
        bytes[ring->filled] = flows[ring->filled].side->live.payload_bytes;
    if (ring->filled < ring->flows)
        return false;
    ring->filled = 0;
    ring->filling = false;
    atomic_store_explicit(&ring->made, made + 1, memory_order_release);
    return true;
}

int64_t interval_ring_mark(struct interval_ring *ring, const struct lane_flow *flows,
                           int64_t now_ns, uint32_t most)
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
    if (!ring->filling && made - taken < INTERVAL_ROOM) {
        ring->at_ns[made % INTERVAL_ROOM] = now_ns;
        ring->number[made % INTERVAL_ROOM] = (uint32_t)number;
        ring->filling = true;
    }
    if (ring->filling) {
        number = ring->number[made % INTERVAL_ROOM];
        if (!fill(ring, flows, most))
            return now_ns;
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
