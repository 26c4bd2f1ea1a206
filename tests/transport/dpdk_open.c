/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening dpdk ports: what it must not disturb in its process, and what it refuses, in sentences
 * that say what to do.
 */
#include "eal.h"
#include "netlab.h"
#include "netns.h"
#include "transport.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

static const struct transport_run run = {.run_id = "open", .node = "open"};

static void refuse(const struct port_conf *conf, int code, const char *says)
{
    struct transport_port *port = NULL;
    struct err err = {""};
    int rc = transport_dpdk.open(&port, conf, &run, &err);

    if (rc >= 0 || strstr(err.text, says) == NULL)
        fail_msg("'%s' (%d) does not say '%s'", err.text, rc, says);
    if (code != 0)
        assert_int_equal(rc, code);
}

static struct transport_port *open_port(const struct port_conf *conf)
{
    struct transport_port *port = NULL;
    struct err err = {""};

    if (transport_dpdk.open(&port, conf, &run, &err) != 0)
        fail_msg("open: %s", err.text);
    return port;
}

static const struct port_conf null_conf = {.name = "n:e0", .vdev = "net_null0,no-rx=1"};

/* The caller keeps its core, its signals and a clean file system. */
static void test_disturbs_nothing(void **state)
{
    cpu_set_t cores[2];
    sigset_t masks[2];
    struct sigaction actions[2][3];
    static const int signals[3] = {SIGTERM, SIGINT, SIGBUS};
    struct transport_port *port = NULL;

    for (unsigned i = 0; i < 2; i++) {
        CPU_ZERO(&cores[i]);
        sigemptyset(&masks[i]);
        pthread_getaffinity_np(pthread_self(), sizeof cores[i], &cores[i]);
        pthread_sigmask(SIG_SETMASK, NULL, &masks[i]);
        for (unsigned s = 0; s < 3; s++)
            sigaction(signals[s], NULL, &actions[i][s]);
        if (i == 0)
            port = open_port(&null_conf);
    }
    assert_true(CPU_EQUAL(&cores[0], &cores[1]));
    for (unsigned s = 0; s < 3; s++) {
        assert_ptr_equal(actions[0][s].sa_handler, actions[1][s].sa_handler);
        assert_int_equal(sigismember(&masks[0], signals[s]), sigismember(&masks[1], signals[s]));
    }
    assert_int_not_equal(access(rte_eal_get_runtime_dir(), F_OK), 0);
    transport_dpdk.close(port);
}

/* A worker's thread gets a number of DPDK's while it lives. */
static void *numbered(void *context)
{
    assert_int_equal(rte_lcore_id(), LCORE_ID_ANY);
    eal_thread();
    eal_thread();
    return (void *)(uintptr_t)rte_lcore_id();
}

static void test_numbers_threads(void **state)
{
    for (unsigned i = 0; i < 2 * RTE_MAX_LCORE; i++) {
        pthread_t thread;
        void *number;

        assert_int_equal(pthread_create(&thread, NULL, numbered, NULL), 0);
        pthread_join(thread, &number);
        assert_true((uintptr_t)number < RTE_MAX_LCORE);
    }
}

static void test_opens_again(void **state)
{
    for (unsigned i = 0; i < 5; i++) {
        uint16_t before = rte_eth_dev_count_total();
        struct transport_port *port = open_port(&null_conf);

        assert_int_equal(rte_eth_dev_count_total(), before + 1);
        transport_dpdk.close(port);
        assert_int_equal(rte_eth_dev_count_total(), before);
    }
}

static void test_refuses_nonsense(void **state)
{
    refuse(&(struct port_conf){.name = "n:e0"}, -EINVAL, "one of iface, pci and vdev");
    refuse(&(struct port_conf){.name = "n:e0", .vdev = "net_nosuch0"}, 0, "DPDK can't use");
    refuse(&(struct port_conf){.name = "n:e0", .pci = "ffff:ff:1e.7"}, 0, "vfio-pci");
    refuse(&(struct port_conf){.name = "n:e0", .vdev = "net_null0", .mac = "01:00:00:00:00:01"},
           -EINVAL, "no address of one station");
    refuse(&(struct port_conf){.name = "n:e0", .vdev = "net_null0", .ipv4 = "1.2.3"}, -EINVAL,
           "no IPv4 address");
}

