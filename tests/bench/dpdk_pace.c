/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pacing: 64-byte frames of one flow at 10 k, 100 k, 1 M and 10 M frames/s on net_null, polled
 * without rest as on a dedicated core. A callback in DPDK's send path notes the TSC at each
 * departure (a driver call: one frame, or a burst of due ones). Printed for each rate:
 *
 *     the mean rate's error       over all departures, against CLOCK_MONOTONIC
 *     single                      share of departures of one frame
 *     gaps between departures     quantiles, and a histogram in parts of the interval asked for
 *     given up                    frames that were late by more than may be caught up with ...
 *     the core was taken          ... and when: between two polls nothing but the kernel, another
 *                                 thread or the hypervisor can have had the core for so long
 *
 * The thread stays on one core and asks for precedence over other threads (nice -20), which stands
 * in for a core of its own; interrupts and the hypervisor stay.
 *
 * Usage: dpdk_pace [SECONDS].
 */
#include "clock.h"
#include "common.h"
#include "dpdk_bed.h"

#include <inttypes.h>
#include <math.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <x86intrin.h>

#define DEVICE "net_null0"
#define ERROR_MAX 0.01    /* percent, of the mean rate */
#define SINGLE_FPS 1e6    /* up to here frames leave one by one ... */
#define SINGLE_LEAST 99.9 /* ... in percent of departures: the kernel's ticks hold some back */

#define CATCH_UP 189  /* as many bytes as 8 frames of 1,518: a run's default */
#define TAKEN_NS 5000 /* no poll takes so long */

/* Gaps in bins of so many TSC ticks; those above the last bin's are in the last. */
#define BIN_TICKS 52
#define BINS 50000

struct departures {
    const struct rte_mempool *pool; /* the sender's; the port's announcements come from another */
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

/* Times in which the core was not ours. */
struct holes {
    uint64_t count;
    int64_t total_ns;
    int64_t longest_ns;
    double due; /* frames that came due in them, but for what is caught up with */
};

/* One rate's run. */
struct run {
    double fps;
    double seconds;
    double tsc_ghz; /* by the clock that paces, over the run itself */
    uint64_t intended;
    struct departures all;
    struct holes holes;
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
    if (all->pool == NULL)
        all->pool = frames[0]->pool;
    if (all->pool != frames[0]->pool)
        return count;
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

static void show_figures(const struct run *run, double rate, double error)
{
    const struct departures *all = &run->all;
    const struct holes *holes = &run->holes;
    double ghz = run->tsc_ghz;

    printf("%.0f frames/s for %.1f s: mean %.3f, error %.5f %%; given up %" PRIu64
           ", longest burst %" PRIu64 "\n",
           run->fps, run->seconds, rate, error, run->intended - all->frames, all->longest);
    printf("  the core was taken %" PRIu64 " times for %.3f ms in all (%.4f %%), %.0f us at most; "
           "beyond catching up %.0f frames came due then\n",
           holes->count, (double)holes->total_ns / 1e6,
           (double)holes->total_ns / run->seconds / 1e7, (double)holes->longest_ns / 1e3,
           holes->due);
    printf("  gaps: p0.1 %.0f, p1 %.0f, p50 %.0f, p99 %.0f, p99.9 %.0f, max %.0f ns\n",
           quantile(all, 0.001, ghz), quantile(all, 0.01, ghz), quantile(all, 0.5, ghz),
           quantile(all, 0.99, ghz), quantile(all, 0.999, ghz), (double)all->gap_max / ghz);
}

static void show(const struct run *run)
{
    const struct departures *all = &run->all;
    double took_ns = (double)(all->last_tick - all->first_tick) / run->tsc_ghz;
    double rate = (double)(all->frames - all->first_frames) * 1e9 / took_ns;
    double error = fabs(rate / run->fps - 1) * 100;
    char what[80];

    show_figures(run, rate, error);
    show_histogram(all, 1e9 / run->fps, run->tsc_ghz);
    snprintf(what, sizeof what, "pacing at %.0f frames/s, error of the mean rate", run->fps);
    bench_at_most(what, error, "%", ERROR_MAX);
    if (run->fps > SINGLE_FPS)
        return;
    snprintf(what, sizeof what, "pacing at %.0f frames/s, departures of one frame", run->fps);
    bench_at_least(what, 100.0 * (double)all->single / (double)all->calls, "%", SINGLE_LEAST);
}

/* As a worker on a core of its own polls, and notes when it was kept from it. */
static void burn(struct bed *bed, int64_t end_ns, struct run *run)
{
    struct holes *holes = &run->holes;
    int64_t before_ns = clock_now();

    for (int64_t now_ns = before_ns; now_ns < end_ns; now_ns = clock_now()) {
        int64_t gap_ns = now_ns - before_ns;

        if (gap_ns > TAKEN_NS) {
            holes->count++;
            holes->total_ns += gap_ns;
            holes->longest_ns = gap_ns > holes->longest_ns ? gap_ns : holes->longest_ns;
            holes->due += fmax(0, (double)gap_ns * run->fps / 1e9 - CATCH_UP);
        }
        before_ns = now_ns;
        transport_dpdk.poll(bed->lane, now_ns);
    }
}

static void measure(struct run *run)
{
    struct bed bed = {.send_count = 1, .conf = {.vdev = DEVICE ",no-rx=1"}};
    const struct rte_eth_rxtx_callback *callback;
    int64_t begin_ns;
    uint64_t ticks;
    uint16_t port;

    bed_open(&bed);
    bed.phase.load = (struct load){.rate_fps = run->fps};
    bed.options.catch_up = CATCH_UP;
    bed_prepare(&bed);
    if (rte_eth_dev_get_port_by_name(DEVICE, &port) != 0)
        bed_fail("no port");
    callback = rte_eth_add_tx_callback(port, 0, note, &run->all);
    if (callback == NULL)
        bed_fail("DPDK was built without callbacks");
    bed_start(&bed);
    begin_ns = clock_now();
    ticks = __rdtsc();
    bed.lane->stop_ns = begin_ns + (int64_t)(run->seconds * 1e9);
    burn(&bed, bed.lane->stop_ns + NS_PER_MS, run);
    run->tsc_ghz = (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
    rte_eth_remove_tx_callback(port, 0, callback);
    if (bed_sent(&bed) != run->all.frames)
        bed_fail("the lane counted other frames than left");
    run->intended = bed.sides[0].intended;
    bed_close(&bed);
}

/* The last core of ours: the first has most interrupts. */
static void take_core(void)
{
    cpu_set_t cores, last;

    CPU_ZERO(&last);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        return;
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &cores)) {
            CPU_ZERO(&last);
            CPU_SET(core, &last);
        }
    }
    (void)sched_setaffinity(0, sizeof last, &last);
    (void)setpriority(PRIO_PROCESS, 0, -20);
}

int main(int argc, char **argv)
{
    static const double rates[] = {1e4, 1e5, 1e6, 1e7};
    static struct run run;
    double seconds = argc > 1 ? atof(argv[1]) : 10;

    if (seconds <= 0)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    take_core();
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        memset(&run, 0, sizeof run);
        run.fps = rates[i];
        run.seconds = seconds;
        measure(&run);
        show(&run);
    }
    return 0;
}
