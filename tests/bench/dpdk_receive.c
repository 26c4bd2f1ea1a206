/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What receiving costs: 64-byte ipv4-udp frames prepared in memory come through a ring port, and
 * the lane verifies headers, checksums and signature, finds each frame's flow, judges its sequence
 * (in order, reordered, repeated), counts it and frees it. Counted are the polls alone, from the
 * ring's dequeue to the pool's put, 512 frames at a time; the filling of the ring is not. Beside
 * it, what the device and the pool cost without us. With and without reading the frames'
 * stamps (delay and variation into histograms), in turn. And for how long the worker accounts flows
 * without a look at the ring. Chunks in which the kernel took the core
 * away are left out. Usage: dpdk_receive [ROUNDS].
 */
#include "clock.h"
#include "common.h"
#include "dpdk_feed.h"

#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define PORT "net_ring_feed"
#define ROUNDS_MAX 101
#define CHUNKS 2000
#define EVERY_MOST 8u    /* of so many flows every frame is timed ... */
#define TIMED_MOST 4096u /* ... of so many some, beyond none (engine/transport/dpdk/lane.c) */

static void poll_chunk(struct bed *bed)
{
    for (uint32_t i = 0; i < FEED_CHUNK / BED_BURST; i++)
        transport_dpdk.poll(bed->lane, clock_now());
}

static void free_chunk(uint16_t port)
{
    struct rte_mbuf *frames[BED_BURST];

    for (uint32_t i = 0; i < FEED_CHUNK / BED_BURST; i++) {
        uint16_t count = rte_eth_rx_burst(port, 0, frames, BED_BURST);

        rte_pktmbuf_free_bulk(frames, count);
    }
}

/* Mean ticks a frame over CHUNKS chunks; `bed` NULL: the device alone. */
static double measure(struct feed *feed, struct bed *bed, uint16_t port)
{
    uint64_t ticks = 0, frames = 0;

    for (unsigned i = 0; i < CHUNKS; i++) {
        long before = bench_preemptions();
        uint64_t begin;

        feed_fill(feed, true);
        begin = __rdtsc();
        if (bed != NULL)
            poll_chunk(bed);
        else
            free_chunk(port);
        begin = __rdtsc() - begin;
        if (bench_preemptions() == before) {
            ticks += begin;
            frames += FEED_CHUNK;
        }
    }
    return frames > 0 ? (double)ticks / (double)frames : 0;
}

/* Ticks for which the ring is not polled, as flows are accounted: the longest of a round over all
 * of them. */
static uint64_t longest_pause(struct bed *bed, struct feed *feed)
{
    uint64_t longest = 0;
    bool all;

    transport_dpdk.account(bed->lane, ACCOUNT_MARK);
    do {
        long before = bench_preemptions();
        uint64_t begin;

        feed_fill(feed, true);
        begin = __rdtsc();
        all = transport_dpdk.account(bed->lane, ACCOUNT_SOME);
        begin = __rdtsc() - begin;
        if (bench_preemptions() == before && begin > longest)
            longest = begin;
        poll_chunk(bed);
    } while (!all);
    return longest;
}

/* The receiver must have found what was done to the frames, to the frame. */
static void check(struct bed *bed, struct feed *feed)
{
    struct feed_truth truth = feed_truth(feed), found = {.delivered = bed_received(bed)};

    for (uint32_t i = 0; i < bed->receive_count; i++) {
        found.reordered += bed->sides[i].reordered;
        found.duplicated += bed->sides[i].duplicated;
    }
    if (memcmp(&truth, &found, sizeof truth) != 0 || truth.reordered == 0 ||
        truth.duplicated == 0 || bed->count.foreign != 0)
        bed_fail("the receiver counted other frames than were sent");
}

static void run(uint32_t flows, unsigned rounds, double reach)
{
    struct bed bed = {.receive_count = flows, .conf = {.vdev = PORT}};
    struct feed *feed = feed_make(&bed);
    double ours[ROUNDS_MAX], timed[ROUNDS_MAX], device[ROUNDS_MAX], pause[ROUNDS_MAX];
    double rate = bench_tsc_rate();
    char what[64];
    uint16_t port;

    bed_open(&bed);
    bed.phase.latency.stamps = true;
    bed_prepare(&bed);
    bed_start(&bed);
    bed_time(&bed, false);
    feed_stamp(feed, bed.phase.start_ns);
    if (rte_eth_dev_get_port_by_name(PORT, &port) != 0)
        bed_fail("no port");
    (void)feed_drain(feed);
    for (unsigned i = 0; i < 2 * flows / FEED_CHUNK + 100; i++) { /* every flow has begun */
        feed_fill(feed, true);
        poll_chunk(&bed);
    }
    for (unsigned i = 0; i < rounds; i++) {
        bed_time(&bed, false);
        ours[i] = measure(feed, &bed, port);
        bed_time(&bed, true);
        timed[i] = measure(feed, &bed, port);
    }
    check(&bed, feed);
    for (unsigned i = 0; i < rounds; i++)
        device[i] = measure(feed, NULL, port);
    for (unsigned i = 0; i < rounds; i++)
        pause[i] = (double)longest_pause(&bed, feed) / rate / 1e3;
    snprintf(what, sizeof what, "receive, %u flows", flows);
    bench_at_most(what, bench_median(ours, rounds), "cycles a frame", reach);
    if (flows <= TIMED_MOST) {
        const char *which = flows <= EVERY_MOST ? "every frame's time" : "time of 2 frames in 128";

        snprintf(what, sizeof what, "receive, %u flows, with %s", flows, which);
        bench_at_most(what, 100 * (bench_median(timed, rounds) / bench_median(ours, rounds) - 1),
                      "% more", 20);
    }
    snprintf(what, sizeof what, "accounting of %u flows, longest pause", flows);
    bench_at_most(what, bench_median(pause, rounds), "us", 50);
    printf("  %.1f M frames/s; of this the device and the pool alone: %.1f cycles\n",
           1e3 * rate / ours[rounds / 2], bench_median(device, rounds));
    bed_close(&bed);
}

/* A process for each, so that both find DPDK new. */
static int apart(uint32_t flows, unsigned rounds, double reach)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        run(flows, rounds, reach);
        exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return status != 0;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
    int failed;

    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("64-byte ipv4-udp frames, 1 in 128 reordered, 1 in 1024 repeated; median of %u\n",
           rounds);
    failed = apart(1, rounds, 25);
    failed |= apart(EVERY_MOST, rounds, 25);
    failed |= apart(1024, rounds, 25);
    failed |= apart(16384, rounds, 40);
    failed |= apart(65535, rounds, 40); /* from every other of 65,536 ranks */
    return failed;
}
