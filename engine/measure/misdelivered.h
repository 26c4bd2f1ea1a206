/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that came to a port and are for another rank, by whose they are: what a switch flooded or
 * sent out by the wrong port. A fixed table, because how many flows stray is the switch's choice;
 * those that find no room are counted together.
 *
 * Kept by one worker, and read by the main thread after the phase, as all counts are (metrics.h).
 */
#ifndef ENGINE_MISDELIVERED_H
#define ENGINE_MISDELIVERED_H

#include <stdint.h>

#define STRAYS_SLOTS 256u /* flows that are told apart: 4 KB a queue; a power of two */

struct stray_flow {
    uint64_t frames; /* 0: a free slot */
    uint16_t src;    /* ranks, of the frames' signatures */
    uint16_t dst;
};

struct strays {
    struct stray_flow flows[STRAYS_SLOTS]; /* open addressing */
    uint64_t others;                       /* frames of flows without a slot */
};

static inline void strays_add(struct strays *strays, const struct stray_flow *part)
{
    uint32_t first = part->src * 31u + part->dst;

    for (uint32_t i = 0; i < STRAYS_SLOTS; i++) {
        struct stray_flow *slot = &strays->flows[(first + i) % STRAYS_SLOTS];

        if (slot->frames == 0) {
            *slot = *part;
            return;
        }
        if (slot->src == part->src && slot->dst == part->dst) {
            slot->frames += part->frames;
            return;
        }
    }
    strays->others += part->frames;
}

static inline void strays_merge(struct strays *sum, const struct strays *part)
{
    for (uint32_t i = 0; i < STRAYS_SLOTS; i++)
        if (part->flows[i].frames > 0)
            strays_add(sum, &part->flows[i]);
    sum->others += part->others;
}

#endif
