/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief When a frame arrived: by the device's clock where it stamps what it receives
 * (RTE_ETH_RX_OFFLOAD_TIMESTAMP) and lets its clock be read, else now.
 *
 * Clocks of devices count ticks of their own: what is used is how long ago the frame came, so only
 * their rate must be known, and that is measured from when the port was opened.
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
    uint16_t port; /**< DPDK's number */
    int field;     /**< of the mbuf: the stamp */
    uint64_t flag; /**< of its ol_flags: there is one */
    uint64_t begin_ticks;
    int64_t begin_ns;
};

/**
 * @brief The receive offload to ask for; 0: the run has no use for it, or the device has none or a
 * clock that cannot be read.
 *
 * It makes some drivers receive without vector instructions. Before the device is configured.
 * `port`: DPDK's number.
 */
uint64_t arrival_offload(const struct port_conf *conf, uint16_t port,
                         const struct rte_eth_dev_info *info);
/**
 * @brief The device runs, with that offload.
 *
 * `port`: DPDK's number.
 */
void arrival_begin(struct arrival_clock *clock, uint16_t port);

/** @brief The device's clock, read at a local time. */
struct arrival_reading {
    uint64_t ticks;
    int64_t at_ns;
};

/**
 * @brief Local time of a stamp of the device's; the reading's own time where that can't be told
 * (yet).
 */
int64_t arrival_of(const struct arrival_clock *clock, const struct arrival_reading *reading,
                   uint64_t stamp);

/**
 * @brief Local time at which a frame that has just been received arrived.
 *
 * Reads the device's clock, about a microsecond: not for every frame.
 */
int64_t arrival_ns(const struct arrival_clock *clock, const struct rte_mbuf *buffer);

#endif
