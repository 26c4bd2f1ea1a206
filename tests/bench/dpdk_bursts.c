/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bursts of a counted length on net_null and net_ring, polled without rest as on a dedicated core:
 * 100 bursts of 64-byte frames, each as long as the gap behind it. Printed for each device and
 * rate:
 *
 *     frames sent that were not asked for, or were not sent
 *     gap's error    from the last departure of a burst and one frame's time to the first departure
 *                    of the next, against the gap that was asked for, in burst times: median, worst
 *
 * A callback in DPDK's send path notes the TSC at each departure. The worst gap is one in which the
 * kernel or the hypervisor had the core.
 */
#include "clock.h"
#include "common.h"
#include "dpdk_bed.h"

#include <inttypes.h>
#include <math.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define BURSTS 100u
#define RING 65536u
#define GAP_NS (2 * NS_PER_MS)
#define LIMIT_NS 10000000000LL

struct departures {
    const struct rte_mempool *pool; /* the sender's; the port's announcements come from another */
    uint64_t frames;
    uint64_t of_burst; /* asked for */
    uint64_t last_tick;
    double gap_ticks[BURSTS];
    uint32_t gaps;
};

static uint16_t note(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t count,
                     void *context)
{
    struct departures *all = context;
    uint64_t tick = __rdtsc();

    (void)port;
    (void)queue;
    if (all->pool == NULL)
        all->pool = frames[0]->pool;
    if (all->pool != frames[0]->pool)
        return count;
    if (all->frames > 0 && all->frames % all->of_burst == 0 && all->gaps < BURSTS)
        all->gap_ticks[all->gaps++] = (double)(tick - all->last_tick);
    all->frames += count;
    all->last_tick = tick;
    return count;
}

/* What stands at the other end of the ring takes all. */
static void empty(struct rte_ring *ring)
{
    struct rte_mbuf *frames[64];
    unsigned count;

    if (ring == NULL)
        return;
    count = rte_ring_dequeue_burst(ring, (void **)frames, 64, NULL);
    rte_pktmbuf_free_bulk(frames, count);
}

static void show(const char *device, const struct departures *all, double fps, double tsc_ghz)
{
    double burst_ns = (double)all->of_burst * 1e9 / fps;
    double errors[BURSTS], worst = 0;
    char what[96];

    for (uint32_t i = 0; i < all->gaps; i++) {
        errors[i] = fabs(all->gap_ticks[i] / tsc_ghz - 1e9 / fps - GAP_NS) / burst_ns;
        worst = fmax(worst, errors[i]);
    }
    snprintf(what, sizeof what, "%s, %.0f frames/s, bursts of %" PRIu64 ", wrong frames", device,
             fps, all->of_burst);
    bench_at_most(what, fabs((double)all->frames - (double)BURSTS * (double)all->of_burst), "", 0);
    snprintf(what, sizeof what, "%s, %.0f frames/s, gap's error, median", device, fps);
    bench_at_most(what, bench_median(errors, all->gaps), "bursts", 1);
    snprintf(what, sizeof what, "%s, %.0f frames/s, gap's error, worst", device, fps);
    bench_at_most(what, worst, "bursts", 1);
}

static void measure(const char *device, struct rte_ring *ring, double fps)
{
    static struct departures all;
    struct bed bed = {.send_count = 1, .conf = {.vdev = device}};
    const struct rte_eth_rxtx_callback *callback;
    int64_t begin_ns;
    double tsc_ghz;
    uint64_t ticks;
    uint16_t port;

    all = (struct departures){.of_burst = (uint64_t)(fps * GAP_NS / 1e9)};
    bed_open(&bed);
    bed.phase.traffic = TRAFFIC_BURST;
    bed.phase.load = (struct load){.rate_fps = fps};
    bed.phase.burst = (struct burst_options){
        .frames = all.of_burst, .own_frames = all.of_burst, .gap_ns = GAP_NS, .count = BURSTS};
    bed_prepare(&bed);
    if (rte_eth_dev_get_port_by_name(ring == NULL ? "net_null0" : device, &port) != 0)
        bed_fail("no port");
    callback = rte_eth_add_tx_callback(port, 0, note, &all);
    if (callback == NULL)
        bed_fail("DPDK was built without callbacks");
    bed_start(&bed);
    begin_ns = clock_now();
    ticks = __rdtsc();
    while (!bed.lane->tx_done && clock_now() - begin_ns < LIMIT_NS) {
        transport_dpdk.poll(bed.lane, clock_now());
        empty(ring);
    }
    tsc_ghz = (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
    rte_eth_remove_tx_callback(port, 0, callback);
    if (bed_sent(&bed) != all.frames)
        bed_fail("the lane counted other frames than left");
    show(ring == NULL ? "net_null" : "net_ring", &all, fps, tsc_ghz);
    bed_close(&bed);
}

int main(void)
{
    static const double rates[] = {1e5, 1e6, 1e7};
    static const char *const names[] = {"burst0", "burst1",
                                        "burst2"}; /* a port is closed for good */
    static const char *const devices[] = {"net_ring_burst0", "net_ring_burst1", "net_ring_burst2"};

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct rte_ring *in, *out;

        bed_make_rings(names[i], &in, &out, RING);
        measure("net_null0,no-rx=1", NULL, rates[i]);
        measure(devices[i], out, rates[i]);
    }
    return 0;
}
