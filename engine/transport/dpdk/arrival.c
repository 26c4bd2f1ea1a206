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

/* Age of a stamp, by the device clock's mean rate since the port was opened. Differences of
 * ticks are right across a wrap of their 64 bits. An impossible stamp (in the future, or so old
 * that it has another time base than the clock) is none. */
static int64_t age_ns(const struct arrival_clock *clock, const struct arrival_reading *reading,
                      uint64_t stamp)
{
    uint64_t ticks = reading->ticks - clock->begin_ticks;
    double span_ns = (double)(reading->at_ns - clock->begin_ns);
    double age = (double)(int64_t)(reading->ticks - stamp) / (double)ticks * span_ns;

    return ticks > 0 && age > 0 && age < OLDEST_NS ? (int64_t)age : 0;
}

int64_t arrival_of(const struct arrival_clock *clock, const struct arrival_reading *reading,
                   uint64_t stamp)
{
    if (reading->at_ns - clock->begin_ns < KNOWN_NS)
        return reading->at_ns;
    return reading->at_ns - age_ns(clock, reading, stamp);
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
