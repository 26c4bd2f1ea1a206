/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Whose frame is next, where a port's flows have unequal shares of its frames: a table that
 * is gone through again and again.
 *
 * Each flow has as many places in it as its share says, as far apart as they can be.
 */
#ifndef ENGINE_TURNS_H
#define ENGINE_TURNS_H

#include "transport.h"

#define TURNS_MAX 65536u /**< of one table: a share is met to half of one of so many */

struct turns {
    uint32_t *flow; /**< by turn; NULL: all flows have one turn each, in their order */
    uint32_t count; /**< turns */
};

/**
 * @brief Of flows with a `share`; of flows without, there is no table.
 *
 * 0, or -ENOMEM.
 */
int turns_make(struct turns *turns, const struct lane_flow *flows, uint32_t count);
/**
 * @brief Return the frames of its port's burst that a lane sends; over all lanes of the port they
 * come to exactly the port's.
 *
 * @param request Lane.
 * @return Frames.
 */
uint64_t turns_burst(const struct lane_request *request);
/** @brief Free what turns hold. */
void turns_free(struct turns *turns);

#endif
