/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Latency probes among frames: what tells them from the load, and how many there are.
 *
 * The destination sends them back (as the tagged frames of RFC 2544 26.2, but as a round trip, so
 * that one clock measures).
 */
#ifndef ENGINE_PROBE_FRAMES_H
#define ENGINE_PROBE_FRAMES_H

#include "transport.h"

#include <stdint.h>

#define PROBE_LOAD_SHARE 0.001 /**< of the line that all probes and answers of a port may take */
#define PROBE_FLOW_FPS 1000.0  /**< a flow's, at most */

/**
 * @brief Return the tag of a phase's probes.
 *
 * @param tag Tag of the phase's frames.
 * @return Tag.
 */
static inline uint16_t probe_tag(uint16_t tag)
{
    return tag ^ 0x5a3c;
}

/**
 * @brief Return the tag of answers to a phase's probes.
 *
 * @param tag Tag of the phase's frames.
 * @return Tag.
 */
static inline uint16_t probe_answer_tag(uint16_t tag)
{
    return tag ^ 0xa5c3;
}

/** @brief What a port sends in a phase. */
struct probe_budget {
    uint64_t line_rate_bps; /**< 0: not known, then `load` stands for it */
    struct load load;
    uint32_t frame_bytes; /**< mean, with FCS */
    uint32_t flows;       /**< that the port sends and receives: it answers those */
};

/**
 * @brief Return how many probes a flow sends in a second.
 *
 * @param budget What a port sends.
 * @return Probes per second.
 */
double probe_rate(const struct probe_budget *budget);

/**
 * @brief Return the share of each probe and answer that the load yields to it: probes are on top of
 * the load as far as the line has room for both.
 *
 * @param budget What a port sends.
 * @return 0 to 1.
 */
double probe_displaces(const struct probe_budget *budget, double rate_fps);

#endif
