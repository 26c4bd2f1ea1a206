/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport between network namespaces: two of them, one veth pair. Needs root and `ip`.
 */
#include "tcp_world.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_NS (20 * NS_PER_S)
#define SKIPPED 77

extern char **environ;

static char prefix[16]; /* of this process's namespaces */
static char space[2][32];
static struct world *world;

/* Runs `ip` with the words of a line; returns its exit status. */
static int ip(const char *format, ...)
{
    char line[256];
    char *words[32] = {strdup("ip")};
    unsigned count = 1;
    va_list args;
    pid_t pid;
    int status = -1;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    if (posix_spawnp(&pid, "ip", NULL, NULL, words, environ) == 0)
        waitpid(pid, &status, 0);
    free(words[0]);
    return status;
}

static int make_spaces(void)
{
    int failed = 0;

    snprintf(prefix, sizeof prefix, "swt%d-", getpid());
    for (int i = 0; i < 2; i++) {
        snprintf(space[i], sizeof space[i], "%s%d", prefix, i);
        failed |= ip("netns add %s", space[i]);
    }
    failed |= ip("link add eth0 netns %s type veth peer name eth0 netns %s", space[0], space[1]);
    for (int i = 0; i < 2; i++) {
        failed |= ip("-n %s address add 198.19.7.%d/24 dev eth0", space[i], i + 1);
        failed |= ip("-n %s address add fd00:7::%d/64 dev eth0 nodad", space[i], i + 1);
        failed |= ip("-n %s link set eth0 up", space[i]);
        failed |= ip("-n %s link set lo up", space[i]);
    }
    return failed;
}

static void remove_spaces(void)
{
    for (int i = 0; i < 2; i++)
        ip("netns delete %s", space[i]);
}

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
    struct flow_metric metrics[16];
    double segments = 0;
    double payload;
    unsigned count;

    world_open_netns(world, 2, prefix, "eth0");
    world_add(world, 0, 1, PATTERN_GENERATE);
    world->phase.sizes[0] = 65536;
    world->phase.load = (struct load){.rate_bps = 10e6};
    world->stream_ns = NS_PER_S;
    world->pump = oversleep;
    play_verified();
    payload = (double)world->flows[0].source.live.payload_bytes;
    assert_true(payload > 0.5 * 10e6 / 8);
    count =
        transport_tcp.flow_metrics(world->ranks[0].lane, &world->ranks[0].sends[0], metrics, 16);
    for (unsigned i = 0; i < count; i++)
        if (strcmp(metrics[i].name, "segments_sent") == 0)
            segments = metrics[i].value;
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
    transport_tcp.facts(world->ranks[1].port, &facts);
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
    second->conf.netns = space[0];
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
    world->ranks[1].blob.bytes[7] = 200; /* 198.19.7.200 */
    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), -EHOSTUNREACH);
    assert_non_null(strstr(world->err.text, "198.19.7.1"));
    assert_non_null(strstr(world->err.text, "198.19.7.200"));
}

/* An address that takes packets and never answers. */
static void partner_is_mute(void **state)
{
    struct lane *lane;

    world_open_netns(world, 2, prefix, "eth0");
    world->ranks[1].blob.bytes[7] = 201; /* 198.19.7.201 */
    assert_int_equal(
        ip("-n %s neighbour add 198.19.7.201 lladdr 02:00:00:00:00:99 dev eth0", space[0]), 0);
    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    lane = world->ranks[0].lane;
    assert_int_equal(transport_tcp.connect(lane, clock_now(), &world->err), -EAGAIN);
    assert_int_equal(transport_tcp.connect(lane, clock_now() + 11 * NS_PER_S, &world->err),
                     -ETIMEDOUT);
    assert_non_null(strstr(world->err.text, "198.19.7.1 port"));
    assert_non_null(strstr(world->err.text, "198.19.7.201 port"));
    assert_non_null(strstr(world->err.text, "timed out"));
}

static bool has_link(void)
{
    struct port_status status;

    transport_tcp.status(world->ranks[0].port, &status);
    return status.link_up;
}

static void link_is_followed(void **state)
{
    world_open_netns(world, 2, prefix, "eth0");
    assert_true(has_link());
    assert_int_equal(ip("-n %s link set eth0 down", space[1]), 0);
    assert_false(has_link());
    assert_int_equal(ip("-n %s link set eth0 up", space[1]), 0);
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
    int failed;

    if (geteuid() != 0) {
        puts("skipped: network namespaces need root");
        return SKIPPED;
    }
    if (make_spaces()) {
        remove_spaces();
        puts("skipped: can't make network namespaces with veth");
        return SKIPPED;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_spaces();
    return failed;
}
