/* SPDX-License-Identifier: BSD-3-Clause */
#define ALLOW_EXPERIMENTAL_API /* rte_eth_read_clock: not stable yet in DPDK 22.11 */
#include "arrival.h"

#include "port.h"

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

#define KNOWN_NS (100 * NS_PER_MS) /* the clock's rate is known to 10 ppm or so after this */
#define OLDEST_NS NS_PER_S         /* no frame waits longer in a receive ring */

uint64_t arrival_offload(const struct rte_eth_dev_info *info)
{
    return info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
}

void arrival_begin(struct transport_port *port)
{
    struct arrival_clock *clock = &port->arrival;

    clock->runs = rte_mbuf_dyn_rx_timestamp_register(&clock->field, &clock->flag) == 0 &&
                  rte_eth_read_clock(port->id, &clock->begin_ticks) == 0;
    clock->begin_ns = clock_now();
}

int64_t arrival_ns(const struct transport_port *port, const struct rte_mbuf *buffer)
{
    const struct arrival_clock *clock = &port->arrival;
    uint64_t ticks = 0, stamp;
    int64_t now_ns = clock_now();
    double age_ns;

    if (!clock->runs || (buffer->ol_flags & clock->flag) == 0 ||
        now_ns - clock->begin_ns < KNOWN_NS || rte_eth_read_clock(port->id, &ticks) != 0)
        return now_ns;
    now_ns = clock_now();
    stamp = *RTE_MBUF_DYNFIELD(buffer, clock->field, const rte_mbuf_timestamp_t *);
    age_ns = (double)(int64_t)(ticks - stamp) * (double)(now_ns - clock->begin_ns) /
             (double)(ticks - clock->begin_ticks);
    return age_ns > 0 && age_ns < OLDEST_NS ? now_ns - (int64_t)age_ns : now_ns;
}
