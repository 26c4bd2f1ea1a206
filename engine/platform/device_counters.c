/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_counters.h"

#include "ethtool.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[DEVICE_COUNTERS] = {
    "fec_corrected", "fec_uncorrected", "symbol_errors", "pause",
    "pause_sent",    "rx_discards",     "tx_discards",
};

/* Patterns of drivers' names: mlx5 (..._phy), ice (....nic), i40e (port....), ixgbe, bnxt, ena,
 * virtio and veth (rx_queue_N_...). Where a driver counts in total and per priority or queue, or in
 * code words and bits, one of these is listed. */
static const struct {
    enum device_counter counter;
    const char *pattern;
} patterns[] = {
    {DEVICE_FEC_CORRECTED, "rx_corrected_bits_phy"},
    {DEVICE_FEC_CORRECTED, "rx_fec_corr*_blocks"},
    {DEVICE_FEC_CORRECTED, "fec_corr*_blocks*"},
    {DEVICE_FEC_UNCORRECTED, "rx_fec_uncorr*"},
    {DEVICE_FEC_UNCORRECTED, "fec_uncorr*"},
    {DEVICE_SYMBOL_ERRORS, "rx_pcs_symbol_err*"},
    {DEVICE_SYMBOL_ERRORS, "rx_symbol_errors*"},
    {DEVICE_SYMBOL_ERRORS, "illegal_bytes.nic"},
    {DEVICE_SYMBOL_ERRORS, "port.illegal_bytes"},
    {DEVICE_PAUSE_RECEIVED, "rx_pause_ctrl_phy"},
    {DEVICE_PAUSE_RECEIVED, "rx_prio[0-7]_pause"},
    {DEVICE_PAUSE_RECEIVED, "*link_xoff_rx*"},
    {DEVICE_PAUSE_RECEIVED, "*rx_priority_[0-7]_xoff*"},
    {DEVICE_PAUSE_RECEIVED, "rx_flow_control_xoff"},
    {DEVICE_PAUSE_RECEIVED, "rx_pb_[0-7]_pxoff"},
    {DEVICE_PAUSE_RECEIVED, "rx_pause_frames"},
    {DEVICE_PAUSE_RECEIVED, "rx_pfc_frames"},
    {DEVICE_PAUSE_SENT, "tx_pause_ctrl_phy"},
    {DEVICE_PAUSE_SENT, "tx_prio[0-7]_pause"},
    {DEVICE_PAUSE_SENT, "*link_xoff_tx*"},
    {DEVICE_PAUSE_SENT, "*tx_priority_[0-7]_xoff*"},
    {DEVICE_PAUSE_SENT, "tx_flow_control_xoff"},
    {DEVICE_PAUSE_SENT, "tx_pb_[0-7]_pxoff"},
    {DEVICE_PAUSE_SENT, "tx_pause_frames"},
    {DEVICE_PAUSE_SENT, "tx_pfc_frames"},
    {DEVICE_RX_DISCARDS, "rx_discards_phy"},
    {DEVICE_RX_DISCARDS, "rx_dropped.nic"},
    {DEVICE_RX_DISCARDS, "port.rx_dropped"},
    {DEVICE_RX_DISCARDS, "rx_missed_errors"},
    {DEVICE_RX_DISCARDS, "rx_stat_discard"},
    {DEVICE_RX_DISCARDS, "rx_drops"},
    {DEVICE_RX_DISCARDS, "rx_queue_[0-9]_drops"},
    {DEVICE_RX_DISCARDS, "rx_queue_[0-9][0-9]_drops"},
    {DEVICE_TX_DISCARDS, "tx_discards_phy"},
    {DEVICE_TX_DISCARDS, "*tx_dropped_link_down*"},
    {DEVICE_TX_DISCARDS, "tx_stat_discard"},
    {DEVICE_TX_DISCARDS, "tx_drops"},
    {DEVICE_TX_DISCARDS, "tx_queue_[0-9]_drops"},
    {DEVICE_TX_DISCARDS, "tx_queue_[0-9][0-9]_drops"},
};

const char *device_counter_name(enum device_counter counter)
{
    return names[counter];
}

enum device_counter device_counter_of(const char *name)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (fnmatch(patterns[i].pattern, name, 0) == 0)
            return patterns[i].counter;
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
                          int64_t counters[DEVICE_COUNTERS])
{
    struct ethtool_stats *stats = NULL;

    for (unsigned i = 0; i < DEVICE_COUNTERS; i++)
        counters[i] = -1;
    if (statistics->used > 0)
        stats = calloc(1, sizeof *stats + (size_t)statistics->count * sizeof stats->data[0]);
    if (stats == NULL)
        return;
    *stats = (struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = statistics->count};
    /* The driver writes its present number of statistics. */
    if (ethtool_driver(fd, iface).n_stats == statistics->count &&
        ethtool_ask(fd, iface, stats) == 0)
        for (uint32_t i = 0; i < statistics->used; i++) {
            int64_t *counter = &counters[statistics->parts[i].counter];

            *counter =
                (*counter > 0 ? *counter : 0) + (int64_t)stats->data[statistics->parts[i].index];
        }
    free(stats);
}
