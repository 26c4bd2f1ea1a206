/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load that falls within a stream (RFC 2544, 26.5) over two ports of net_ring, polled by hand
 * with times of our own: so many frames before and behind the fall, and when the frame behind the
 * last lost one was sent.
 */
#include "ring_pair.h"

#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FPS 1e5
#define FRAME_NS 10000 /* from one frame to the next before the fall; four times as much behind */
#define FALL_NS (10 * NS_PER_MS)
#define STOP_NS (30 * NS_PER_MS)
#define START_NS RING_PAIR_START_NS
#define STEP_NS 1000
#define BEFORE (FALL_NS / FRAME_NS)
#define ALL (BEFORE + (STOP_NS - FALL_NS) / (4 * FRAME_NS))

static void begin(void)
{
    static const struct dpdk_options options = {.header = HEADER_L2,
                                                .udp_sources = 1,
                                                .burst = 32,
                                                .catch_up = 8,
                                                .falls_to = 25,
                                                .falls_after_ns = FALL_NS};
    struct phase phase = ring_pair_phase(TRAFFIC_STREAM, 128, FPS, &options);

    phase.close_ns = phase.stop_ns = START_NS + STOP_NS;
    ring_pair_connect(&phase);
    ring_pair_start(START_NS);
}

static int64_t lost_from_ns, lost_until_ns;

static bool arrives(const struct rte_mbuf *frame, int64_t now_ns)
{
    return now_ns < lost_from_ns || now_ns >= lost_until_ns;
}

/* Polls both ends; of what is sent from `lose_ns` to `keep_ns` behind the start nothing arrives. */
static void run(int64_t lose_ns, int64_t keep_ns)
{
    int64_t fallen_ns = START_NS + FALL_NS + STEP_NS;

    lost_from_ns = START_NS + lose_ns;
    lost_until_ns = START_NS + keep_ns;
    ring_pair_poll(START_NS, fallen_ns, STEP_NS, arrives);
    transport_dpdk.account(pair.lanes[0], ACCOUNT_ALL);
    assert_in_range(pair.sides[0].live.frames, BEFORE - 1, BEFORE + 1);
    ring_pair_poll(fallen_ns, START_NS + STOP_NS + NS_PER_MS, STEP_NS, arrives);
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.account(pair.lanes[i], ACCOUNT_ALL);
    assert_in_range(pair.sides[0].live.frames, ALL - 2, ALL + 2);
    assert_in_range(pair.sides[0].intended, pair.sides[0].live.frames,
                    pair.sides[0].live.frames + 1);
}

static void the_last_loss_is_told_by_the_frame_behind_it(void **state)
{
    int64_t keep_ns = FALL_NS + 5 * NS_PER_MS;

    begin();
    run(2 * NS_PER_MS, keep_ns);
    assert_true(ring_pair_metric(1, "gap_ns") >= keep_ns &&
                ring_pair_metric(1, "gap_ns") <= keep_ns + 4 * FRAME_NS);
    assert_int_equal(ring_pair_metric(1, "numbers"), pair.sides[0].live.frames);
    ring_pair_destroy();
}

static void frames_lost_at_the_end_are_numbers_that_are_missing(void **state)
{
    begin();
    run(FALL_NS + 5 * NS_PER_MS, STOP_NS);
    assert_int_equal(ring_pair_metric(1, "gap_ns"), 0);
    assert_int_equal(ring_pair_metric(1, "numbers"), pair.sides[1].live.frames);
    assert_true(ring_pair_metric(1, "numbers") < pair.sides[0].live.frames);
    ring_pair_destroy();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_loss_is_told_by_the_frame_behind_it),
        cmocka_unit_test(frames_lost_at_the_end_are_numbers_that_are_missing),
    };

    return cmocka_run_group_tests_name("dpdk_falls", tests, ring_pair_open, ring_pair_close);
}
