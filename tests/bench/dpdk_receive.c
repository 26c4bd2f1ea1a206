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
#include "common.h"
#include "dpdk_feed.h"

#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define ROUNDS_MAX 101
#define CHUNKS 2000
#define EVERY_MOST 8u    /* of so many flows every frame is timed ... */
#define TIMED_MOST 4096u /* ... of so many some, beyond none (engine/transport/dpdk/lane.c) */

/* Ticks of receiving and freeing a chunk without us. */
static uint64_t free_chunk(struct bed *bed)
{
    struct rte_mbuf *frames[BED_BURST];
    uint64_t begin = __rdtsc();
    uint16_t port;

    if (rte_eth_dev_get_port_by_name(bed->conf.vdev, &port) != 0)
        bench_fail("no port");
    for (uint32_t i = 0; i < FEED_CHUNK / BED_BURST; i++)
        rte_pktmbuf_free_bulk(frames, rte_eth_rx_burst(port, 0, frames, BED_BURST));
    return __rdtsc() - begin;
}

/* Mean ticks a frame over CHUNKS chunks. */
static double measure(uint64_t (*take)(struct bed *bed), struct bed *bed)
{
    uint64_t ticks = 0, frames = 0;

    for (unsigned i = 0; i < CHUNKS; i++) {
        long before = bench_preemptions();
        uint64_t taken;

        feed_fill(true);
        taken = take(bed);
        if (bench_preemptions() == before) {
            ticks += taken;
            frames += FEED_CHUNK;
        }
    }
    return frames > 0 ? (double)ticks / (double)frames : 0;
}

/* Ticks for which the ring is not polled, as flows are accounted: the longest of a round over all
 * of them. */
static uint64_t longest_pause(struct bed *bed)
{
    uint64_t longest = 0;
    bool all;

    transport_dpdk.account(bed->lane, ACCOUNT_MARK);
    do {
        long before = bench_preemptions();
        uint64_t begin;

        feed_fill(true);
        begin = __rdtsc();
        all = transport_dpdk.account(bed->lane, ACCOUNT_SOME);
        begin = __rdtsc() - begin;
        if (bench_preemptions() == before && begin > longest)
            longest = begin;
        feed_poll(bed);
    } while (!all);
    return longest;
}

/* The receiver must have found what was done to the frames, to the frame. */
static void check(struct bed *bed)
{
    struct feed_truth found = {.delivered = bed_received(bed)};

    for (uint32_t i = 0; i < bed->receive_count; i++) {
        found.reordered += bed->sides[i].reordered;
        found.duplicated += bed->sides[i].duplicated;
    }
    if (memcmp(&feed_truth, &found, sizeof found) != 0 || found.reordered == 0 ||
        found.duplicated == 0 || bed->count.foreign != 0)
        bench_fail("the receiver counted other frames than were sent");
}

static void run(uint32_t flows, unsigned rounds, double reach)
{
    struct bed bed = {.receive_count = flows, .stamps = true};
    double ours[ROUNDS_MAX], timed[ROUNDS_MAX], device[ROUNDS_MAX], pause[ROUNDS_MAX];
    double rate = bench_tsc_rate();
    char what[64];

    feed_open(&bed);
    bed_time(&bed, false);
    for (unsigned i = 0; i < 2 * flows / FEED_CHUNK + 100; i++) { /* every flow has begun */
        feed_fill(true);
        feed_poll(&bed);
    }
    for (unsigned i = 0; i < rounds; i++) {
        bed_time(&bed, false);
        ours[i] = measure(feed_poll, &bed);
        bed_time(&bed, true);
        timed[i] = measure(feed_poll, &bed);
    }
    check(&bed);
    for (unsigned i = 0; i < rounds; i++) {
        device[i] = measure(free_chunk, &bed);
        pause[i] = (double)longest_pause(&bed) / rate / 1e3;
    }
    snprintf(what, sizeof what, "receive, %u flows", flows);
    bench_verdict(what, bench_median(ours, rounds), "cycles a frame", true, reach);
    snprintf(what, sizeof what, "receive, %u flows, with %s", flows,
             flows <= EVERY_MOST ? "every frame's time" : "time of 2 frames in 128");
    if (flows <= TIMED_MOST)
        bench_verdict(what, 100 * (bench_median(timed, rounds) / bench_median(ours, rounds) - 1),
                      "% more", true, 20);
    snprintf(what, sizeof what, "accounting of %u flows, longest pause", flows);
    bench_verdict(what, bench_median(pause, rounds), "us", true, 50);
    printf("  %.1f M frames/s; of this the device and the pool alone: %.1f cycles\n",
           1e3 * rate / ours[rounds / 2], bench_median(device, rounds));
    bed_close(&bed);
}

int main(int argc, char **argv)
{
    static const uint32_t flows[] = {1, EVERY_MOST, 1024, 16384, 65535 /* all others */};
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
    int status, failed = 0;

    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("64-byte ipv4-udp frames, 1 in 128 reordered, 1 in 1024 repeated; median of %u\n",
           rounds);
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++) {
        pid_t pid = fork(); /* a process for each, so that all find DPDK new */

        if (pid == 0) {
            run(flows[i], rounds, flows[i] <= 1024 ? 25 : 40);
            exit(0);
        }
        failed |= pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
    }
    return failed;
}
