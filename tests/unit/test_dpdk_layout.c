/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What queues and offloads a port gets of devices that this machine need not have.
 */
#include "port_state.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FAST_FREE RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE
#define HASHES (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP)

/* One queue is not spread, several by what the device hashes of ours; fast free gives every pool a
 * send queue, where there are as many. */
static void a_port_gets_the_queues_that_it_asks_for(void **state)
{
    static const struct {
        uint32_t asked;
        bool at_most;
        uint16_t receives, sends;     /* that the device has, and */
        uint64_t offloads;            /* its */
        struct queue_layout expected; /* no queues: it is refused */
    } cases[] = {
        {0, false, 8, 8, 0, {1, 1, 0, 0}},
        {4, false, 8, 8, 0, {4, 4, 0, HASHES}},
        {4, false, 8, 8, FAST_FREE, {4, 8, FAST_FREE, HASHES}},
        {5, false, 8, 8, FAST_FREE, {5, 5, 0, HASHES}}, /* 10 send queues are more than 8 */
        {5, true, 8, 4, 0, {4, 4, 0, HASHES}},
        {5, false, 8, 4, 0, {0}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct rte_eth_dev_info device = {
            .driver_name = "net_made_up",
            .max_rx_queues = cases[i].receives,
            .max_tx_queues = cases[i].sends,
            .tx_offload_capa = cases[i].offloads,
            .flow_type_rss_offloads = HASHES | RTE_ETH_RSS_VXLAN,
        };
        const struct port_conf conf = {
            .name = "a:e0", .queues = cases[i].asked, .queues_at_most = cases[i].at_most};
        struct queue_layout layout = {0};
        struct err err = {""};

        assert_int_equal(choose_queues(&layout, &conf, &device, &err),
                         cases[i].expected.queues > 0 ? 0 : -EINVAL);
        assert_memory_equal(&layout, &cases[i].expected, sizeof layout);
        assert_string_equal(err.text,
                            cases[i].expected.queues > 0
                                ? ""
                                : "a:e0: queues: 5 are more than its device has (net_made_up: 4)");
    }
}

/* Rings, the forwarder's queue and a burst full, and each cache of a core as full as it gets (384
 * of 256, the worker's and the main thread's): the device still finds a buffer. */
static void a_forwarder_has_buffers_for_all_that_it_holds(void **state)
{
    static const uint16_t rings[][2] = {
        {1024, 1024}, {512, 512}, {4096, 4096}, {256, 1024}, {64, 64}};

    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        uint32_t frames = receive_pool_frames(rings[i][0], rings[i][1]);
        uint32_t held = rings[i][0] + rings[i][1] + 512 + 128 + 2 * 384;

        assert_true(frames > held);
        assert_true(frames < 2 * held + 2);
        assert_int_equal(frames & (frames + 1), 0); /* rte_mempool: 2^n - 1 wastes nothing */
    }
    assert_int_equal(receive_pool_frames(1024, 1024), 4095);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_gets_the_queues_that_it_asks_for),
        cmocka_unit_test(a_forwarder_has_buffers_for_all_that_it_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
