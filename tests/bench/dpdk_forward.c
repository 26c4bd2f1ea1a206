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

/* Mean ticks a frame of those chunks that did not take twice as long as most: in the others the
 * hypervisor or the kernel had the core. */
static double mean_ticks(double *chunks, size_t count)
{
    double limit = 2 * bench_median(chunks, count);
    double sum = 0;
    size_t used = 0;

    for (; used < count && chunks[used] <= limit; used++)
        sum += chunks[used];
    return sum / (double)used / FEED_CHUNK;
}

int main(int argc, char **argv)
{
    size_t chunks = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    double *ticks = calloc(chunks + 1, sizeof *ticks);
    struct bed bed = {.rank = 1,
                      .send_count = 1,
                      .receive_count = 1,
                      .forwards = true,
                      .conf = {.vdev = "net_ring_feed"}};
    struct feed *feed = feed_make(&bed);
    size_t warm = chunks / 10;
    double rate = bench_tsc_rate();
    double frame;

    if (chunks == 0 || ticks == NULL)
        bed_fail("needs chunks, and memory to note them");
    bed_open(&bed);
    bed_prepare(&bed);
    bed_start(&bed);
    (void)feed_drain(feed);
    for (size_t i = 0; i < chunks; i++) {
        feed_fill(feed, false);
        ticks[i] = (double)forward_chunk(&bed);
        if (feed_drain(feed) != FEED_CHUNK)
            bed_fail("frames were not forwarded");
    }
    if (bed_sent(&bed) != (uint64_t)chunks * FEED_CHUNK)
        bed_fail("the forwarder did not count what it forwarded");
    frame = mean_ticks(ticks + warm, chunks - warm);
    printf("%.0f frames/s, %.3f ns, %.2f cycles a frame\n", rate * 1e9 / frame, frame / rate,
           frame);
    bed_close(&bed);
    free(ticks);
    return 0;
}
