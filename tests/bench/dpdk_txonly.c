/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames a second that one core sends through the real path (a lane, polled as a worker polls it)
 * on net_null: dpdk_txonly [SECONDS [SIZE [FLOWS]]]. Seconds are of this thread's CPU
 * time. Prints frames/s, ns and TSC cycles a frame.
 */
#include "clock.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

extern const struct transport transport_dpdk;

#define FLOWS_MAX 1024

static struct lane_flow flows[FLOWS_MAX];
static struct flow_side sides[FLOWS_MAX];

static int fail(const struct err *err)
{
    fprintf(stderr, "dpdk_txonly: %s\n", err->text);
    return 1;
}

static uint64_t sent(uint32_t count)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < count; i++)
        frames += sides[i].live.frames;
    return frames;
}

/* Polls until `end_ns` as a worker on a core of its own does. */
static void burn(struct lane *lane, int64_t end_ns)
{
    for (int64_t now_ns = clock_now(); now_ns < end_ns; now_ns = clock_now())
        transport_dpdk.poll(lane, now_ns);
}

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* TSC ticks a nanosecond. */
static double tsc_rate(void)
{
    int64_t begin_ns = clock_now();
    uint64_t ticks = __rdtsc();

    clock_sleep_until(begin_ns + NS_PER_S / 20);
    return (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
}

static void measure(struct lane *lane, double seconds, uint32_t count)
{
    int64_t begin_ns = clock_now() + NS_PER_S / 5;
    uint64_t frames;
    int64_t used_ns;
    double frame_ns;

    transport_dpdk.start(lane, clock_now());
    burn(lane, begin_ns);
    transport_dpdk.account(lane);
    frames = sent(count);
    used_ns = cpu_ns();
    burn(lane, begin_ns + (int64_t)(seconds * 1e9));
    used_ns = cpu_ns() - used_ns;
    transport_dpdk.account(lane);
    frames = sent(count) - frames;
    frame_ns = (double)used_ns / (double)frames;
    printf("%.0f frames/s, %.2f ns, %.1f cycles a frame\n", 1e9 / frame_ns, frame_ns,
           frame_ns * tsc_rate());
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    uint32_t count = argc > 3 ? (uint32_t)atoi(argv[3]) : 1;
    const struct port_conf conf = {
        .name = "bench:e0", .vdev = "net_null0,no-rx=1", .ipv4 = "198.18.0.1/16"};
    const struct transport_run run = {.run_id = "bench", .node = "bench"};
    struct phase phase = {
        .tag = 1,
        .traffic = TRAFFIC_STREAM,
        .sizes = {argc > 2 ? (uint32_t)atoi(argv[2]) : 64},
        .size_count = 1,
        .load = {.unlimited = true},
        .dpdk = {
            .header = HEADER_IPV4_UDP, .ttl = 64, .udp_sources = 1, .burst = 64, .catch_up = 64}};
    struct port_count port_count = {0};
    struct lane_request request = {
        .phase = &phase, .rank = 0, .ranks = FLOWS_MAX + 1, .sends = flows, .count = &port_count};
    struct err err = {""};
    struct lane *lane;

    if (count < 1 || count > FLOWS_MAX)
        return 2;
    if (transport_dpdk.open(&request.port, &conf, &run, &err) != 0)
        return fail(&err);
    request.send_count = count;
    for (uint32_t i = 0; i < count; i++) {
        flows[i] = (struct lane_flow){.dst = i + 1, .side = &sides[i]};
        transport_dpdk.address(request.port, &flows[i].partner);
    }
    if (transport_dpdk.prepare(&lane, &request, &err) != 0 ||
        transport_dpdk.settle(lane, clock_now(), &err) != 0)
        return fail(&err);
    phase.start_ns = clock_now();
    phase.stop_ns = INT64_MAX / 2;
    measure(lane, seconds, count);
    transport_dpdk.finish(lane);
    transport_dpdk.close(request.port);
    return 0;
}
