/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The floor between two cores: two ring ports crosswise, one lane each, polled by a thread each;
 * 64-byte frames at a rate at which each is there before the next is sent, and probes that come
 * back. What is measured is the software's own path: stamp, send ring, the other core's cache,
 * receive, clock. Usage: dpdk_latency [ROUNDS].
 */
#include "clock.h"
#include "common.h"
#include "dpdk_bed.h"
#include "eal.h"
#include "frame_lane.h"

#include <pthread.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS_MAX 101
#define ROUND_NS (200 * NS_PER_MS)
#define RATE_FPS 100000
#define PROBES_FPS 20000
#define RING 1024

static void make_ports(void)
{
    static const char *const names[] = {"cross0", "cross1"};
    struct rte_ring *rings[2];
    struct err err = {""};

    if (eal_start("bench", &err) != 0)
        bed_fail(err.text);
    for (unsigned i = 0; i < 2; i++)
        rings[i] = rte_ring_create(names[i], RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    for (unsigned i = 0; i < 2; i++)
        if (rings[0] == NULL || rings[1] == NULL ||
            rte_eth_from_rings(names[i], &rings[i], 1, &rings[1 - i], 1, 0) < 0)
            bed_fail("no ring ports here");
}

static void pin(unsigned core)
{
    cpu_set_t cores;

    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    (void)pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

struct side {
    struct bed *bed;
    unsigned core;
};

static void *poll_side(void *context)
{
    const struct side *side = context;

    pin(side->core);
    transport_dpdk.poll(side->bed->lane, clock_now());
    bed_burn(side->bed, side->bed->phase.stop_ns + NS_PER_MS);
    return NULL;
}

static void prepare(struct bed beds[2])
{
    for (unsigned i = 0; i < 2; i++) {
        struct phase *phase = &beds[i].phase;

        phase->load = (struct load){.rate_fps = RATE_FPS};
        beds[i].options.catch_up = 1;
        phase->latency = (struct latency_options){.probe_fps = PROBES_FPS, .stamps = true};
        beds[i].partner = (struct blob){.size = 0};
        beds[i].partner = transport_address(&transport_dpdk, beds[1 - i].port);
        bed_prepare(&beds[i]);
        phase->start_ns = i > 0 ? beds[0].phase.start_ns : clock_now() + 20 * NS_PER_MS;
        phase->open_ns = phase->start_ns + ROUND_NS / 10;
        phase->close_ns = phase->stop_ns = phase->start_ns + ROUND_NS;
    }
}

/* One round; medians in microseconds. */
static void measure(struct bed beds[2], double *one_way_us, double *round_trip_us)
{
    struct side sides[2] = {{&beds[0], 0}, {&beds[1], 1}};
    static struct flow_reading readings[2];
    static struct latency one_way, round_trip;
    pthread_t threads[2];

    prepare(beds);
    for (unsigned i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, poll_side, &sides[i]) != 0)
            bed_fail("no thread");
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    memset(readings, 0, sizeof readings);
    transport_dpdk.read_flow(beds[1].lane, &beds[1].receives[0], &readings[0]);
    transport_dpdk.read_flow(beds[0].lane, &beds[0].sends[0], &readings[1]);
    one_way = readings[0].latency[LATENCY_ONE_WAY];
    round_trip = readings[1].latency[LATENCY_ROUND_TRIP];
    if (one_way.histogram.count == 0 || round_trip.histogram.count == 0)
        bed_fail("nothing was measured");
    *one_way_us = (double)histogram_quantile(&one_way.histogram, 0.5) / 1e3;
    *round_trip_us = (double)histogram_quantile(&round_trip.histogram, 0.5) / 1e3;
    for (unsigned i = 0; i < 2; i++)
        bed_rest(&beds[i]);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
    struct bed beds[2] = {
        {.conf = {.vdev = "net_ring_cross0", .name = "bench:a"}, .rank = 0, .send_count = 1},
        {.conf = {.vdev = "net_ring_cross1", .name = "bench:b"}, .rank = 1, .receive_count = 1}};
    double one_way[ROUNDS_MAX], round_trip[ROUNDS_MAX];

    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("64-byte ipv4-udp frames over net_ring between two cores; median of %u medians\n",
           rounds);
    make_ports();
    for (unsigned i = 0; i < 2; i++)
        bed_open(&beds[i]);
    for (unsigned i = 0; i < rounds; i++)
        measure(beds, &one_way[i], &round_trip[i]);
    bench_at_most("floor, one way, p50", bench_median(one_way, rounds), "us", 1);
    bench_at_most("floor, round trip, p50", bench_median(round_trip, rounds), "us", 2);
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.close(beds[i].port);
    return 0;
}
