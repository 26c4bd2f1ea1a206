/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a second core is worth: two workers, each with a lane of its own on net_null (two queues of
 * one port, or two ports), against one worker. These are the engine's workers, polling, as a node
 * starts them; 64-byte ipv4-udp frames, 64 flows a lane. Rates are by the workers' CPU time, so
 * that neighbours on the cores cost little. Measured in turn; medians.
 */
#include "clock.h"
#include "common.h"
#include "cpu_placement.h"
#include "dpdk_options.h"
#include "transport.h"
#include "worker.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUNDS 7
#define LANES 2
#define FLOWS 64
#define BURST 64
#define WARM_NS (100 * NS_PER_MS)
#define WINDOW_NS (700 * NS_PER_MS)
#define REACH 1.9

extern const struct transport transport_dpdk;

/* One way to use the cores: so many lanes, on queues of one port or on a port each. */
struct way {
    const char *name;
    uint32_t lanes;
    uint32_t ports;
    struct transport_port *port[LANES];
    struct port_conf conf[LANES];
    char text[LANES][2][32];
    double rates[ROUNDS];
};

/* A lane with its worker. */
struct place {
    struct worker *worker;
    struct worker_lane lane;
    struct worker_task task;
    struct phase phase;
    struct lane_flow flows[FLOWS];
    struct flow_side sides[FLOWS];
    struct port_count count;
};

static struct worker *workers[LANES];
static int event_fd;

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "cores: %s\n", what);
    exit(1);
}

static void open_ports(struct way *way)
{
    static const struct transport_run run = {.run_id = "bench", .node = "bench"};
    static unsigned number;
    struct err err = {""};

    for (uint32_t i = 0; i < way->ports; i++, number++) {
        snprintf(way->text[i][0], sizeof way->text[i][0], "bench:e%u", number);
        snprintf(way->text[i][1], sizeof way->text[i][1], "net_null%u,no-rx=1", number);
        way->conf[i] = (struct port_conf){.name = way->text[i][0],
                                          .vdev = way->text[i][1],
                                          .ipv4 = "198.18.0.1/16",
                                          .queues = way->lanes / way->ports};
        if (transport_dpdk.open(&way->port[i], &way->conf[i], &run, &err) != 0)
            fail(err.text);
    }
}

static void set_phase(struct phase *phase)
{
    static const struct dpdk_options options = {
        .header = HEADER_IPV4_UDP, .ttl = 64, .udp_sources = 1, .burst = BURST, .catch_up = BURST};

    *phase = (struct phase){
        .tag = 1,
        .traffic = TRAFFIC_STREAM,
        .sizes = {64},
        .size_count = 1,
        .load = {.unlimited = true},
        .options = &options,
    };
}

static void make_lane(struct place *place, struct way *way, uint32_t number,
                      struct lane *first_queue_lane)
{
    uint32_t port = number % way->ports;
    struct lane_request request = {
        .port = way->port[port],
        .phase = &place->phase,
        .ranks = LANES * FLOWS + 1,
        .sends = place->flows,
        .send_count = FLOWS,
        .count = &place->count,
        .queue = number / way->ports,
        .first_queue_lane = way->ports == 1 ? first_queue_lane : NULL,
    };
    struct err err = {""};

    memset(place, 0, sizeof *place);
    place->worker = workers[number];
    set_phase(&place->phase);
    for (uint32_t i = 0; i < FLOWS; i++) {
        place->flows[i] =
            (struct lane_flow){.dst = 1 + number * FLOWS + i, .side = &place->sides[i]};
        place->flows[i].partner = transport_address(&transport_dpdk, way->port[port]);
    }
    place->lane.transport = &transport_dpdk;
    if (transport_dpdk.prepare(&place->lane.lane, &request, &err) != 0 ||
        transport_dpdk.connect(place->lane.lane, clock_now(), &err) != 0)
        fail(err.text);
}

