/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_world.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void set_defaults(struct world *world, uint32_t ranks)
{
    memset(world, 0, sizeof *world);
    memcpy(world->secret.key, "a key that only this test knows.", sizeof world->secret.key);
    world->secret.run_id = world->run.run_id = "test";
    world->run.node = "node";
    world->rank_count = ranks;
    world->stream_ns = 200 * NS_PER_MS;
    world->phase = (struct phase){
        .trial = 7,
        .number = 1,
        .tag = 0x1234,
        .traffic = TRAFFIC_STREAM,
        .sizes = {65536},
        .size_count = 1,
        .load = {.unlimited = true},
        .options = &world->options,
    };
    world->options = (struct tcp_options){.streams = 1, .nodelay = true};
}

static void open_ports(struct world *world)
{
    for (uint32_t i = 0; i < world->rank_count; i++) {
        struct world_rank *rank = &world->ranks[i];
        int rc;

        rank->conf.name = rank->name;
        rc = transport_tcp.open(&rank->port, &rank->conf, &world->run, &world->err);
        if (rc)
            fail_msg("open: %s", world->err.text);
        rank->blob = transport_address(&transport_tcp, rank->port);
    }
}

void world_open(struct world *world, uint32_t ranks)
{
    set_defaults(world, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        struct world_rank *rank = &world->ranks[i];

        snprintf(rank->name, sizeof rank->name, "node%u:lo", i);
        snprintf(rank->address, sizeof rank->address, "127.0.0.%u", i + 2);
        rank->conf.tcp_address = rank->address;
    }
    open_ports(world);
}

void world_open_netns(struct world *world, uint32_t ranks, const char *prefix, const char *iface)
{
    set_defaults(world, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        struct world_rank *rank = &world->ranks[i];

        snprintf(rank->name, sizeof rank->name, "%s%u", prefix, i);
        rank->conf.netns = rank->name;
        rank->conf.iface = iface;
    }
    open_ports(world);
}

void world_close(struct world *world)
{
    world_finish(world);
    pattern_plan_free(world->plan);
    for (uint32_t i = 0; i < world->rank_count; i++)
        if (world->ranks[i].port)
            transport_tcp.close(world->ranks[i].port);
}

struct world_flow *world_add(struct world *world, uint32_t src, uint32_t dst,
                             enum pattern_role role)
{
    struct world_flow *flow = &world->flows[world->flow_count++];

    *flow = (struct world_flow){.src = src, .dst = dst, .role = role};
    return flow;
}

static void plan_lanes(struct world *world)
{
    for (uint32_t i = 0; i < world->flow_count; i++) {
        struct world_flow *flow = &world->flows[i];
        struct world_rank *src = &world->ranks[flow->src];
        struct world_rank *dst = &world->ranks[flow->dst];

        memset(&flow->source, 0, sizeof flow->source);
        memset(&flow->destination, 0, sizeof flow->destination);
        src->sends[src->send_count++] =
            (struct lane_flow){.src = flow->src,
                               .dst = flow->dst,
                               .role = flow->role,
                               .partner = flow->detour ? *flow->detour : dst->blob,
                               .side = &flow->source};
        dst->receives[dst->receive_count++] = (struct lane_flow){.src = flow->src,
                                                                 .dst = flow->dst,
                                                                 .role = flow->role,
                                                                 .partner = src->blob,
                                                                 .side = &flow->destination};
    }
}

static void make_executor(struct world *world, uint32_t number)
{
    struct world_rank *rank = &world->ranks[number];

    if (executor_make(&rank->executor, &world->phase, world->plan, number, world->rank_count,
                      &world->err))
        fail_msg("executor: %s", world->err.text);
}

void world_schedule(struct world *world, const struct pattern_request *request)
{
    struct pattern_flow flows[WORLD_FLOWS];
    char why[256] = "";

    if (pattern_plan_make(&world->plan, request, why, sizeof why) != 0)
        fail_msg("%s", why);
    world->phase.traffic = TRAFFIC_SCHEDULE;
    world->phase.number = 0;
    world->phase.schedule = (struct schedule_options){.batch = 1, .warmup = 1};
    for (uint32_t rank = 0; rank < world->rank_count; rank++) {
        size_t count = pattern_flows(world->plan, 0, rank, PATTERN_SENDS, flows, WORLD_FLOWS);

        for (size_t i = 0; i < count; i++)
            world_add(world, flows[i].src, flows[i].dst, flows[i].role);
    }
}

