/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Arrival time of frames: by the device's clock where it stamps received frames
 * (RTE_ETH_RX_OFFLOAD_TIMESTAMP) and its clock can be read, else the present time.
 *
 * Device clocks count ticks of their own. Only the age of a frame is used, so only the clock's rate
 * must be known, which is measured from the port's opening on.
 */
#ifndef ENGINE_DPDK_ARRIVAL_H
#define ENGINE_DPDK_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

struct rte_eth_dev_info;
struct port_conf;
struct rte_mbuf;

struct arrival_clock {
    bool runs;
    uint16_t port; /**< port number in DPDK */
    int field;     /**< offset of the stamp in the mbuf */
    uint64_t flag; /**< bit of the mbuf's ol_flags that marks a stamp */
    uint64_t begin_ticks;
    int64_t begin_ns;
};

/**
 * @brief Return the receive offload for time stamps; 0: the run does not need it, or the device
 * lacks it or a readable clock.
 *
 * It makes some drivers receive without vector instructions. To be called before the device is
 * configured. `port` is DPDK's number.
 */
uint64_t arrival_offload(const struct port_conf *conf, uint16_t port,
                         const struct rte_eth_dev_info *info);
/**
 * @brief Start the arrival clock of a running device with this offload.
 *
 * `port` is DPDK's number.
 */
void arrival_begin(struct arrival_clock *clock, uint16_t port);

/** @brief Reading of a device's clock at a local time. */
struct arrival_reading {
    uint64_t ticks;
    int64_t at_ns;
};

/**
 * @brief Return the local time of a device's stamp; the reading's own time while the clock's rate
 * is unknown.
 */
int64_t arrival_of(const struct arrival_clock *clock, const struct arrival_reading *reading,
                   uint64_t stamp);

/**
 * @brief Return the local arrival time of a frame that was just received.
 *
 * Reads the device's clock, about a microsecond: not for every frame.
 */
int64_t arrival_ns(const struct arrival_clock *clock, const struct rte_mbuf *buffer);

#endif
