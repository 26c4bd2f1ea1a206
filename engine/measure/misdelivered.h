/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Frames that came to a port and are for another rank, by whose they are: what a switch
 * flooded or sent out by the wrong port.
 *
 * A fixed table, because how many flows stray is the switch's choice; those that find no room are
 * counted together.
 *
 * Kept by one worker, and read by the main thread after the phase, as all counts are (metrics.h).
 */
#ifndef ENGINE_MISDELIVERED_H
#define ENGINE_MISDELIVERED_H

#include <stdint.h>

#define MISDELIVERED_SLOTS 256u /**< flows that are told apart: 4 KB a queue; a power of two */

struct misdelivered_flow {
    uint64_t frames; /**< 0: a free slot */
    uint16_t src;    /**< ranks, of the frames' signatures */
    uint16_t dst;
};

struct misdelivered_flows {
    struct misdelivered_flow flows[MISDELIVERED_SLOTS]; /**< open addressing */
    uint64_t others;                                    /**< frames of flows without a slot */
};

/**
 * @brief Count frames of a flow; without a free slot they are counted together.
 *
 * @param misdelivered Table of misdelivered flows.
 * @param part What is added.
 */
static inline void misdelivered_add(struct misdelivered_flows *misdelivered,
                                    const struct misdelivered_flow *part)
{
    uint32_t first = part->src * 31u + part->dst;

    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++) {
        struct misdelivered_flow *slot = &misdelivered->flows[(first + i) % MISDELIVERED_SLOTS];

        if (slot->frames == 0) {
            *slot = *part;
            return;
        }
        if (slot->src == part->src && slot->dst == part->dst) {
            slot->frames += part->frames;
            return;
        }
    }
    misdelivered->others += part->frames;
}

/**
 * @brief Add the table of another queue.
 *
 * @param sum Table that is added to.
 * @param part What is added.
 */
static inline void misdelivered_merge(struct misdelivered_flows *sum,
                                      const struct misdelivered_flows *part)
{
    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++)
        if (part->flows[i].frames > 0)
            misdelivered_add(sum, &part->flows[i]);
    sum->others += part->others;
}

#endif
