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
    uint32_t filled;        /* flows of the mark that is being made */
    _Atomic uint32_t made;  /* marks; written by the worker */
    _Atomic uint32_t taken; /* of them; written by the main thread */
    struct interval_mark marks[INTERVAL_ROOM];
    uint64_t bytes[]; /* by mark, by flow */
};

struct interval_ring *interval_ring_make(uint32_t flows)
{
    struct interval_ring *ring =
        calloc(1, sizeof *ring + (size_t)flows * INTERVAL_ROOM * sizeof ring->bytes[0]);

    if (ring == NULL)
        return NULL;
    ring->flows = flows;
    for (size_t i = 0; i < INTERVAL_ROOM; i++)
        ring->marks[i].bytes = &ring->bytes[i * flows];
    return ring;
}

void interval_ring_free(struct interval_ring *ring)
{
    free(ring);
}

void interval_ring_begin(struct interval_ring *ring, const struct interval_grid *grid)
{
    ring->grid = *grid;
}

int64_t interval_ring_mark(struct interval_ring *ring, const struct lane_flow *flows,
                           int64_t now_ns, uint32_t most)
{
    const struct interval_grid *grid = &ring->grid;
    uint32_t made = atomic_load_explicit(&ring->made, memory_order_relaxed);
    uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    struct interval_mark *mark = &ring->marks[made % INTERVAL_ROOM];
    int64_t last = grid->close_ns == CLOCK_NEVER ? INT64_MAX
                                                 : (grid->close_ns - grid->open_ns) / grid->step_ns;
    int64_t number = (now_ns - grid->open_ns) / grid->step_ns;

    if (now_ns < grid->open_ns)
        return grid->open_ns;
    number = number < last ? number : last;
    if (made - taken < INTERVAL_ROOM) {
        if (ring->filled == 0) {
            mark->at_ns = now_ns;
            mark->number = (uint32_t)number;
        }
        number = mark->number;
        for (; ring->filled < ring->flows && most > 0; ring->filled++, most--)
            mark->bytes[ring->filled] = flows[ring->filled].side.live.payload_bytes;
        if (ring->filled < ring->flows)
            return now_ns;
        ring->filled = 0;
        atomic_store_explicit(&ring->made, made + 1, memory_order_release);
    }
    return number == last ? CLOCK_NEVER : grid->open_ns + (number + 1) * grid->step_ns;
}

uint32_t interval_ring_waiting(const struct interval_ring *ring)
{
    return atomic_load_explicit(&ring->made, memory_order_acquire) -
           atomic_load_explicit(&ring->taken, memory_order_relaxed);
}

struct interval_mark interval_ring_first(const struct interval_ring *ring)
{
    return ring->marks[atomic_load_explicit(&ring->taken, memory_order_relaxed) % INTERVAL_ROOM];
}

void interval_ring_drop(struct interval_ring *ring)
{
    atomic_fetch_add_explicit(&ring->taken, 1, memory_order_release);
}
