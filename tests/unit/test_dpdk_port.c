/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports over net_null: opening one leaves its process unchanged, and has limits; queues and
 * offloads on simulated devices.
 */
#include "eal.h"
#include "log.h"
#include "port_state.h"
#include "unit.h"

#include <pthread.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <sched.h>
#include <signal.h>

extern const struct transport transport_dpdk;

static const struct transport_run run = {.run_id = "port", .node = "port"};

/* --- opening -----------------------------------------------------------------------------------*/

static struct transport_port *open_port(const struct port_conf *conf)
{
    struct transport_port *port = NULL;
    struct err err = {""};

    if (transport_open(&transport_dpdk, &port, conf, &run, &err) != 0)
        fail_msg("open: %s", err.text);
    return port;
}

static const struct port_conf null_conf = {.name = "n:e0", .vdev = "net_null0,no-rx=1"};

/* The caller keeps its core, its signals and a clean file system; closing frees everything. */
TEST(opening_disturbs_nothing)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGBUS};
    uint16_t devices = rte_eth_dev_count_total();
    struct sigaction actions[2][COUNT(signals)];
    cpu_set_t cores[2];
    sigset_t masks[2];

    for (unsigned i = 0; i < 6; i++) {
        struct transport_port *port = i > 0 ? open_port(&null_conf) : NULL;

        assert_int_equal(rte_eth_dev_count_total(), devices + (port != NULL));
        pthread_getaffinity_np(pthread_self(), sizeof cores[0], &cores[i > 0]);
        pthread_sigmask(SIG_SETMASK, NULL, &masks[i > 0]);
        for (size_t k = 0; k < COUNT(signals); k++)
            sigaction(signals[k], NULL, &actions[i > 0][k]);
        if (port == NULL)
            continue;
        assert_true(CPU_EQUAL(&cores[0], &cores[1]));
        for (size_t k = 0; k < COUNT(signals); k++) {
            assert_ptr_equal(actions[0][k].sa_handler, actions[1][k].sa_handler);
            assert_int_equal(sigismember(&masks[0], signals[k]),
                             sigismember(&masks[1], signals[k]));
        }
        assert_int_not_equal(access(rte_eal_get_runtime_dir(), F_OK), 0);
        port_close(port);
        assert_int_equal(rte_eth_dev_count_total(), devices);
    }
}

/* Debian's DPDK holds 32 ports; the next one is refused, and nothing is lost. */
TEST(too_many_ports_are_refused)
{
    char names[RTE_MAX_ETHPORTS][32];
    struct transport_port *port = NULL;
    struct err err = {""};
    unsigned count = 0;

    for (; rte_eth_dev_count_total() < RTE_MAX_ETHPORTS; count++) {
        snprintf(names[count], sizeof names[count], "net_null%u", 100 + count);
        assert_int_equal(rte_eal_hotplug_add("vdev", names[count], ""), 0);
    }
    assert_int_equal(transport_open(&transport_dpdk, &port, &null_conf, &run, &err), -ENOSPC);
    assert_says(err.text, "pack fewer ports");
    while (count-- > 0)
        assert_int_equal(rte_eal_hotplug_remove("vdev", names[count]), 0);
    port_close(open_port(&null_conf));
}

/* The linker's names (ld --wrap) have no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __real_rte_thread_register(void);
static unsigned said;
static bool refuses;

int __wrap_rte_thread_register(void)
{
    return refuses ? -1 : __real_rte_thread_register();
}

void __wrap_log_print(enum log_level level, const char *format, ...)
{
    assert_int_equal(level, LOG_LEVEL_WARNING);
    assert_non_null(strstr(format, "threads at most"));
    said++;
}

static void *numbered(void *context)
{
    assert_int_equal(rte_lcore_id(), LCORE_ID_ANY);
    eal_thread();
    eal_thread();
    *(unsigned *)context = rte_lcore_id();
    return NULL;
}

/* A worker's thread gets a number of DPDK's while it lives. Where DPDK has none left the thread
 * goes on, and the log says so once. */
TEST(threads_are_numbered)
{
    for (unsigned i = 0; i < 2 * RTE_MAX_LCORE; i++) {
        unsigned number = 0;
        pthread_t thread;

        refuses = i >= 2 * RTE_MAX_LCORE - 3;
        assert_int_equal(pthread_create(&thread, NULL, numbered, &number), 0);
        pthread_join(thread, NULL);
        assert_true(refuses ? number == LCORE_ID_ANY : number < RTE_MAX_LCORE);
    }
    assert_int_equal(said, 1);
}

/* --- queues ------------------------------------------------------------------------------------*/

#define FAST_FREE RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE
#define HASHES (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP)

/* One queue has no RSS; several queues have the hash fields that the device supports. Fast free
 * gives each send queue a pool of its own, where there are as many. */
TEST(a_port_gets_the_queues_that_it_asks_for)
{
    static const struct {
        uint32_t asked;
        bool at_most;
        uint16_t receives, sends;     /* queues and */
        uint64_t offloads;            /* its */
        struct queue_layout expected; /* no queues: a refusal */
    } cases[] = {
        {0, false, 8, 8, 0, {1, 1, 0, 0}},
        {4, false, 8, 8, 0, {4, 4, 0, HASHES}},
        {4, false, 8, 8, FAST_FREE, {4, 8, FAST_FREE, HASHES}},
        {5, false, 8, 8, FAST_FREE, {5, 5, 0, HASHES}}, /* 10 send queues exceed 8 */
        {5, true, 8, 4, 0, {4, 4, 0, HASHES}},
        {5, false, 8, 4, 0, {0}},
    };

    for (EACH(c, cases)) {
        const struct rte_eth_dev_info device = {
            .driver_name = "net_made_up",
            .max_rx_queues = c->receives,
            .max_tx_queues = c->sends,
            .tx_offload_capa = c->offloads,
            .flow_type_rss_offloads = HASHES | RTE_ETH_RSS_VXLAN,
        };
        const struct port_conf conf = {
            .name = "a:e0", .queues = c->asked, .queues_at_most = c->at_most};
        struct queue_layout layout = {0};
        struct err err = {""};

        assert_int_equal(choose_queues(&layout, &conf, &device, &err),
                         c->expected.queues > 0 ? 0 : -EINVAL);
        assert_memory_equal(&layout, &c->expected, sizeof layout);
        assert_string_equal(
            err.text, c->expected.queues > 0
                          ? ""
                          : "a:e0: queues: 5 is more than the port's device has (net_made_up: 4)");
    }
}

/* Rings, the forwarder's queue, a burst, and each core's cache (384 of 256, the worker's and the
 * main thread's) are full: the device still finds a buffer. */
TEST(a_forwarder_has_buffers_for_all_that_it_holds)
{
    static const uint16_t rings[][2] = {
        {1024, 1024}, {512, 512}, {4096, 4096}, {256, 1024}, {64, 64}};

    for (EACH(ring, rings)) {
        uint32_t frames = receive_pool_frames((*ring)[0], (*ring)[1]);
        uint32_t held = (*ring)[0] + (*ring)[1] + 512 + 128 + 2 * 384;

        assert_true(frames > held);
        assert_true(frames < 2 * held + 2);
        assert_int_equal(frames & (frames + 1), 0); /* rte_mempool: 2^n - 1 wastes nothing */
    }
    assert_int_equal(receive_pool_frames(1024, 1024), 4095);
}
