/* SPDX-License-Identifier: BSD-3-Clause */
#define ALLOW_EXPERIMENTAL_API /* rte_eth_read_clock: not stable yet in DPDK 22.11 */
#include "arrival.h"

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>
#undef NS_PER_S /* DPDK's has another type than clock.h's */
#include "clock.h"
#include "transport.h"

#include <errno.h>

#define KNOWN_NS (100 * NS_PER_MS) /* after this time the clock's rate is known to about 10 ppm */
#define OLDEST_NS NS_PER_S         /* no frame waits longer in a receive ring */

uint64_t arrival_offload(const struct port_conf *conf, uint16_t port,
                         const struct rte_eth_dev_info *info)
{
    uint64_t ticks;

    if (!conf->timestamps || rte_eth_read_clock(port, &ticks) == -ENOTSUP)
        return 0;
    return info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
}

void arrival_begin(struct arrival_clock *clock, uint16_t port)
{
    clock->port = port;
    clock->runs = rte_mbuf_dyn_rx_timestamp_register(&clock->field, &clock->flag) == 0 &&
                  rte_eth_read_clock(port, &clock->begin_ticks) == 0;
    clock->begin_ns = clock_now();
}

int64_t arrival_of(const struct arrival_clock *clock, const struct arrival_reading *reading,
                   uint64_t stamp)
{
    uint64_t ticks = reading->ticks - clock->begin_ticks;
    int64_t span_ns = reading->at_ns - clock->begin_ns;
    double age_ns = (double)(int64_t)(reading->ticks - stamp) / (double)ticks * (double)span_ns;

    /* The age of a stamp, by the clock's mean rate since the port was opened. Differences of ticks
     * are right across a wrap of their 64 bits. An impossible stamp (in the future, or so old that
     * it has another time base than the clock) is none. */
    if (span_ns < KNOWN_NS || ticks == 0 || age_ns <= 0 || age_ns >= OLDEST_NS)
        return reading->at_ns;
    return reading->at_ns - (int64_t)age_ns;
}

int64_t arrival_ns(const struct arrival_clock *clock, const struct rte_mbuf *buffer)
{
    struct arrival_reading reading = {.at_ns = clock_now()};

    if (!clock->runs || (buffer->ol_flags & clock->flag) == 0 ||
        rte_eth_read_clock(clock->port, &reading.ticks) != 0)
        return reading.at_ns;
    /* Reading takes a round trip over the bus: on average the ticks are of its middle. */
    reading.at_ns += (clock_now() - reading.at_ns) / 2;
    return arrival_of(clock, &reading,
                      *RTE_MBUF_DYNFIELD(buffer, clock->field, const rte_mbuf_timestamp_t *));
}
