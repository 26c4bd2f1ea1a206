/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Event queue of a fixed number of agents, each with one time at which it acts, as a tournament
 * tree. Of agents with equal times, the one with the lower number is first. Setting a time takes
 * log2(agents) comparisons, reading the first agent none.
 */
#ifndef MODEL_EVENT_QUEUE_H
#define MODEL_EVENT_QUEUE_H

#include <stdint.h>

#define EVENT_QUEUE_MAX 256 /* a power of two */

struct event_queue {
    unsigned leaves; /* a power of two */
    int64_t time_ns[EVENT_QUEUE_MAX];
    uint16_t winner[2 * EVENT_QUEUE_MAX]; /* [1]: the first of all; [leaves + n]: agent n itself */
};

static inline void event_queue_open(struct event_queue *event_queue, unsigned agents)
{
    event_queue->leaves = 2;
    while (event_queue->leaves < agents)
        event_queue->leaves *= 2;
    for (unsigned i = 0; i < event_queue->leaves; i++) {
        event_queue->time_ns[i] = INT64_MAX;
        event_queue->winner[event_queue->leaves + i] = (uint16_t)i;
    }
    for (unsigned i = event_queue->leaves - 1; i > 0; i--)
        event_queue->winner[i] = event_queue->winner[2 * i];
}

static inline void event_queue_set(struct event_queue *event_queue, unsigned agent, int64_t time_ns)
{
    const int64_t *times = event_queue->time_ns;

    event_queue->time_ns[agent] = time_ns;
    for (unsigned at = (event_queue->leaves + agent) / 2; at > 0; at /= 2) {
        uint16_t left = event_queue->winner[2 * at], right = event_queue->winner[2 * at + 1];
        uint16_t first = times[right] < times[left] ? right : left;

        /* Above this node nothing changes when another agent wins as before. */
        if (first == event_queue->winner[at] && first != agent)
            return;
        event_queue->winner[at] = first;
    }
}

static inline unsigned event_queue_first(const struct event_queue *event_queue)
{
    return event_queue->winner[1];
}

#endif
