/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The fill: what lies behind the signature in every frame and datagram.
 *
 * It is the same pseudo-random bytes in each (a prefix of one table), so a receiver compares
 * instead of summing.
 */
#ifndef ENGINE_FILL_H
#define ENGINE_FILL_H

#include <stdint.h>

#define FILL_BYTES 9216u /**< as long as the longest frame */

/**
 * @brief The bytes, and the one's complement sum of the first n of them at [n].
 *
 * Made once.
 */
struct fill {
    uint8_t bytes[FILL_BYTES];
    uint16_t sum[FILL_BYTES + 1];
};
/**
 * @brief Return the bytes that frames are filled with.
 *
 * @return Table; static.
 */
const struct fill *fill_table(void);

/**
 * @brief The first bytes of a frame: headers (66 at most), signature, and fill up to a round number
 * that is copied without a loop.
 *
 * Copying over a shorter frame writes fill behind its end: harmless.
 */
#define FRAME_TEMPLATE 96u
struct frame_template {
    uint8_t bytes[FRAME_TEMPLATE];
} __attribute__((aligned(32)));

#endif
