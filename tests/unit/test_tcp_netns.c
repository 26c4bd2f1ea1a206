/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport between network namespaces: two of them, one veth pair. Needs root and `ip`.
 */
#include "../transport/netlab.h"
#include "tcp_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_NS (20 * NS_PER_S)
#define SKIPPED 77

static char prefix[48]; /* of the namespaces */
static struct world *world;

#define IP(...) (netlab_run((const char *const[]){"ip", __VA_ARGS__, NULL}) == 0)

static int setup(void **state)
{
    world = calloc(1, sizeof *world);
    return world ? 0 : -1;
}

static int teardown(void **state)
{
    world_close(world);
    free(world);
    return 0;
}

static void play_verified(void)
{
    bool finished = world_play(world, LIMIT_NS);

    for (uint32_t i = 0; i < world->rank_count; i++)
        assert_string_equal(world->ranks[i].lane->error.text, "");
    assert_true(finished);
    for (uint32_t i = 0; i < world->flow_count; i++) {
        const struct world_flow *flow = &world->flows[i];

        assert_true(flow->destination.live.payload_bytes > 0);
        assert_int_equal(flow->destination.live.payload_bytes, flow->source.live.payload_bytes);
        assert_int_equal(flow->destination.corrupted, 0);
    }
}

/* A worker on a busy core: it comes when more is due than a segment, and less than two. */
static void oversleep(void *way)
{
    clock_sleep_until(clock_now() + NS_PER_MS);
}

/* A pace must not cut segments where it looks: their headers would be load of their own. */
static void paced_segments_are_full(void **state)
{
    double segments, payload;

    world_open_netns(world, 2, prefix, "eth0");
    world_add(world, 0, 1, PATTERN_GENERATE);
    world->phase.sizes[0] = 65536;
    world->phase.load = (struct load){.rate_bps = 10e6};
    world->stream_ns = NS_PER_S;
    world->pump = oversleep;
    play_verified();
    payload = (double)world->flows[0].source.live.payload_bytes;
    assert_true(payload > 0.5 * 10e6 / 8);
    segments = world_metric(&world->ranks[0], &world->ranks[0].sends[0], "segments_sent");
    assert_true(segments >= payload / 1448);
    assert_true(segments < 1.1 * payload / 1448 + 20);
}

/* Opens a rank's port again, after its configuration was changed. */
static void reopen(struct world_rank *rank)
{
    transport_tcp.close(rank->port);
    rank->port = NULL;
    assert_int_equal(transport_tcp.open(&rank->port, &rank->conf, &world->run, &world->err), 0);
    rank->blob = transport_address(&transport_tcp, rank->port);
}

static void over_ipv6(void **state)
{
    struct port_facts facts;

    world_open_netns(world, 2, prefix, "eth0");
    world->ranks[0].conf.tcp_address = "fd00:7::1";
    world->ranks[1].conf.tcp_address = "fd00:7::2";
    reopen(&world->ranks[0]);
    reopen(&world->ranks[1]);
    transport_tcp.facts(world->ranks[1].port, &facts, false);
    assert_string_equal(facts.ipv6, "fd00:7::2");
    world_add(world, 0, 1, PATTERN_GENERATE);
    world_add(world, 1, 0, PATTERN_GENERATE);
    play_verified();
}

/* 80 Mbit/s at layer 1 are 80 * 1448 / 1538 Mbit/s of payload at MTU 1500. */
static void rate_at_layer_1(void **state)
{
    const double rate = 80e6 / 8 * 1448 / 1538;
    const struct flow_side *side;

    world_open_netns(world, 2, prefix, "eth0");
    world_add(world, 0, 1, PATTERN_GENERATE);
    world->phase.load = (struct load){.rate_bps = 80e6};
    world->line_rate_bps = 100000000;
    world->stream_ns = NS_PER_S;
    play_verified();
    side = &world->flows[0].source;
    assert_true((double)side->intended > rate * 0.999);
    /* The block that was begun before the stop is asked for, too. */
    assert_true((double)side->intended < rate * 1.001 + 65536);
    assert_true((double)side->live.payload_bytes > rate * 0.7);
    assert_true((double)side->live.payload_bytes < rate * 1.001 + 65536);
}

