/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk_bed.h"

#include "clock.h"
#include "common.h"
#include "eal.h"
#include "frame_lane.h"

#include <rte_eth_ring.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>

static const struct transport_run run = {.run_id = "bench", .node = "bench"};

/* The i-th rank that is not the own one. */
static uint32_t other(const struct bed *bed, uint32_t i)
{
    return i < bed->rank ? i : i + 1;
}

static void make_flows(struct bed *bed)
{
    uint32_t count = bed->send_count + bed->receive_count;

    bed->flows = calloc(count + 1, sizeof *bed->flows);
    bed->sides = calloc(count + 1, sizeof *bed->sides);
    if (bed->flows == NULL || bed->sides == NULL)
        bench_fail("out of memory");
    for (uint32_t i = 0; i < count; i++) {
        bool sends = i < bed->send_count;
        uint32_t peer = other(bed, !sends ? i - bed->send_count : bed->forwards ? bed->rank : i);

        bed->flows[i] = (struct lane_flow){.src = sends ? bed->rank : peer,
                                           .dst = sends ? peer : bed->rank,
                                           .role = bed->forwards ? PATTERN_FORWARD : 0,
                                           .partner = bed->partner,
                                           .side = &bed->sides[i]};
    }
}

static void prepare(struct bed *bed)
{
    struct lane_request request = {
        .port = bed->port,
        .phase = &bed->phase,
        .rank = bed->rank,
        .ranks = 65536,
        .sends = bed->flows,
        .send_count = bed->send_count,
        .receives = bed->flows + bed->send_count,
        .receive_count = bed->receive_count,
        .count = &bed->count,
    };
    struct err err = {""};

    if (transport_dpdk.prepare(&bed->lane, &request, &err) != 0 ||
        transport_dpdk.connect(bed->lane, clock_now(), &err) != 0)
        bench_fail(err.text);
}

void bed_open(struct bed *bed)
{
    struct err err = {""};

    bed->options = (struct dpdk_options){.header = HEADER_IPV4_UDP,
                                         .ttl = 64,
                                         .udp_sources = 1,
                                         .burst = BED_BURST,
                                         .catch_up = BED_BURST};
    bed->phase = (struct phase){.tag = BED_TAG,
                                .traffic = TRAFFIC_STREAM,
                                .sizes = {BED_SIZE},
                                .size_count = 1,
                                .load = {.unlimited = true},
                                .latency = {.stamps = bed->stamps},
                                .options = &bed->options};
    if (bed->conf.ipv4 == NULL)
        bed->conf.ipv4 = "198.18.0.1/16";
    if (bed->conf.name == NULL)
        bed->conf.name = "bench:e0";
    if (transport_dpdk.open(&bed->port, &bed->conf, &run, &err) != 0)
        bench_fail(err.text);
    if (bed->partner.size == 0)
        bed->partner = transport_address(&transport_dpdk, bed->port);
    make_flows(bed);
    prepare(bed);
}

void bed_start(struct bed *bed)
{
    bed->phase.start_ns = clock_now();
    bed->phase.stop_ns = INT64_MAX / 2;
    transport_dpdk.poll(bed->lane, clock_now());
}

void bed_time(struct bed *bed, bool timed)
{
    bed->phase.open_ns = 0;
    bed->phase.close_ns = timed ? INT64_MAX / 2 : 0;
    ((struct frame_lane *)bed->lane)->timer_ns = 0;
}

void bed_burn(struct bed *bed, int64_t for_ns)
{
    int64_t now_ns = clock_now();

    for (int64_t end_ns = now_ns + for_ns; now_ns < end_ns; now_ns = clock_now())
        transport_dpdk.poll(bed->lane, now_ns);
}

static uint64_t count(struct bed *bed, uint32_t from, uint32_t flows)
{
    uint64_t frames = 0;

    transport_dpdk.account(bed->lane, ACCOUNT_ALL);
    for (uint32_t i = from; i < from + flows; i++)
        frames += bed->sides[i].live.frames;
    return frames;
}

uint64_t bed_sent(struct bed *bed)
{
    return count(bed, 0, bed->send_count);
}

uint64_t bed_received(struct bed *bed)
{
    return count(bed, bed->send_count, bed->receive_count);
}

void bed_close(struct bed *bed)
{
    transport_dpdk.destroy(bed->lane);
    transport_dpdk.close(bed->port);
    free(bed->flows);
    free(bed->sides);
}

void bed_make_rings(const char *name, struct rte_ring **in, struct rte_ring **out, uint32_t size)
{
    struct err err = {""};
    char text[32];

    if (eal_start("bench", &err) != 0)
        bench_fail(err.text);
    snprintf(text, sizeof text, "%s_in", name);
    *in = rte_ring_create(text, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    snprintf(text, sizeof text, "%s_out", name);
    *out = rte_ring_create(text, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (*in == NULL || *out == NULL || rte_eth_from_rings(name, in, 1, out, 1, 0) < 0)
        bench_fail("no ring port here");
}