static void start(struct place *place, int64_t start_ns)
{
    struct phase *phase = &place->phase;

    phase->start_ns = start_ns;
    phase->open_ns = start_ns + WARM_NS;
    phase->close_ns = phase->stop_ns = phase->open_ns + WINDOW_NS;
    place->lane.lane->stop_ns = phase->stop_ns;
    place->task = (struct worker_task){.lanes = &place->lane,
                                       .count = 1,
                                       .phase = phase,
                                       .nominal_end_ns = phase->stop_ns,
                                       .drain_max_ns = NS_PER_S};
    worker_run(place->worker, &place->task);
}

static void await(const struct place *places, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        while (!worker_done(places[i].worker))
            clock_sleep_until(clock_now() + NS_PER_MS);
}

/* Frames that a lane sent by second of its window, all of which was CPU time but for what
 * neighbours took: `share` of it was left. */
static double rate_of(const struct place *place, double share)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < FLOWS; i++)
        frames += place->sides[i].window.close.frames - place->sides[i].window.open.frames;
    return (double)frames * 1e9 / (double)(place->lane.closed_ns - place->lane.opened_ns) / share;
}

/* Frames/s of all lanes of a way in one round. */
static double measure(struct way *way)
{
    static struct place places[LANES];
    int64_t begin_ns, used_ns;
    double rate = 0, share;

    for (uint32_t i = 0; i < way->lanes; i++)
        make_lane(&places[i], way, i, i > 0 ? places[0].lane.lane : NULL);
    begin_ns = clock_now();
    for (uint32_t i = 0; i < way->lanes; i++)
        start(&places[i], begin_ns + NS_PER_MS);
    clock_sleep_until(begin_ns + WARM_NS);
    used_ns = bench_others_ns();
    clock_sleep_until(begin_ns + WARM_NS + WINDOW_NS);
    share = (double)(bench_others_ns() - used_ns) / (double)(WINDOW_NS * way->lanes);
    await(places, way->lanes);
    for (uint32_t i = 0; i < way->lanes; i++)
        rate += rate_of(&places[i], share);
    for (uint32_t i = 0; i < way->lanes; i++)
        transport_dpdk.destroy(places[i].lane.lane);
    return rate;
}

static void start_workers(void)
{
    struct core cores[CORES_MAX];
    size_t count = cores_usable(cores, CORES_MAX, false);
    struct err err = {""};

    if (count < LANES) {
        printf("skipped: needs %d cores\n", LANES);
        exit(77);
    }
    event_fd = eventfd(0, EFD_NONBLOCK);
    for (uint32_t i = 0; i < LANES; i++) {
        struct worker_conf conf = {
            .core = cores[count - 1 - i].number, .event_fd = event_fd, .seed = i + 1};

        if (worker_start(&workers[i], &conf, &err) != 0)
            fail(err.text);
    }
}

int main(void)
{
    struct way ways[] = {
        {.name = "1 core, 1 queue", .lanes = 1, .ports = 1},
        {.name = "2 cores, 2 queues of a port", .lanes = 2, .ports = 1},
        {.name = "2 cores, 2 ports", .lanes = 2, .ports = 2},
    };
    const size_t count = sizeof ways / sizeof ways[0];
    double tsc = bench_tsc_rate();
    double alone = 0;

    start_workers();
    for (size_t i = 0; i < count; i++)
        open_ports(&ways[i]);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++)
            ways[i].rates[round] = measure(&ways[i]);
    for (size_t i = 0; i < count; i++) {
        double rate = bench_median(ways[i].rates, ROUNDS);

        alone = i == 0 ? rate : alone;
        printf("%s: %.1f M frames/s, %.1f cycles a frame on each core (%.1f to %.1f M)\n",
               ways[i].name, rate / 1e6, tsc * 1e9 * ways[i].lanes / rate, ways[i].rates[0] / 1e6,
               ways[i].rates[ROUNDS - 1] / 1e6);
        if (i > 0)
            bench_at_least(ways[i].name, rate / alone, "x one core", REACH);
    }
    for (uint32_t i = 0; i < LANES; i++)
        worker_end(workers[i]);
    return 0;
}
