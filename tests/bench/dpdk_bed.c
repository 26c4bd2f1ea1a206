/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk_bed.h"

#include "clock.h"
#include "eal.h"
#include "frame_lane.h"

#include <rte_eth_ring.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>

static const struct transport_run run = {.run_id = "bench", .node = "bench"};

_Noreturn void bed_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void *reserve(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (memory == NULL)
        bed_fail("out of memory");
    return memory;
}

void bed_open(struct bed *bed)
{
    struct err err = {""};

    bed->options = (struct dpdk_options){.header = HEADER_IPV4_UDP,
                                         .ttl = 64,
                                         .udp_sources = 1,
                                         .burst = BED_BURST,
                                         .catch_up = BED_BURST};
    bed->phase = (struct phase){
        .tag = BED_TAG,
        .traffic = TRAFFIC_STREAM,
        .sizes = {BED_SIZE},
        .size_count = 1,
        .load = {.unlimited = true},
        .options = &bed->options,
    };
    if (bed->conf.ipv4 == NULL)
        bed->conf.ipv4 = "198.18.0.1/16";
    if (bed->conf.name == NULL)
        bed->conf.name = "bench:e0";
    if (transport_dpdk.open(&bed->port, &bed->conf, &run, &err) != 0)
        bed_fail(err.text);
    bed->partner = transport_address(&transport_dpdk, bed->port);
}

/* The i-th rank that is not the own one. */
static uint32_t other(const struct bed *bed, uint32_t i)
{
    return i < bed->rank ? i : i + 1;
}

static void make_flows(struct bed *bed)
{
    enum pattern_role role = bed->forwards ? PATTERN_FORWARD : PATTERN_GENERATE;

    bed->sends = reserve(bed->send_count, sizeof *bed->sends);
    bed->receives = reserve(bed->receive_count, sizeof *bed->receives);
    bed->sides = reserve(bed->send_count + bed->receive_count, sizeof *bed->sides);
    for (uint32_t i = 0; i < bed->send_count; i++)
        bed->sends[i] = (struct lane_flow){.src = bed->rank,
                                           .dst = other(bed, bed->forwards ? bed->rank : i),
                                           .role = role,
                                           .partner = bed->partner,
                                           .side = &bed->sides[i]};
    for (uint32_t i = 0; i < bed->receive_count; i++)
        bed->receives[i] = (struct lane_flow){.src = other(bed, i),
                                              .dst = bed->rank,
                                              .partner = bed->partner,
                                              .side = &bed->sides[bed->send_count + i]};
}

void bed_prepare(struct bed *bed)
{
    struct lane_request request = {
        .port = bed->port,
        .phase = &bed->phase,
        .rank = bed->rank,
        .ranks = 65536,
        .send_count = bed->send_count,
        .receive_count = bed->receive_count,
        .count = &bed->count,
    };
    struct err err = {""};

    make_flows(bed);
    request.sends = bed->sends;
    request.receives = bed->receives;
    if (transport_dpdk.prepare(&bed->lane, &request, &err) != 0 ||
        transport_dpdk.connect(bed->lane, clock_now(), &err) != 0)
        bed_fail(err.text);
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

void bed_burn(struct bed *bed, int64_t end_ns)
{
    for (int64_t now_ns = clock_now(); now_ns < end_ns; now_ns = clock_now())
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

void bed_rest(struct bed *bed)
{
    transport_dpdk.destroy(bed->lane);
    free(bed->sends);
    free(bed->receives);
    free(bed->sides);
}

void bed_close(struct bed *bed)
{
    bed_rest(bed);
    transport_dpdk.close(bed->port);
}

void bed_make_rings(const char *name, struct rte_ring **in, struct rte_ring **out, uint32_t size)
{
    struct err err = {""};
    char text[32];

    if (eal_start("bench", &err) != 0)
        bed_fail(err.text);
    snprintf(text, sizeof text, "%s_in", name);
    *in = rte_ring_create(text, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    snprintf(text, sizeof text, "%s_out", name);
    *out = rte_ring_create(text, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (*in == NULL || *out == NULL || rte_eth_from_rings(name, in, 1, out, 1, 0) < 0)
        bed_fail("no ring port here");
}
