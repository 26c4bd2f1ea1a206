/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief How many frames of a burst a port sends, and of these the flows of one lane.
 */
#ifndef ENGINE_BURST_H
#define ENGINE_BURST_H

#include "transport.h"

/**
 * @brief Return, of `frames` of a port that has the whole load, those of one that has `part` of it
 * (0 to 1), so that both end together: rounded, at least 1.
 *
 * @param frames Frames of a port that has the whole load.
 * @param part Part of the load, 0 to 1.
 * @return Frames.
 */
uint64_t burst_of_port(uint64_t frames, double part);

/**
 * @brief Return, of the port's frames (`burst.own_frames`), those of the lane's flows: by their
 * shares, or evenly where they have none.
 *
 * Over all lanes of the port they come to exactly the port's.
 *
 * @param request Lane that is asked for.
 * @return Frames.
 */
uint64_t burst_of_lane(const struct lane_request *request);

#endif
