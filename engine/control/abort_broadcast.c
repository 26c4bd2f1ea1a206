/* SPDX-License-Identifier: BSD-3-Clause */
#include "abort_broadcast.h"

#include <assert.h>

static_assert(2 * NEIGHBOURS_ROUNDS_MAX <= 64, "one bit a neighbour");

void flood_init(struct flood *flood, struct neighbours *neighbours,
                const struct datagram_outlet *outlet)
{
    *flood = (struct flood){.neighbours = neighbours, .outlet = *outlet};
    backoff_stop(&flood->backoff);
}

static uint64_t bit_of(const struct flood *flood, const struct neighbour *neighbour)
{
    return UINT64_C(1) << (neighbour - flood->neighbours->all);
}

static void tell(struct flood *flood, const struct neighbour *neighbour)
{
    struct datagram datagram = {
        .type = DATAGRAM_ABORT,
        .recipient = neighbour->index,
        .epoch = flood->fault.epoch,
        .abort = {.heard = flood->heard & bit_of(flood, neighbour), .fault = flood->fault},
    };

    flood->outlet.send(flood->outlet.context, &datagram);
}

static bool tell_all(struct flood *flood)
{
    bool told = false;

    for (uint32_t i = 0; i < flood->neighbours->size; i++) {
        const struct neighbour *neighbour = &flood->neighbours->all[i];

        if (flood->heard & bit_of(flood, neighbour))
            continue;
        tell(flood, neighbour);
        told = true;
    }
    return told;
}

void flood_start(struct flood *flood, const struct control_fault *fault, int64_t now_ns)
{
    if (flood->begun)
        return;
    flood->begun = true;
    flood->fault = *fault;
    backoff_start(&flood->backoff, now_ns);
    tell_all(flood);
}

bool flood_receive(struct flood *flood, const struct datagram *datagram, int64_t now_ns)
{
    struct neighbour *neighbour = neighbours_find(flood->neighbours, datagram->sender);

    if (!neighbour || datagram->abort.fault.node >= flood->neighbours->count)
        return false;
    flood->heard |= bit_of(flood, neighbour);
    flood_start(flood, &datagram->abort.fault, now_ns);
    if (!datagram->abort.heard)
        tell(flood, neighbour);
    return true;
}

void flood_tell(struct flood *flood, uint32_t index)
{
    const struct neighbour *neighbour = neighbours_find(flood->neighbours, index);

    if (neighbour)
        tell(flood, neighbour);
}

void flood_tick(struct flood *flood, int64_t now_ns)
{
    if (!backoff_due(&flood->backoff, now_ns))
        return;
    if (++flood->tries == FLOOD_TRIES || !tell_all(flood))
        backoff_stop(&flood->backoff);
}

int64_t flood_deadline(const struct flood *flood)
{
    return flood->backoff.due_ns;
}
