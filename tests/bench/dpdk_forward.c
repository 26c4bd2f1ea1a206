/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What forwarding in a chain costs on ring ports (net_ring): a frame is dequeued, verified and
 * judged as every received frame is, rewritten with the next hop's headers, sequence and time, and
 * enqueued. Counted are the polls, 512 frames at a time; filling and emptying the rings is not.
 * Prints frames/s, ns and TSC cycles a frame. Usage: dpdk_forward [CHUNKS].
 */
#include "common.h"
#include "dpdk_feed.h"

#include <stdlib.h>

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
    size_t chunks = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000, warm = chunks / 10;
    double *ticks = calloc(chunks + 1, sizeof *ticks);
    struct bed bed = {.rank = 1, .send_count = 1, .receive_count = 1, .forwards = true};

    if (chunks == 0 || ticks == NULL)
        bench_fail("needs chunks, and memory to note them");
    feed_open(&bed);
    for (size_t i = 0; i < chunks; i++) {
        feed_fill(false);
        ticks[i] = (double)feed_poll(&bed);
        if (feed_drain() != FEED_CHUNK)
            bench_fail("frames were not forwarded");
    }
    if (bed_sent(&bed) != (uint64_t)chunks * FEED_CHUNK)
        bench_fail("the forwarder did not count what it forwarded");
    bench_show_frames(1, mean_ticks(ticks + warm, chunks - warm) / bench_tsc_rate());
    bed_close(&bed);
    free(ticks);
    return 0;
}
