/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pacing: 64-byte frames of one flow at 10 k, 100 k, 1 M and 10 M frames/s on net_null, polled
 * without rest as on a dedicated core. A callback in DPDK's send path notes the TSC at each
 * departure (a driver call: one frame, or a burst of due ones). Printed for each rate:
 *
 *     the mean rate's error       over all departures, against CLOCK_MONOTONIC
 *     single                      share of departures of one frame
 *     gaps between departures     quantiles, and a histogram in parts of the interval asked for
 *     given up                    frames that came due while the kernel had taken the core away
 *
 * Usage: dpdk_pace [SECONDS].
 */
#include "clock.h"
#include "common.h"
#include "dpdk_bed.h"

#include <inttypes.h>
#include <math.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#define DEVICE "net_null0"
#define ERROR_MAX 0.01    /* percent, of the mean rate */
#define SINGLE_FPS 1e6    /* up to here frames leave one by one ... */
#define SINGLE_LEAST 99.9 /* ... in percent of departures: the kernel's ticks hold some back */

/* Gaps in bins of so many TSC ticks; those above the last bin's are in the last. */
#define BIN_TICKS 52
#define BINS 50000

struct departures {
    uint64_t frames;
    uint64_t calls;
    uint64_t single;
    uint64_t longest; /* burst */
    uint64_t first_tick;
    uint64_t last_tick;
    uint64_t first_frames; /* of the first call */
    uint64_t gap_max;
    uint64_t bins[BINS];
};

/* Parts of the interval asked for at which the histogram is cut. */
static const double cuts[] = {0.25, 0.5, 0.75, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2, 10};
#define CUTS (sizeof cuts / sizeof cuts[0])

static uint16_t note(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t count,
                     void *context)
{
    struct departures *all = context;
    uint64_t tick = __rdtsc();
    uint64_t gap = tick - all->last_tick;

    (void)port;
    (void)queue;
    (void)frames;
    if (all->calls++ == 0) {
        all->first_tick = tick;
        all->first_frames = count;
    } else {
        all->bins[gap / BIN_TICKS < BINS ? gap / BIN_TICKS : BINS - 1]++;
        all->gap_max = gap > all->gap_max ? gap : all->gap_max;
    }
    all->frames += count;
    all->single += count == 1;
    all->longest = count > all->longest ? count : all->longest;
    all->last_tick = tick;
    return count;
}

/* Below how many ns a part of the gaps lies. */
static double quantile(const struct departures *all, double part, double tsc_ghz)
{
    double want = part * (double)(all->calls - 1);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < BINS - 1; i++) {
        sum += all->bins[i];
        if ((double)sum >= want)
            return (i + 1) * BIN_TICKS / tsc_ghz;
    }
    return (double)all->gap_max / tsc_ghz;
}

static void show_histogram(const struct departures *all, double interval_ns, double tsc_ghz)
{
    double shares[CUTS + 1] = {0};

    for (uint32_t i = 0; i < BINS; i++) {
        double part = (i + 0.5) * BIN_TICKS / tsc_ghz / interval_ns;
        size_t cut = 0;

        while (cut < CUTS && part >= cuts[cut])
            cut++;
        shares[cut] += 100.0 * (double)all->bins[i] / (double)(all->calls - 1);
    }
    printf("  gap / interval:");
    for (size_t i = 0; i < CUTS; i++)
        printf(" <%g: %.3f%%", cuts[i], shares[i]);
    printf(" more: %.3f%%\n", shares[CUTS]);
}

static void show(const struct departures *all, double fps, double tsc_ghz, uint64_t intended)
{
    double took_ns = (double)(all->last_tick - all->first_tick) / tsc_ghz;
    double rate = (double)(all->frames - all->first_frames) * 1e9 / took_ns;
    double error = fabs(rate / fps - 1) * 100;
    char what[80];

    printf("%.0f frames/s for %.1f s: mean %.3f, error %.5f %%; given up %" PRIu64
           ", longest burst %" PRIu64 "\n",
           fps, took_ns / 1e9, rate, error, intended - all->frames, all->longest);
    printf("  gaps: p0.1 %.0f, p1 %.0f, p50 %.0f, p99 %.0f, p99.9 %.0f, max %.0f ns\n",
           quantile(all, 0.001, tsc_ghz), quantile(all, 0.01, tsc_ghz), quantile(all, 0.5, tsc_ghz),
           quantile(all, 0.99, tsc_ghz), quantile(all, 0.999, tsc_ghz),
           (double)all->gap_max / tsc_ghz);
    show_histogram(all, 1e9 / fps, tsc_ghz);
    snprintf(what, sizeof what, "pacing at %.0f frames/s, error of the mean rate", fps);
    bench_at_most(what, error, "%", ERROR_MAX);
    if (fps > SINGLE_FPS)
        return;
    snprintf(what, sizeof what, "pacing at %.0f frames/s, departures of one frame", fps);
    bench_at_least(what, 100.0 * (double)all->single / (double)all->calls, "%", SINGLE_LEAST);
}

/* Returns the TSC's rate by the clock that paces, over the run itself. */
static double measure(double fps, double seconds, struct departures *all, uint64_t *intended)
{
    struct bed bed = {.send_count = 1, .conf = {.vdev = DEVICE ",no-rx=1"}};
    const struct rte_eth_rxtx_callback *callback;
    int64_t begin_ns;
    uint64_t ticks;
    double tsc_ghz;
    uint16_t port;

    bed_open(&bed);
    bed.phase.load = (struct load){.rate_fps = fps};
    bed_prepare(&bed);
    if (rte_eth_dev_get_port_by_name(DEVICE, &port) != 0)
        bed_fail("no port");
    callback = rte_eth_add_tx_callback(port, 0, note, all);
    if (callback == NULL)
        bed_fail("DPDK was built without callbacks");
    bed_start(&bed);
    begin_ns = clock_now();
    ticks = __rdtsc();
    bed.lane->stop_ns = begin_ns + (int64_t)(seconds * 1e9);
    bed_burn(&bed, bed.lane->stop_ns + NS_PER_MS);
    tsc_ghz = (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
    rte_eth_remove_tx_callback(port, 0, callback);
    if (bed_sent(&bed) != all->frames)
        bed_fail("the lane counted other frames than left");
    *intended = bed.sides[0].intended;
    bed_close(&bed);
    return tsc_ghz;
}

int main(int argc, char **argv)
{
    static const double rates[] = {1e4, 1e5, 1e6, 1e7};
    static struct departures all;
    double seconds = argc > 1 ? atof(argv[1]) : 10;

    if (seconds <= 0)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        uint64_t intended;
        double tsc_ghz;

        memset(&all, 0, sizeof all);
        tsc_ghz = measure(rates[i], seconds, &all, &intended);
        show(&all, rates[i], tsc_ghz, intended);
    }
    return 0;
}
