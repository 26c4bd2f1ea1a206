/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Counters of a device under common names, whatever names its driver uses (`ethtool -S`).
 */
#ifndef ENGINE_DEVICE_COUNTERS_H
#define ENGINE_DEVICE_COUNTERS_H

#include <stdint.h>

#define DEVICE_STATISTICS_MAX 128 /**< statistics of one device with a meaning here */

/** @brief Device counters; device_counter_name() has their names in `port` records. */
enum device_counter {
    DEVICE_FEC_CORRECTED,   /**< code words, or bits where the driver counts bits */
    DEVICE_FEC_UNCORRECTED, /**< code words */
    DEVICE_SYMBOL_ERRORS,
    DEVICE_PAUSE_RECEIVED, /**< PAUSE and PFC frames */
    DEVICE_PAUSE_SENT,
    DEVICE_RX_DISCARDS, /**< good frames without room in the device */
    DEVICE_TX_DISCARDS,
    DEVICE_COUNTERS,
};

/** @brief Statistics of a device, and the counter to which each belongs. */
struct device_statistics {
    uint32_t count; /**< statistics of the device */
    uint32_t used;
    struct {
        uint32_t index;
        enum device_counter counter;
    } parts[DEVICE_STATISTICS_MAX];
};

/**
 * @brief Return the key of a device counter in `port` records.
 *
 * @param counter Below DEVICE_COUNTERS.
 * @return Static text.
 */
const char *device_counter_name(enum device_counter counter);

/**
 * @brief Return the device counter to which a driver's statistic belongs.
 *
 * @param name As `ethtool -S` shows it.
 * @return DEVICE_COUNTERS: of none.
 */
enum device_counter device_counter_of(const char *name);

/**
 * @brief Find the statistics of a device.
 *
 * @param statistics Takes them; without any where the driver has none.
 * @param fd Any socket of the interface's network namespace; stays the caller's.
 * @param iface Name of the network interface.
 */
void device_statistics_find(struct device_statistics *statistics, int fd, const char *iface);

/**
 * @brief Read the counters of a device.
 *
 * @param statistics As they were found.
 * @param fd Any socket of the interface's network namespace; stays the caller's.
 * @param iface Name of the network interface.
 * @param values Takes them; -1: the device does not count it.
 */
void device_counters_read(const struct device_statistics *statistics, int fd, const char *iface,
                          int64_t values[DEVICE_COUNTERS]);

#endif
