/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Reader of a network device's counters, which maps the driver's own names (`ethtool -S`) to
 * common names.
 */
#ifndef ENGINE_DEVICE_COUNTERS_H
#define ENGINE_DEVICE_COUNTERS_H

#include <stdint.h>

#define DEVICE_STATISTICS_MAX 128 /**< statistics of one device with a meaning here */

/** @brief Counters of a network device under common names; device_counter_name() returns their
 * names in `port` records. */
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

/** @brief Driver statistics of a device, each with the counter to which it belongs. */
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
 * @param name Name of the statistic, as `ethtool -S` shows it.
 * @return Counter; DEVICE_COUNTERS: the statistic belongs to no counter.
 */
enum device_counter device_counter_of(const char *name);

/**
 * @brief Find the driver statistics of a device that belong to a device counter.
 *
 * @param[out] statistics Statistics; empty if the driver has none.
 * @param fd Any socket of the interface's network namespace; stays the caller's.
 * @param iface Name of the network interface.
 */
void device_statistics_find(struct device_statistics *statistics, int fd, const char *iface);

/**
 * @brief Read the counters of a device.
 *
 * @param statistics Statistics, as device_statistics_find() found them.
 * @param fd Any socket of the interface's network namespace; stays the caller's.
 * @param iface Name of the network interface.
 * @param[out] values Value of each counter; -1: the device has no such counter.
 */
void device_counters_read(const struct device_statistics *statistics, int fd, const char *iface,
                          int64_t values[DEVICE_COUNTERS]);

#endif