int world_prepare(struct world *world)
{
    plan_lanes(world);
    world->err.text[0] = '\0';
    for (uint32_t i = 0; world->plan != NULL && i < world->rank_count; i++)
        make_executor(world, i);
    for (uint32_t i = 0; i < world->rank_count; i++) {
        struct world_rank *rank = &world->ranks[i];
        struct lane_request request = {
            .executor = rank->executor,
            .port = rank->port,
            .secret = rank->secret ? rank->secret : &world->secret,
            .phase = &world->phase,
            .rank = i,
            .ranks = world->rank_count,
            .sends = rank->sends,
            .send_count = rank->send_count,
            .receives = rank->receives,
            .receive_count = rank->receive_count,
            .count = &rank->count,
            .line_rate_bps = world->line_rate_bps,
        };
        int rc = transport_tcp.prepare(&rank->lane, &request, &world->err);

        if (rc)
            return rc;
    }
    return 0;
}

int world_connect(struct world *world, int64_t limit_ns)
{
    int64_t until_ns = clock_now() + limit_ns;
    bool ready;

    do {
        ready = true;
        if (world->pump)
            world->pump(world->way);
        for (uint32_t i = 0; i < world->rank_count; i++) {
            int rc = 0;

            world->err = (struct err){""}; /* why it waits is not why it fails */
            if (world->ranks[i].lane)
                rc = transport_tcp.connect(world->ranks[i].lane, clock_now(), &world->err);
            if (rc && rc != -EAGAIN)
                return rc;
            ready = ready && rc == 0;
        }
        if (ready)
            return 0;
    } while (clock_now() < until_ns);
    return -ETIMEDOUT;
}

void world_start(struct world *world)
{
    struct phase *phase = &world->phase;

    phase->start_ns = clock_now() + 2 * NS_PER_MS;
    phase->stop_ns = phase->start_ns + world->stream_ns;
    if (phase->traffic != TRAFFIC_STREAM)
        phase->stop_ns = phase->start_ns + 60 * NS_PER_S;
    phase->open_ns = phase->start_ns + world->stream_ns / 4;
    phase->close_ns = phase->stop_ns - world->stream_ns / 4;
    for (uint32_t i = 0; i < world->rank_count; i++)
        if (world->ranks[i].lane)
            transport_tcp.poll(world->ranks[i].lane, clock_now());
}

double world_metric(const struct world_rank *rank, const struct lane_flow *flow, const char *name)
{
    static struct flow_reading reading;

    reading = (struct flow_reading){.metric_count = 0};
    transport_tcp.read_flow(rank->lane, flow, &reading);
    for (unsigned i = 0; i < reading.metric_count; i++)
        if (strcmp(reading.metrics[i].name, name) == 0)
            return reading.metrics[i].value;
    fail_msg("no metric %s", name);
    return 0;
}

static void mark(struct flow_side *side, const struct phase *phase, int64_t now_ns)
{
    if (now_ns < phase->open_ns)
        side->window.open = side->live;
    if (now_ns < phase->close_ns)
        side->window.close = side->live;
}

void world_poll(struct world *world, int64_t now_ns)
{
    if (world->pump)
        world->pump(world->way);
    for (uint32_t i = 0; i < world->flow_count; i++) {
        mark(&world->flows[i].source, &world->phase, now_ns);
        mark(&world->flows[i].destination, &world->phase, now_ns);
    }
    for (uint32_t i = 0; i < world->rank_count; i++)
        if (world->ranks[i].lane)
            transport_tcp.poll(world->ranks[i].lane, clock_now());
}

bool world_finished(const struct world *world)
{
    for (uint32_t i = 0; i < world->rank_count; i++) {
        const struct lane *lane = world->ranks[i].lane;

        if (lane && !(lane->tx_done && lane->rx_done))
            return false;
    }
    return true;
}

bool world_run(struct world *world, int64_t limit_ns)
{
    int64_t until_ns = clock_now() + limit_ns;

    world_start(world);
    while (!world_finished(world)) {
        int64_t now_ns = clock_now();

        if (now_ns >= until_ns)
            return false;
        world_poll(world, now_ns);
    }
    return true;
}

void world_finish(struct world *world)
{
    for (uint32_t i = 0; i < world->rank_count; i++) {
        struct world_rank *rank = &world->ranks[i];

        if (rank->lane)
            transport_tcp.destroy(rank->lane);
        rank->lane = NULL;
        executor_free(rank->executor);
        rank->executor = NULL;
        rank->send_count = rank->receive_count = 0;
    }
    world->phase.number++;
}

bool world_play(struct world *world, int64_t limit_ns)
{
    if (world_prepare(world) || world_connect(world, limit_ns))
        fail_msg("not ready: %s", world->err.text);
    return world_run(world, limit_ns);
}

unsigned world_open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}
