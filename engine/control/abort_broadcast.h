/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How all nodes learn of a fault: whoever learns of it first tells its neighbours, and so does
 * each of them. No I/O. The neighbours (2^k ahead and behind) reach every node within ceil(log2 p)
 * hops, over so many ways that single dead nodes and losses don't matter. A neighbour is told
 * again, with back-off, until it tells us the same (everybody who knows tells all its neighbours,
 * so that is its acknowledgement), ABORT_BROADCAST_TRIES times at most: the dead one never answers.
 *
 * Why it ends: a node resends ABORT_BROADCAST_TRIES times at most, and answers only a datagram that
 * does not say `heard`; an answer says it, and is not answered.
 */
#ifndef ENGINE_ABORT_BROADCAST_H
#define ENGINE_ABORT_BROADCAST_H

#include "backoff.h"
#include "datagram.h"
#include "neighbours.h"

#define ABORT_BROADCAST_TRIES 28

struct abort_broadcast {
    struct neighbours *neighbours;
    struct datagram_outlet outlet;
    bool begun;
    struct control_fault fault; /* the first that we learned of */
    uint64_t heard;             /* bit i: neighbour i has it */
    uint32_t tries;
    struct backoff backoff;
};

void abort_broadcast_init(struct abort_broadcast *abort_broadcast, struct neighbours *neighbours,
                          const struct datagram_outlet *outlet);
/* Begins to tell everybody; a later fault changes nothing. */
void abort_broadcast_start(struct abort_broadcast *abort_broadcast,
                           const struct control_fault *fault, int64_t now_ns);
/* ABORT or WARNING. False: not from a neighbour. */
bool abort_broadcast_receive(struct abort_broadcast *abort_broadcast,
                             const struct datagram *datagram, int64_t now_ns);
/* Tells one neighbour that shows that it does not know. */
void abort_broadcast_tell(struct abort_broadcast *abort_broadcast, uint32_t index);
void abort_broadcast_tick(struct abort_broadcast *abort_broadcast, int64_t now_ns);
int64_t abort_broadcast_deadline(const struct abort_broadcast *abort_broadcast);

#endif
