/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_counters.h"

#include "ethtool.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define PATTERNS_MOST 9 /* with the end */

/* Names in records, and patterns of drivers' names: mlx5 (..._phy), ice (....nic), i40e (port....),
 * ixgbe, bnxt, ena, virtio and veth (rx_queue_N_...). Where a driver counts in total and per
 * priority or queue, or in code words and bits, one of these is listed. */
static const struct {
    const char *name, *patterns[PATTERNS_MOST]; /* end with NULL */
} counters[DEVICE_COUNTERS] = {
    [DEVICE_FEC_CORRECTED] = {"fec_corrected",
                              {"rx_corrected_bits_phy", "rx_fec_corr*_blocks",
                               "fec_corr*_blocks*"}},
    [DEVICE_FEC_UNCORRECTED] = {"fec_uncorrected", {"rx_fec_uncorr*", "fec_uncorr*"}},
    [DEVICE_SYMBOL_ERRORS] = {"symbol_errors",
                              {"rx_pcs_symbol_err*", "rx_symbol_errors*", "illegal_bytes.nic",
                               "port.illegal_bytes"}},
    [DEVICE_PAUSE_RECEIVED] = {"pause",
                               {"rx_pause_ctrl_phy", "rx_prio[0-7]_pause", "*link_xoff_rx*",
                                "*rx_priority_[0-7]_xoff*", "rx_flow_control_xoff",
                                "rx_pb_[0-7]_pxoff", "rx_pause_frames", "rx_pfc_frames"}},
    [DEVICE_PAUSE_SENT] = {"pause_sent",
                           {"tx_pause_ctrl_phy", "tx_prio[0-7]_pause", "*link_xoff_tx*",
                            "*tx_priority_[0-7]_xoff*", "tx_flow_control_xoff", "tx_pb_[0-7]_pxoff",
                            "tx_pause_frames", "tx_pfc_frames"}},
    [DEVICE_RX_DISCARDS] = {"rx_discards",
                            {"rx_discards_phy", "rx_dropped.nic", "port.rx_dropped",
                             "rx_missed_errors", "rx_stat_discard", "rx_drops",
                             "rx_queue_[0-9]_drops", "rx_queue_[0-9][0-9]_drops"}},
    [DEVICE_TX_DISCARDS] = {"tx_discards",
                            {"tx_discards_phy", "*tx_dropped_link_down*", "tx_stat_discard",
                             "tx_drops", "tx_queue_[0-9]_drops", "tx_queue_[0-9][0-9]_drops"}},
};

const char *device_counter_name(enum device_counter counter)
{
    return counters[counter].name;
}

enum device_counter device_counter_of(const char *name)
{
    for (enum device_counter counter = 0; counter < DEVICE_COUNTERS; counter++)
        for (const char *const *p = counters[counter].patterns; *p != NULL; p++)
            if (fnmatch(*p, name, 0) == 0)
                return counter;
    return DEVICE_COUNTERS;
}

void device_statistics_find(struct device_statistics *statistics, int fd, const char *iface)
{
    struct ethtool_drvinfo driver = ethtool_driver(fd, iface);
    struct ethtool_gstrings *strings;
    char name[ETH_GSTRING_LEN + 1] = "";

    *statistics = (struct device_statistics){.count = driver.n_stats};
    strings = calloc(1, sizeof *strings + (size_t)driver.n_stats * ETH_GSTRING_LEN);
    if (strings == NULL)
        return;
    *strings = (struct ethtool_gstrings){
        .cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = driver.n_stats};
    if (driver.n_stats > 0 && ethtool_ask(fd, iface, strings) == 0)
        for (uint32_t i = 0; i < driver.n_stats && statistics->used < DEVICE_STATISTICS_MAX; i++) {
            memcpy(name, strings->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
            enum device_counter counter = device_counter_of(name);
            if (counter == DEVICE_COUNTERS)
                continue;
            statistics->parts[statistics->used].index = i;
            statistics->parts[statistics->used++].counter = counter;
        }
    free(strings);
}

void device_counters_read(const struct device_statistics *statistics, int fd, const char *iface,
                          int64_t values[DEVICE_COUNTERS])
{
    struct ethtool_stats *stats = NULL;

    for (unsigned i = 0; i < DEVICE_COUNTERS; i++)
        values[i] = -1;
    if (statistics->used > 0)
        stats = calloc(1, sizeof *stats + (size_t)statistics->count * sizeof stats->data[0]);
    if (stats == NULL)
        return;
    *stats = (struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = statistics->count};
    /* The driver writes its present number of statistics. */
    if (ethtool_driver(fd, iface).n_stats == statistics->count &&
        ethtool_ask(fd, iface, stats) == 0)
        for (uint32_t i = 0; i < statistics->used; i++) {
            int64_t *counter = &values[statistics->parts[i].counter];

            *counter =
                (*counter > 0 ? *counter : 0) + (int64_t)stats->data[statistics->parts[i].index];
        }
    free(stats);
}
