/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over real sockets of this process: the ranks' lanes are driven by one thread.
 */
#include "tcp/tcp.h"
#include "tcp_world.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#define LIMIT_NS (20 * NS_PER_S)
#define RANKS 5u

static void play(struct world *world, const struct pattern_request *request, uint64_t count,
                 uint32_t batch)
{
    world_open(world, request->n);
    world_schedule(world, request);
    world->phase.schedule.count = count;
    world->phase.schedule.batch = batch;
    world->phase.schedule.compute = true;
    if (!world_play(world, LIMIT_NS))
        fail_msg("not through");
}

static bool is_same(int fd, int other)
{
    struct stat one, two;

    assert_int_equal(fstat(fd, &one), 0);
    assert_int_equal(fstat(other, &two), 0);
    return one.st_ino == two.st_ino;
}

/* Connections that a lane has. */
static unsigned count_connections(const struct lane *lane)
{
    const struct tcp_lane *tcp = (const struct tcp_lane *)lane;
    unsigned count = tcp->base.out_count;

    for (unsigned i = 0; i < tcp->base.in_count; i++) {
        bool alone = true;

        for (unsigned o = 0; o < tcp->base.out_count && alone; o++)
            alone = !is_same(tcp->outs[o].fd, tcp->ins[i].fd);
        count += alone;
    }
    return count;
}

static void check_verified(const struct world *world, uint64_t count)
{
    for (uint32_t i = 0; i < world->rank_count; i++) {
        assert_string_equal(world->ranks[i].lane->error.text, "");
        assert_int_equal(world->ranks[i].executor->execution.verified, count);
        assert_true(world->ranks[i].lane->started_ns > 0);
        assert_true(world->ranks[i].lane->stopped_ns > world->ranks[i].lane->started_ns);
    }
}

/* Two messages of one flow in a step: both neighbours are one rank. */
static void test_a_ring_of_two(void **state)
{
    const struct pattern_request request = {.name = "exchange", .n = 2, .bytes = 8};
    struct world world;

    play(&world, &request, 100, 10);
    check_verified(&world, 100);
    world_close(&world);
}

/* Acknowledgements travel with what is sent the other way. */
static void test_two_ranks_have_one_connection(void **state)
{
    const struct pattern_request request = {.name = "aapc", .n = RANKS, .local = true, .bytes = 8};
    struct world world;
    unsigned seen = 0;

    play(&world, &request, 3, 1);
    for (uint32_t i = 0; i < RANKS; i++)
        seen += count_connections(world.ranks[i].lane);
    assert_int_equal(seen, RANKS * (RANKS - 1)); /* each from both ends */
    world_close(&world);
}

static uint32_t count_ways_back(const struct world *world)
{
    uint32_t count = 0;

    for (uint32_t a = 0; a < world->flow_count; a++)
        for (uint32_t b = 0; b < a; b++)
            count += world->flows[a].src == world->flows[b].dst &&
                     world->flows[a].dst == world->flows[b].src;
    return count;
}

static void test_flows_without_a_way_back(void **state)
{
    const struct pattern_request request = {.name = "bcast", .n = RANKS, .bytes = 1000};
    struct world world;
    unsigned seen = 0;
    uint32_t both;

    play(&world, &request, 3, 1);
    check_verified(&world, 3);
    for (uint32_t i = 0; i < RANKS; i++)
        seen += count_connections(world.ranks[i].lane);
    both = count_ways_back(&world);
    assert_true(both < world.flow_count / 2);
    assert_int_equal(seen, 2 * (world.flow_count - both));
    world_close(&world);
}

/* A rank that has gone: all others learn of it, whomever they wait for; who had to do with it names
 * it, unless somebody else who has hung up for it was seen first. */
static void test_a_dead_partner_ends_all(void **state)
{
    const struct pattern_request request = {.name = "exchange", .n = RANKS, .bytes = 1u << 20};
    struct world world;
    int64_t since_ns;
    uint32_t broken = 0, named = 0;

    world_open(&world, RANKS);
    world_schedule(&world, &request);
    world_prepare(&world);
    assert_int_equal(world_connect(&world, LIMIT_NS), 0);
    world_start(&world);
    while (clock_now() < world.phase.start_ns + 50 * NS_PER_MS)
        world_poll(&world, clock_now());
    transport_tcp.destroy(world.ranks[2].lane);
    world.ranks[2].lane = NULL;
    since_ns = clock_now();
    while (broken < RANKS - 1 && clock_now() < since_ns + LIMIT_NS) {
        world_poll(&world, clock_now());
        broken = 0;
        for (uint32_t i = 0; i < RANKS; i++)
            broken += i != 2 && world.ranks[i].lane->error.text[0] != '\0';
    }
    assert_int_equal(broken, RANKS - 1);
    for (uint32_t i = 0; i < RANKS; i++)
        named += i != 2 && strstr(world.ranks[i].lane->error.text, "(rank 2) broke") != NULL;
    assert_in_range(named, 1, RANKS - 1);
    world_close(&world);
}

/* The kernel asks after a partner that says nothing for long. */
static void test_connections_are_kept_alive(void **state)
{
    const struct pattern_request request = {.name = "aapc", .n = 2, .local = true, .bytes = 8};
    const struct tcp_lane *lane;
    struct world world;
    int value = 0;
    socklen_t size = sizeof value;

    world_open(&world, 2);
    world_schedule(&world, &request);
    world_prepare(&world);
    assert_int_equal(world_connect(&world, LIMIT_NS), 0);
    world_start(&world);
    lane = (const struct tcp_lane *)world.ranks[0].lane;
    assert_int_equal(lane->base.in_count, 1);
    assert_int_equal(getsockopt(lane->ins[0].fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
    assert_true(value != 0);
    assert_int_equal(getsockopt(lane->ins[0].fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &size), 0);
    assert_in_range(value, 1, 30);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_of_two),
        cmocka_unit_test(test_two_ranks_have_one_connection),
        cmocka_unit_test(test_flows_without_a_way_back),
        cmocka_unit_test(test_a_dead_partner_ends_all),
        cmocka_unit_test(test_connections_are_kept_alive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
