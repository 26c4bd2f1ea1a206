/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What forwarding in a chain costs on ring ports (net_ring): a frame is dequeued, verified and
 * judged as every received frame is, rewritten with the next hop's headers, sequence and time, and
 * enqueued. Counted are the polls, 512 frames at a time; filling and emptying the rings is not.
 * Prints frames/s, ns and TSC cycles a frame. Usage: dpdk_forward [CHUNKS].
 */
#include "clock.h"
#include "common.h"
#include "dpdk_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

static uint64_t forward_chunk(struct bed *bed)
{
    uint64_t begin = __rdtsc();

    for (uint32_t i = 0; i < FEED_CHUNK / BED_BURST; i++)
        transport_dpdk.poll(bed->lane, clock_now());
    return __rdtsc() - begin;
}

int main(int argc, char **argv)
{
    unsigned chunks = argc > 1 ? (unsigned)atoi(argv[1]) : 20000;
    struct bed bed = {.rank = 1,
                      .send_count = 1,
                      .receive_count = 1,
                      .forwards = true,
                      .conf = {.vdev = "net_ring_feed"}};
    struct feed *feed = feed_make(&bed);
    uint64_t ticks = 0, frames = 0;
    double rate = bench_tsc_rate();

    bed_open(&bed);
    bed_prepare(&bed);
    bed_start(&bed);
    (void)feed_drain(feed);
    for (unsigned i = 0; i < chunks; i++) {
        long before = bench_preemptions();
        uint64_t took;

        feed_fill(feed, false);
        took = forward_chunk(&bed);
        if (feed_drain(feed) != FEED_CHUNK)
            bed_fail("frames were not forwarded");
        if (bench_preemptions() == before && i > chunks / 10) {
            ticks += took;
            frames += FEED_CHUNK;
        }
    }
    if (frames == 0 || bed_sent(&bed) != (uint64_t)chunks * FEED_CHUNK)
        bed_fail("the forwarder did not count what it forwarded");
    printf("%.0f frames/s, %.3f ns, %.2f cycles a frame\n",
           rate * 1e9 * (double)frames / (double)ticks, (double)ticks / (double)frames / rate,
           (double)ticks / (double)frames);
    bed_close(&bed);
    return 0;
}
