/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening dpdk ports: what it must not disturb in its process, and what is limited.
 */
#include "eal.h"
#include "log.h"
#include "transport.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

static const struct transport_run run = {.run_id = "open", .node = "open"};

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

/* Debian's DPDK holds 32 ports; the next one is refused, and nothing is lost. */
static void test_refuses_too_many(void **state)
{
    char names[RTE_MAX_ETHPORTS][32];
    struct transport_port *port = NULL;
    struct err err = {""};
    unsigned count = 0;

    for (; rte_eth_dev_count_total() < RTE_MAX_ETHPORTS; count++) {
        snprintf(names[count], sizeof names[count], "net_null%u", 100 + count);
        assert_int_equal(rte_eal_hotplug_add("vdev", names[count], ""), 0);
    }
    assert_int_equal(transport_dpdk.open(&port, &null_conf, &run, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "pack fewer ports"));
    while (count-- > 0)
        assert_int_equal(rte_eal_hotplug_remove("vdev", names[count]), 0);
    transport_dpdk.close(open_port(&null_conf));
}

/* The linker's names (ld --wrap) have no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __real_rte_thread_register(void);
static unsigned refused, said;
static bool refuses;

int __wrap_rte_thread_register(void)
{
    refused += refuses;
    return refuses ? -1 : __real_rte_thread_register();
}

void __wrap_log_print(enum log_level level, const char *format, ...)
{
    assert_int_equal(level, LOG_LEVEL_WARNING);
    assert_non_null(strstr(format, "threads at most"));
    said++;
}

static void *without_number(void *context)
{
    eal_thread();
    return context;
}

/* A thread for which DPDK has no number left goes on, and the log says so once. */
static void test_threads_beyond_the_most_are_told_once(void **state)
{
    refuses = true;
    for (unsigned i = 0; i < 3; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, without_number, NULL), 0);
        pthread_join(thread, NULL);
    }
    assert_int_equal(refused, 3);
    assert_int_equal(said, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disturbs_nothing),
        cmocka_unit_test(test_numbers_threads),
        cmocka_unit_test(test_opens_again),
        cmocka_unit_test(test_refuses_too_many),
        cmocka_unit_test(test_threads_beyond_the_most_are_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
