/* SPDX-License-Identifier: BSD-3-Clause */
#include "abort_broadcast.h"

#include <assert.h>

static_assert(2 * NEIGHBOURS_ROUNDS_MAX <= 64, "one bit a neighbour");

void abort_broadcast_init(struct abort_broadcast *abort_broadcast, struct neighbours *neighbours,
                          const struct datagram_outlet *outlet)
{
    *abort_broadcast = (struct abort_broadcast){.neighbours = neighbours, .outlet = *outlet};
    backoff_stop(&abort_broadcast->backoff);
}

static uint64_t bit_of(const struct abort_broadcast *abort_broadcast,
                       const struct neighbour *neighbour)
{
    return UINT64_C(1) << (neighbour - abort_broadcast->neighbours->all);
}

static void tell(struct abort_broadcast *abort_broadcast, const struct neighbour *neighbour)
{
    struct datagram datagram = {
        .type = DATAGRAM_ABORT,
        .recipient = neighbour->index,
        .epoch = abort_broadcast->fault.epoch,
        .abort = {.heard = abort_broadcast->heard & bit_of(abort_broadcast, neighbour),
                  .fault = abort_broadcast->fault},
    };

    abort_broadcast->outlet.send(abort_broadcast->outlet.context, &datagram);
}

static bool tell_all(struct abort_broadcast *abort_broadcast)
{
    bool told = false;

    for (uint32_t i = 0; i < abort_broadcast->neighbours->size; i++) {
        const struct neighbour *neighbour = &abort_broadcast->neighbours->all[i];

        if (abort_broadcast->heard & bit_of(abort_broadcast, neighbour))
            continue;
        tell(abort_broadcast, neighbour);
        told = true;
    }
    return told;
}

void abort_broadcast_start(struct abort_broadcast *abort_broadcast,
                           const struct control_fault *fault, int64_t now_ns)
{
    if (abort_broadcast->begun)
        return;
    abort_broadcast->begun = true;
    abort_broadcast->fault = *fault;
    backoff_start(&abort_broadcast->backoff, now_ns);
    tell_all(abort_broadcast);
}

bool abort_broadcast_receive(struct abort_broadcast *abort_broadcast,
                             const struct datagram *datagram, int64_t now_ns)
{
    struct neighbour *neighbour = neighbours_find(abort_broadcast->neighbours, datagram->sender);

    if (!neighbour || datagram->abort.fault.node >= abort_broadcast->neighbours->count)
        return false;
    abort_broadcast->heard |= bit_of(abort_broadcast, neighbour);
    abort_broadcast_start(abort_broadcast, &datagram->abort.fault, now_ns);
    if (!datagram->abort.heard)
        tell(abort_broadcast, neighbour);
    return true;
}

void abort_broadcast_tell(struct abort_broadcast *abort_broadcast, uint32_t index)
{
    const struct neighbour *neighbour = neighbours_find(abort_broadcast->neighbours, index);

    if (neighbour)
        tell(abort_broadcast, neighbour);
}

void abort_broadcast_tick(struct abort_broadcast *abort_broadcast, int64_t now_ns)
{
    if (!backoff_due(&abort_broadcast->backoff, now_ns))
        return;
    if (++abort_broadcast->tries == ABORT_BROADCAST_TRIES || !tell_all(abort_broadcast))
        backoff_stop(&abort_broadcast->backoff);
}

int64_t abort_broadcast_deadline(const struct abort_broadcast *abort_broadcast)
{
    return abort_broadcast->backoff.due_ns;
}
