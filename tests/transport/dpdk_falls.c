/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load that falls within a stream (RFC 2544, 26.5) over two ports of net_ring, polled by hand
 * with times of our own: so many frames before and behind the fall, and when the frame behind the
 * last lost one was sent.
 */
#include "ring_pair.h"

#include "frame.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FPS 1e5
#define FRAME_NS 10000 /* from one frame to the next before the fall; four times as much behind */
#define FALL_NS (10 * NS_PER_MS)
#define STOP_NS (30 * NS_PER_MS)
#define START_NS NS_PER_S
#define STEP_NS 1000
#define BEFORE (FALL_NS / FRAME_NS)
#define ALL (BEFORE + (STOP_NS - FALL_NS) / (4 * FRAME_NS))

static struct ring_pair pair;

static void begin(void)
{
    static const struct dpdk_options options = {.header = HEADER_L2,
                                                .udp_sources = 1,
                                                .burst = 32,
                                                .catch_up = 8,
                                                .falls_to = 25,
                                                .falls_after_ns = FALL_NS};
    const struct phase phase = {
        .tag = 7,
        .traffic = TRAFFIC_STREAM,
        .sizes = {128},
        .size_count = 1,
        .load = {.rate_fps = FPS},
        .options = &options,
        .start_ns = START_NS,
        .open_ns = START_NS,
        .close_ns = START_NS + STOP_NS,
        .stop_ns = START_NS + STOP_NS,
    };

    ring_pair_connect(&pair, &phase);
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.start(pair.lanes[i], START_NS);
}

/* Polls both ends; of what is sent from `lose_ns` to `keep_ns` behind the start nothing arrives. */
static void run(int64_t lose_ns, int64_t keep_ns)
{
    for (int64_t now_ns = START_NS; now_ns < START_NS + STOP_NS + NS_PER_MS; now_ns += STEP_NS) {
        bool lost = now_ns >= START_NS + lose_ns && now_ns < START_NS + keep_ns;
        void *frame;

        transport_dpdk.poll(pair.lanes[0], now_ns);
        while (rte_ring_dequeue(pair.rings.sent[0], &frame) == 0) {
            if (lost)
                rte_pktmbuf_free(frame);
            else
                assert_int_equal(rte_ring_enqueue(pair.rings.received[1], frame), 0);
        }
        transport_dpdk.poll(pair.lanes[1], now_ns);
        if (now_ns == START_NS + FALL_NS) {
            transport_dpdk.account(pair.lanes[0]);
            assert_in_range(pair.sides[0].live.frames, BEFORE - 1, BEFORE + 1);
        }
    }
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.account(pair.lanes[i]);
    assert_in_range(pair.sides[0].live.frames, ALL - 2, ALL + 2);
    assert_in_range(pair.sides[0].intended, pair.sides[0].live.frames,
                    pair.sides[0].live.frames + 1);
}

static double metric(const char *name)
{
    struct flow_metric metrics[4];
    unsigned count = transport_dpdk.flow_metrics(pair.lanes[1], &pair.flows[1], metrics, 4);

    for (unsigned i = 0; i < count; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return metrics[i].value;
    fail_msg("no metric %s", name);
    return 0;
}

static void the_last_loss_is_told_by_the_frame_behind_it(void **state)
{
    int64_t keep_ns = FALL_NS + 5 * NS_PER_MS;

    (void)state;
    begin();
    run(2 * NS_PER_MS, keep_ns);
    assert_true(metric("gap_ns") >= keep_ns && metric("gap_ns") <= keep_ns + 4 * FRAME_NS);
    assert_int_equal(metric("numbers"), pair.sides[0].live.frames);
    ring_pair_destroy(&pair);
}

static void frames_lost_at_the_end_are_numbers_that_are_missing(void **state)
{
    (void)state;
    begin();
    run(FALL_NS + 5 * NS_PER_MS, STOP_NS);
    assert_int_equal(metric("gap_ns"), 0);
    assert_int_equal(metric("numbers"), pair.sides[1].live.frames);
    assert_true(metric("numbers") < pair.sides[0].live.frames);
    ring_pair_destroy(&pair);
}

static int open_ports(void **state)
{
    (void)state;
    ring_pair_open(&pair, false);
    return 0;
}

static int close_ports(void **state)
{
    (void)state;
    ring_pair_close(&pair);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_loss_is_told_by_the_frame_behind_it),
        cmocka_unit_test(frames_lost_at_the_end_are_numbers_that_are_missing),
    };

    return cmocka_run_group_tests_name("dpdk_falls", tests, open_ports, close_ports);
}
