/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief When to look again for what nothing tells: half as long after something came, twice as
 * long after nothing did.
 *
 * Who waits for one message's answer then loses little, and sleeps where none comes.
 */
#ifndef ENGINE_ADAPTIVE_POLL_H
#define ENGINE_ADAPTIVE_POLL_H

#include "clock.h"

#include <stdbool.h>
#include <stdint.h>

#define LOOK_LEAST_NS (20 * NS_PER_US)
#define LOOK_MOST_NS (500 * NS_PER_US)

/**
 * @brief Work out when to look next: soon where something moved, later where nothing does.
 *
 * @param gap_ns Time between two looks, ns; kept between calls, may begin as 0.
 * @param moved Something has moved since the last look.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Time, ns.
 */
static inline int64_t adaptive_poll(int64_t *gap_ns, bool moved, int64_t now_ns)
{
    *gap_ns = moved ? *gap_ns / 2 : *gap_ns * 2;
    if (*gap_ns < LOOK_LEAST_NS)
        *gap_ns = LOOK_LEAST_NS;
    if (*gap_ns > LOOK_MOST_NS)
        *gap_ns = LOOK_MOST_NS;
    return now_ns + *gap_ns;
}

#endif
