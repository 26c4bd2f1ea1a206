/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What queues and offloads a port gets of devices that this machine need not have.
 */
#include "port_state.h"

#include <rte_ethdev.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct rte_eth_dev_info a_device(uint16_t receives, uint16_t sends, uint64_t offloads)
{
    return (struct rte_eth_dev_info){
        .driver_name = "net_made_up",
        .max_rx_queues = receives,
        .max_tx_queues = sends,
        .tx_offload_capa = offloads,
        .flow_type_rss_offloads =
            RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_VXLAN,
    };
}

static struct queue_layout laid_out(uint32_t queues, bool at_most,
                                    const struct rte_eth_dev_info *device)
{
    struct port_conf conf = {.name = "a:e0", .queues = queues, .queues_at_most = at_most};
    struct queue_layout layout;
    struct err err = {""};

    if (choose_queues(&layout, &conf, device, &err) != 0)
        fail_msg("%s", err.text);
    return layout;
}

static void one_queue_is_not_spread(void **state)
{
    struct rte_eth_dev_info device = a_device(8, 8, 0);
    struct queue_layout layout = laid_out(0, false, &device);

    assert_int_equal(layout.queues, 1);
    assert_int_equal(layout.send_queues, 1);
    assert_int_equal(layout.spread_by, 0);
    assert_int_equal(layout.send_offloads, 0);
}

static void several_are_spread_by_what_the_device_hashes(void **state)
{
    struct rte_eth_dev_info device = a_device(8, 8, 0);
    struct queue_layout layout = laid_out(4, false, &device);

    assert_int_equal(layout.queues, 4);
    assert_int_equal(layout.spread_by, RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP);
}

static void fast_free_gives_every_pool_a_send_queue(void **state)
{
    struct rte_eth_dev_info device = a_device(8, 8, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
    struct queue_layout layout = laid_out(4, false, &device);

    assert_int_equal(layout.send_offloads, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
    assert_int_equal(layout.send_queues, 8);
    layout = laid_out(5, false, &device); /* 10 send queues are more than there are */
    assert_int_equal(layout.send_offloads, 0);
    assert_int_equal(layout.send_queues, 5);
}

static void more_queues_than_there_are_are_refused(void **state)
{
    struct rte_eth_dev_info device = a_device(8, 4, 0);
    struct port_conf conf = {.name = "a:e0", .queues = 5};
    struct queue_layout layout;
    struct err err = {""};

    assert_true(choose_queues(&layout, &conf, &device, &err) < 0);
    assert_string_equal(err.text, "a:e0: queues: 5 are more than its device has (net_made_up: 4)");
    assert_int_equal(laid_out(5, true, &device).queues, 4);
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
        cmocka_unit_test(one_queue_is_not_spread),
        cmocka_unit_test(several_are_spread_by_what_the_device_hashes),
        cmocka_unit_test(fast_free_gives_every_pool_a_send_queue),
        cmocka_unit_test(more_queues_than_there_are_are_refused),
        cmocka_unit_test(a_forwarder_has_buffers_for_all_that_it_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
