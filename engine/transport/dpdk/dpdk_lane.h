/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Lane of one queue in one phase: a lane of frames (frame_lane.h) over DPDK.
 *
 * lane.c makes it and has the transport's table; hot.c is its hot path.
 */
#ifndef ENGINE_DPDK_LANE_H
#define ENGINE_DPDK_LANE_H

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "frame.h"
#include "frame_lane.h"
#include "port_state.h"

/**
 * First bytes of the last received frame that was fully verified. A frame of equal length with
 * equal first bytes belongs to the same stream, and only its signature and fill remain to be
 * verified.
 */
struct verified_start {
    uint32_t length; /**< in memory; 0: none yet */
    const struct frame_expect *expect;
    uint8_t start[FRAME_START_MAX];
};

/** Progress of the learning frames that announce a port's addresses, one frame per address. */
struct learning {
    struct pace pace;
    uint32_t next;
    int64_t until_ns; /**< 0: not begun */
};

struct dpdk_lane {
    struct frame_lane frame; /**< first member */
    struct transport_port *port;
    struct port_queue *queue;
    struct frame_shape shape;
    struct frame_check check;
    struct verified_start verified;
    struct frame_expect expect[TRANSPORT_SIZES_MAX]; /**< one per frame size */
    struct learning learning;
    bool announced;
    bool started;     /**< a worker polls it */
    int64_t asked_ns; /**< time of the last request for the gateway */
    int64_t connecting_ns;
};

static inline struct dpdk_lane *dpdk_lane_of(struct frame_lane *lane)
{
    return (struct dpdk_lane *)lane;
}

/* --- hot.c: hooks on and beside the hot path; independent of lane.c --------------------------- */

frame_send dpdk_choose_send(const struct frame_lane *lane, const char **name);
frame_receive dpdk_choose_receive(const struct frame_lane *lane);
bool dpdk_send_single(struct frame_lane *lane, uint32_t place, struct frame_template *head,
                      uint32_t length);
bool dpdk_is_sound(const struct frame_lane *lane, const struct frame_seen *seen);
/**
 * @brief Write the phase's frame (headers and fill) into all buffers of the queue's send pool; the
 * streams' templates must be complete.
 */
void dpdk_prefill(struct dpdk_lane *lane);

#define ADDRESSES_MAX (1 << 20)   /**< limit of addresses */
#define ADDRESSES_RANKS_MAX 4096u /**< limit of ranks with addresses */
#define ADDRESSES_PREFIX 0x0eu    /**< locally administered unicast address (IEEE 802) */

/**
 * @brief Write the destination address number `number` of a rank into the first six bytes of `to`;
 * number 0 keeps the port's real address.
 */
static inline void address_write(uint8_t *to, uint16_t rank, uint32_t number)
{
    uint64_t address = (uint64_t)ADDRESSES_PREFIX << 40 |
                       (uint64_t)(rank % ADDRESSES_RANKS_MAX) << 20 | number % ADDRESSES_MAX;

    if (number == 0)
        return;
    address = htobe64(address << 16);
    memcpy(to, &address, FRAME_MAC);
}

#endif
