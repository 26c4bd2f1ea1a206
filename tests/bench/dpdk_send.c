/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames a second that one core sends on net_null: 64-byte ipv4-udp frames with flow, sequence
 * and time, through the path of a run: a lane in the hands of a worker.
 *
 *     dpdk_send engine [SECONDS [FLOWS]]   the worker, on a core of its own
 *     dpdk_send bare [SECONDS]             the limit: a loop that gets buffers from a pool, writes
 *                                          16 bytes into each and sends the burst, and no more
 *
 * Seconds are of the sending thread's CPU time. Prints frames/s, ns and TSC cycles a frame.
 */
#include "clock.h"
#include "common.h"
#include "dpdk_bed.h"
#include "eal.h"
#include "worker.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DEVICE "net_null0"
#define OFFSET 48 /* of the bytes that the bare loop writes: where the engine's sequence lies */
#define POOL 1023
#define CACHE 256

/* CPU time of all threads but this one. */
static int64_t others_ns(void)
{
    return bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Sends on a worker's thread until the phase's stop. */
static void send_by_worker(struct bed *bed, double seconds)
{
    struct worker_conf conf = {.core = -1, .event_fd = eventfd(0, 0), .seed = 1};
    struct worker_lane lane = {.transport = &transport_dpdk, .lane = bed->lane};
    struct worker_task task = {.lanes = &lane, .count = 1, .phase = &bed->phase};
    struct worker *worker;
    struct err err = {""};
    uint64_t ended;

    if (worker_start(&worker, &conf, &err) != 0)
        bench_fail(err.text);
    bed->phase.start_ns = bed->phase.open_ns = clock_now();
    bed->phase.stop_ns = bed->phase.close_ns = bed->phase.start_ns + (int64_t)(seconds * 1e9);
    task.nominal_end_ns = bed->phase.stop_ns;
    worker_run(worker, &task);
    if (read(conf.event_fd, &ended, sizeof ended) != sizeof ended)
        bench_fail("the worker did not end");
    worker_end(worker);
}

static void engine(double seconds, uint32_t flows)
{
    struct bed bed = {.send_count = flows, .conf = {.vdev = DEVICE ",no-rx=1"}};
    int64_t used_ns;

    bed_open(&bed);
    used_ns = others_ns();
    send_by_worker(&bed, seconds);
    used_ns = others_ns() - used_ns;
    bench_show_frames((double)bed_sent(&bed), (double)used_ns);
    bed_close(&bed);
}

/* As in a first attempt at a generator: no engine at all. */
static uint64_t loop(uint16_t port, struct rte_mempool *pool, int64_t end_ns)
{
    struct rte_mbuf *frames[BED_BURST];
    uint64_t sent = 0, values[2] = {0, 0};

    while (clock_now() < end_ns) {
        for (unsigned i = 0; i < 1000; i++) {
            if (rte_mempool_get_bulk(pool, (void **)frames, BED_BURST) != 0)
                bench_fail("frames got lost");
            for (unsigned j = 0; j < BED_BURST; j++) {
                values[0]++;
                memcpy(rte_pktmbuf_mtod(frames[j], uint8_t *) + OFFSET, values, sizeof values);
            }
            sent += rte_eth_tx_burst(port, 0, frames, BED_BURST);
        }
    }
    return sent;
}

static void fill(struct rte_mempool *pool, void *context, void *object, unsigned index)
{
    struct rte_mbuf *frame = object;

    (void)pool;
    (void)context;
    (void)index;
    rte_pktmbuf_reset(frame);
    frame->pkt_len = frame->data_len = BED_SIZE - FRAME_FCS;
}

static void bare(double seconds)
{
    struct bed bed = {.send_count = 1, .conf = {.vdev = DEVICE ",no-rx=1"}};
    struct rte_mempool *pool;
    int64_t used_ns;
    uint64_t frames;
    uint16_t port;

    bed_open(&bed); /* a port configured as the engine's is */
    eal_thread();
    pool = rte_pktmbuf_pool_create("bare", POOL, CACHE, 0, 2 * BED_SIZE + RTE_PKTMBUF_HEADROOM,
                                   SOCKET_ID_ANY);
    if (pool == NULL || rte_eth_dev_get_port_by_name(DEVICE, &port) != 0)
        bench_fail("no pool or port");
    rte_mempool_obj_iter(pool, fill, NULL);
    used_ns = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    frames = loop(port, pool, clock_now() + (int64_t)(seconds * 1e9));
    used_ns = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns;
    bench_show_frames((double)frames, (double)used_ns);
    bed_close(&bed);
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    int flows = argc > 3 ? atoi(argv[3]) : 1;

    if (argc < 2 || seconds <= 0 || flows < 1 || flows > 65535)
        return 2;
    if (strcmp(argv[1], "bare") == 0)
        bare(seconds);
    else
        engine(seconds, (uint32_t)flows);
    return 0;
}
