/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of one flow that fuzzing and unit tests build and judge.
 */
#ifndef TESTS_FUZZ_SHAPES_H
#define TESTS_FUZZ_SHAPES_H

#include "frame.h"
#include "fuzz.h"

#define KINDS 6u /* three header kinds, without and with a VLAN tag */

struct frame_shape fuzz_shape(unsigned kind);

/* The whole frame of a size, stamped. */
void fuzz_frame(uint8_t *frame, const struct frame_shape *shape, uint32_t size, uint32_t sequence,
                int64_t time_ns);

/* Whether a receiver of this shape takes the frame for a sound one. */
bool fuzz_sound(const struct frame_shape *shape, const uint8_t *frame, uint32_t length);

#endif
