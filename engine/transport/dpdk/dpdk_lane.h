/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A queue's share of one phase: a lane of frames (frame_lane.h) over DPDK.
 *
 * lane.c makes it and is the transport's table; hot.c is its hot path.
 */
#ifndef ENGINE_DPDK_LANE_H
#define ENGINE_DPDK_LANE_H

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "frame.h"
#include "frame_lane.h"
#include "port_state.h"

/** Where one stream is received: how the last frame began that was verified in full. One of the
 * same length that begins so, too, is of that stream, and only signature and fill are left to
 * verify. */
struct verified_start {
    uint32_t length; /**< in memory; 0: none came yet */
    const struct frame_expect *expect;
    uint8_t start[FRAME_START_MAX];
};

/** A port's addresses are made known, one frame each. */
struct learning {
    struct pace pace;
    uint32_t next;
    int64_t until_ns; /**< 0: it has not begun */
};

struct dpdk_lane {
    struct frame_lane frame; /**< first */
    struct transport_port *port;
    struct port_queue *queue;
    struct frame_shape shape;
    struct frame_check check;
    struct verified_start verified;
    struct frame_expect expect[TRANSPORT_SIZES_MAX]; /**< of frames of each different size */
    struct learning learning;
    bool announced;
    bool started;     /**< its worker polls it */
    int64_t asked_ns; /**< the gateway, last */
    int64_t connecting_ns;
};

static inline struct dpdk_lane *dpdk_lane_of(struct frame_lane *lane)
{
    return (struct dpdk_lane *)lane;
}

/** @brief Return the partner at a place (frame_single). */
static inline struct frame_end *dpdk_partner(const struct dpdk_lane *lane, uint32_t place)
{
    return (struct frame_end *)lane->frame.partners + place;
}

/* --- hot.c: hooks on the hot path and beside it; it asks nothing of lane.c ---------------------*/

frame_send dpdk_choose_send(const struct frame_lane *lane);
frame_receive dpdk_choose_receive(const struct frame_lane *lane);
const char *dpdk_send_name(const struct frame_lane *lane);
bool dpdk_send_single(struct frame_lane *lane, const struct frame_single *single);
bool dpdk_is_sound(const struct frame_lane *lane, const struct frame_seen *seen);
uint16_t dpdk_source_of(const struct frame_lane *lane, const struct frame_seen *seen);
int64_t dpdk_arrived(const struct frame_lane *lane, const struct frame_seen *seen);
/** @brief Find who sends a flow's frames and who gets them: this rank, and the partner at the
 * flow's other end, by way of the gateway where it is not on the same link. */
void dpdk_ends(const struct dpdk_lane *lane, uint32_t place, struct frame_end ends[2]);
/** @brief Write the phase's frame into the buffers of the queue's send pool, once templates are
 * built. */
void dpdk_prefill(struct dpdk_lane *lane);
/** @brief Free a forwarded frame. */
void dpdk_release(void *frame);

#define ADDRESSES_MAX (1 << 20)   /**< as many numbers as fit ... */
#define ADDRESSES_RANKS_MAX 4096u /**< ... and as many ranks */
#define ADDRESSES_PREFIX 0x0eu    /**< locally administered, of one station (IEEE 802) */

/**
 * @brief A destination, in the first six bytes of `to`, that stands for one of its port's
 * addresses.
 */
static inline void address_write(uint8_t *to, uint8_t block, uint16_t rank, uint32_t number)
{
    uint64_t address = (uint64_t)ADDRESSES_PREFIX << 40 | (uint64_t)block << 32 |
                       (uint64_t)(rank % ADDRESSES_RANKS_MAX) << 20 | number % ADDRESSES_MAX;

    if (number == 0)
        return;
    address = htobe64(address << 16);
    memcpy(to, &address, FRAME_MAC);
}

#endif