static void same_host_is_refused(void **state)
{
    struct world_rank *first;
    struct world_rank *second;

    world_open_netns(world, 2, prefix, "eth0");
    first = &world->ranks[0];
    second = &world->ranks[1];
    world_add(world, 0, 1, PATTERN_GENERATE);
    /* The second rank moves into the first one's namespace. */
    second->conf.netns = netlab_namespace(0);
    second->conf.tcp_address = "fd00:7::1";
    reopen(second);
    assert_int_equal(world_prepare(world), -EAFNOSUPPORT);
    assert_non_null(strstr(world->err.text, "another address family"));
    world_finish(world);
    first->conf.tcp_address = "fd00:7::1";
    reopen(first);
    assert_int_equal(world_prepare(world), -EINVAL);
    assert_non_null(strstr(world->err.text, "network namespace of its own"));
}

static void partner_is_not_there(void **state)
{
    world_open_netns(world, 2, prefix, "eth0");
    world->ranks[1].blob.bytes[7] = 200; /* 10.99.0.200 */
    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), -EHOSTUNREACH);
    assert_non_null(strstr(world->err.text, "10.99.0.1"));
    assert_non_null(strstr(world->err.text, "10.99.0.200"));
}

/* An address that takes packets and never answers. */
static void partner_is_mute(void **state)
{
    struct lane *lane;

    world_open_netns(world, 2, prefix, "eth0");
    world->ranks[1].blob.bytes[7] = 201; /* 10.99.0.201 */
    assert_true(IP("-n", netlab_namespace(0), "neighbour", "add", "10.99.0.201", "lladdr",
                   "02:00:00:00:00:99", "dev", "eth0"));
    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    lane = world->ranks[0].lane;
    assert_int_equal(transport_tcp.connect(lane, clock_now(), &world->err), -EAGAIN);
    assert_int_equal(transport_tcp.connect(lane, clock_now() + 11 * NS_PER_S, &world->err),
                     -ETIMEDOUT);
    assert_non_null(strstr(world->err.text, "10.99.0.1 port"));
    assert_non_null(strstr(world->err.text, "10.99.0.201 port"));
    assert_non_null(strstr(world->err.text, "timed out"));
}

static bool has_link(void)
{
    struct port_facts facts;

    transport_tcp.facts(world->ranks[0].port, &facts, false);
    return facts.link_up;
}

static void link_is_followed(void **state)
{
    world_open_netns(world, 2, prefix, "eth0");
    assert_true(has_link());
    assert_true(IP("-n", netlab_switch(), "link", "set", "p0", "down"));
    assert_false(has_link());
    assert_true(IP("-n", netlab_switch(), "link", "set", "p0", "up"));
    assert_true(has_link());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(over_ipv6),
        TEST(rate_at_layer_1),
        TEST(same_host_is_refused),
        TEST(paced_segments_are_full),
        TEST(partner_is_not_there),
        TEST(partner_is_mute),
        TEST(link_is_followed),
    };
    const char *reason = netlab_make(2, 1500);

    if (reason != NULL) {
        printf("skipped: %s\n", reason);
        return SKIPPED;
    }
    snprintf(prefix, sizeof prefix, "%s", netlab_namespace(0));
    prefix[strlen(prefix) - 1] = '\0';
    for (size_t i = 0; i < 2; i++)
        if (!IP("-n", netlab_namespace(i), "address", "add",
                i == 0 ? "fd00:7::1/64" : "fd00:7::2/64", "dev", "eth0", "nodad") ||
            !IP("-n", netlab_namespace(i), "link", "set", "lo", "up"))
            return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
