/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who acts next: a tournament over a fixed number of agents, each with the one time at which it
 * wants to act. Of equal times the lower number goes first. Setting a time takes log2(agents)
 * comparisons, looking at the first none.
 */
#ifndef MODEL_AGENDA_H
#define MODEL_AGENDA_H

#include <stdint.h>

#define AGENDA_MAX 256 /* a power of two */

struct agenda {
    unsigned leaves; /* a power of two */
    int64_t time_ns[AGENDA_MAX];
    uint16_t winner[2 * AGENDA_MAX]; /* [1]: of all; [leaves + n]: agent n itself */
};

static inline void agenda_open(struct agenda *agenda, unsigned agents)
{
    agenda->leaves = 2;
    while (agenda->leaves < agents)
        agenda->leaves *= 2;
    for (unsigned i = 0; i < agenda->leaves; i++) {
        agenda->time_ns[i] = INT64_MAX;
        agenda->winner[agenda->leaves + i] = (uint16_t)i;
    }
    for (unsigned i = agenda->leaves - 1; i > 0; i--)
        agenda->winner[i] = agenda->winner[2 * i];
}

static inline void agenda_set(struct agenda *agenda, unsigned agent, int64_t time_ns)
{
    const int64_t *times = agenda->time_ns;

    agenda->time_ns[agent] = time_ns;
    for (unsigned at = (agenda->leaves + agent) / 2; at > 0; at /= 2) {
        uint16_t left = agenda->winner[2 * at], right = agenda->winner[2 * at + 1];
        uint16_t first = times[right] < times[left] ? right : left;

        /* Above, everything stays as it is when an unmoved agent wins as before. */
        if (first == agenda->winner[at] && first != agent)
            return;
        agenda->winner[at] = first;
    }
}

static inline unsigned agenda_first(const struct agenda *agenda)
{
    return agenda->winner[1];
}

#endif
