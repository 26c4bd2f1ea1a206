/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Several addresses of a port: how a switch's table is filled (RFC 2889 5.7, 5.8).
 *
 * Number 0 is the port's own; the others are made of the phase's block, the port's rank and their
 * number, so that partners know them, too.
 */
#ifndef ENGINE_DPDK_ADDRESSES_H
#define ENGINE_DPDK_ADDRESSES_H

#include "dpdk_lane.h"

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

/**
 * @brief Return whether the port can have them; it hears all stations' frames from now on.
 *
 * 0 or an error with the sentence.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int addresses_prepare(struct dpdk_lane *lane, struct err *err);

/**
 * @brief Sends what is due of the port's learning frames: one from each of its addresses, to the
 * partner that sends to it.
 *
 * All ports of a phase take the same time. -EINPROGRESS: some are left, or switches may still be
 * learning; -EAGAIN: the device was full. The queue is locked.
 *
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
int addresses_learn(struct dpdk_lane *lane, int64_t now_ns);

#endif