/* Debian's DPDK holds 32 ports; the next one is refused, and nothing is lost. */
static void test_refuses_too_many(void **state)
{
    char names[RTE_MAX_ETHPORTS][32];
    unsigned count = 0;

    for (; rte_eth_dev_count_total() < RTE_MAX_ETHPORTS; count++) {
        snprintf(names[count], sizeof names[count], "net_null%u", 100 + count);
        assert_int_equal(rte_eal_hotplug_add("vdev", names[count], ""), 0);
    }
    refuse(&null_conf, -ENOSPC, "pack fewer ports");
    while (count-- > 0)
        assert_int_equal(rte_eal_hotplug_remove("vdev", names[count]), 0);
    transport_dpdk.close(open_port(&null_conf));
}

/* Frames that nobody takes out of AF_PACKET's ring are a host's drops, and counted. */
static void test_counts_a_full_ring(void **state)
{
    const struct port_conf conf = {.name = "n:e0",
                                   .netns = netlab_namespace(1),
                                   .iface = "eth0",
                                   .mac = "02:00:00:00:00:01",
                                   .queue_frames = 64};
    struct transport_port *port = open_port(&conf);
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = 6};
    uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5};
    struct port_facts facts;
    struct err err = {""};
    int64_t dropped;
    int before, fd;

    assert_int_equal(netns_enter(netlab_namespace(0), &before, &err), 0);
    fd = socket(AF_PACKET, SOCK_RAW, 0);
    assert_true(fd >= 0);
    to.sll_ifindex = (int)if_nametoindex("eth0");
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(sendto(fd, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to),
                         sizeof frame);
    close(fd);
    netns_leave(before);
    /* The kernels at both ends may say a word of their own. */
    transport_dpdk.facts(port, &facts, true);
    assert_in_range(facts.hardware.dropped_receive, 200 - 64, 200 - 64 + 10);
    dropped = facts.hardware.dropped_receive;
    transport_dpdk.idle(port, 1);
    transport_dpdk.facts(port, &facts, true);
    assert_int_equal(facts.hardware.received_frames, 64);
    assert_in_range(facts.hardware.dropped_receive, dropped, dropped + 1);
    assert_int_equal(facts.hardware.dropped_send, 0);
    transport_dpdk.close(port);
}

static void test_refuses_interfaces(void **state)
{
    struct port_conf conf = {.name = "n:e0", .netns = netlab_namespace(0), .iface = "nosuch0"};

    refuse(&conf, -ENODEV, "no interface 'nosuch0'");
    conf.iface = "a-name-that-is-too-long";
    refuse(&conf, -EINVAL, "too long");
    conf.iface = "lo";
    refuse(&conf, -EINVAL, "no Ethernet");
    conf.iface = "eth0";
    conf.driver = "af_nosuch";
    refuse(&conf, -EINVAL, "neither af_packet nor af_xdp");
    conf.driver = NULL;
    conf.netns = "sbt-no-such-namespace";
    refuse(&conf, 0, "sbt-no-such-namespace");
    conf.netns = netlab_namespace(0);
    assert_int_equal(netlab_run((const char *const[]){"ip", "-n", netlab_namespace(0), "link",
                                                      "set", "eth0", "down", NULL}),
                     0);
    refuse(&conf, -ENETDOWN, "is down");
}

static bool has_link(struct transport_port *port)
{
    struct port_facts facts;

    transport_dpdk.facts(port, &facts, false);
    return facts.link_up;
}

/* The kernel notes links that change when it finds time, once a second for all of the machine. */
static void await_link(struct transport_port *port, bool up)
{
    int64_t limit_ns = clock_now() + 5 * NS_PER_S;

    while (has_link(port) != up && clock_now() < limit_ns)
        clock_sleep_until(clock_now() + 10 * NS_PER_MS);
    assert_int_equal(has_link(port), up);
}

/* The far end goes down: no link; and promiscuous mode ends with the port. */
static void test_follows_link(void **state)
{
    const struct port_conf conf = {
        .name = "n:e0", .netns = netlab_namespace(1), .iface = "eth0", .mac = "02:00:00:00:00:01"};
    struct transport_port *port = open_port(&conf);

    await_link(port, true);
    assert_int_equal(netlab_run((const char *const[]){"ip", "-n", netlab_switch(), "link", "set",
                                                      "p1", "down", NULL}),
                     0);
    await_link(port, false);
    transport_dpdk.close(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disturbs_nothing),   cmocka_unit_test(test_numbers_threads),
        cmocka_unit_test(test_opens_again),        cmocka_unit_test(test_refuses_nonsense),
        cmocka_unit_test(test_refuses_too_many),   cmocka_unit_test(test_counts_a_full_ring),
        cmocka_unit_test(test_refuses_interfaces), cmocka_unit_test(test_follows_link),
    };
    const char *reason = netlab_make(2, 1500);
    int failed;

    if (reason != NULL) {
        printf("skipped: %s\n", reason);
        return 77;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    netlab_unmake();
    return failed == 0 ? 0 : 1;
}
