/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bursts of a counted length over two ports of net_ring, polled by hand with times of our own:
 * exactly as many frames as asked for, at the load's rate, and gaps as asked for.
 */
#include "ring_pair.h"

#include <stdint.h>

#include <cmocka.h>

#define SIZE 128
#define FPS 1e6
#define FRAME_NS 1000 /* from one frame to the next at that rate */
#define FRAMES 500
#define GAP_NS (3 * NS_PER_MS)
#define START_NS RING_PAIR_START_NS
#define STEP_NS 250

/* `stop_ns`: of a count of 0. */
static void begin(uint64_t count, int64_t stop_ns)
{
    static const struct dpdk_options options = {
        .header = HEADER_L2, .udp_sources = 1, .burst = 32, .catch_up = 8, .dither = 1};
    struct phase phase = ring_pair_phase(TRAFFIC_BURST, SIZE, FPS, &options);

    phase.burst = (struct burst_options){
        .frames = FRAMES, .own_frames = FRAMES, .gap_ns = GAP_NS, .count = count};
    phase.close_ns = phase.stop_ns = stop_ns;
    ring_pair_connect(&phase);
    ring_pair_start(START_NS);
}

/* Polls both ends until a time; returns how many frames have come by then. */
static uint64_t poll_until(int64_t from_ns, int64_t until_ns)
{
    ring_pair_poll(from_ns, until_ns, STEP_NS, NULL);
    transport_dpdk.account(pair.lanes[1], ACCOUNT_ALL);
    return pair.sides[1].live.frames;
}

/* Exactly so many were asked for, sent and delivered. */
static void end(uint64_t frames)
{
    transport_dpdk.account(pair.lanes[0], ACCOUNT_ALL);
    assert_int_equal(pair.sides[0].live.frames, frames);
    assert_int_equal(pair.sides[0].intended, frames);
    assert_int_equal(pair.sides[1].live.frames, frames);
    assert_true(pair.lanes[0]->tx_done);
    ring_pair_destroy();
}

static void one_burst_has_its_frames_and_is_over(void **state)
{
    int64_t last_ns = START_NS + (int64_t)(FRAMES - 1) * FRAME_NS;

    begin(1, CLOCK_NEVER);
    assert_int_equal(poll_until(START_NS, START_NS + 10 * FRAME_NS), 10);
    assert_int_equal(poll_until(START_NS + 10 * FRAME_NS, last_ns), FRAMES - 1);
    assert_int_equal(poll_until(last_ns, last_ns + STEP_NS), FRAMES);
    poll_until(last_ns + STEP_NS, last_ns + 2 * GAP_NS);
    end(FRAMES);
}

/* The gap begins when the last frame has left the wire, and ends with the next burst's first. */
static void gaps_are_as_asked_for(void **state)
{
    int64_t begin_ns = START_NS;

    begin(3, CLOCK_NEVER);
    for (uint64_t burst = 0; burst < 3; burst++) {
        int64_t next_ns = begin_ns + (int64_t)FRAMES * FRAME_NS + GAP_NS;

        assert_int_equal(poll_until(begin_ns, begin_ns + STEP_NS), burst * FRAMES + 1);
        assert_int_equal(poll_until(begin_ns + STEP_NS, next_ns), (burst + 1) * FRAMES);
        begin_ns = next_ns;
    }
    poll_until(begin_ns, begin_ns + 2 * GAP_NS);
    end((uint64_t)3 * FRAMES);
}

/* The core is taken away for most of a burst, and then between two. */
static void a_late_sender_gives_nothing_up(void **state)
{
    int64_t back_ns = START_NS + (int64_t)(FRAMES - 50) * FRAME_NS;
    int64_t late_ns = START_NS + 4 * GAP_NS;

    begin(2, CLOCK_NEVER);
    poll_until(START_NS, START_NS + 20 * FRAME_NS);
    assert_true(ring_pair_metric(0, "late_frames") == 0);
    assert_int_equal(poll_until(back_ns, back_ns + (int64_t)FRAMES * FRAME_NS), FRAMES);
    assert_true(ring_pair_metric(0, "late_frames") == FRAMES - 50 - 20);
    poll_until(late_ns, late_ns + GAP_NS);
    end((uint64_t)2 * FRAMES);
}

/* A stream's sender that was away for 2 ms catches up with 8 frames, and gives up the others. */
static void a_late_stream_tells_what_came_in_a_clump(void **state)
{
    static const struct dpdk_options options = {
        .header = HEADER_L2, .udp_sources = 1, .burst = 32, .catch_up = 8};
    struct phase phase = ring_pair_phase(TRAFFIC_STREAM, 128, 1e5, &options);
    int64_t late_ns = START_NS + 3 * NS_PER_MS;

    phase.close_ns = phase.stop_ns = START_NS + 10 * NS_PER_MS;
    ring_pair_connect(&phase);
    ring_pair_start(START_NS);
    ring_pair_poll(START_NS, START_NS + NS_PER_MS, 1000, NULL);
    assert_true(ring_pair_metric(0, "late_frames") == 0);
    ring_pair_poll(late_ns, phase.stop_ns, 1000, NULL);
    assert_true(ring_pair_metric(0, "late_frames") == 8);
    ring_pair_destroy();
}

static void the_last_burst_before_the_stop_is_whole(void **state)
{
    int64_t stop_ns = START_NS + (int64_t)FRAMES * FRAME_NS + GAP_NS + (int64_t)100 * FRAME_NS;

    begin(0, stop_ns);
    assert_int_equal(poll_until(START_NS, stop_ns), FRAMES + 100);
    poll_until(stop_ns, stop_ns + 3 * GAP_NS);
    end((uint64_t)2 * FRAMES);
}

/* A run that ends early waits for no burst, and says what it did not send. */
static void a_stop_that_is_moved_cuts_a_burst(void **state)
{
    int64_t moved_ns = START_NS + (int64_t)100 * FRAME_NS;

    begin(2, CLOCK_NEVER);
    poll_until(START_NS, moved_ns);
    pair.lanes[0]->stop_ns = moved_ns;
    poll_until(moved_ns, moved_ns + GAP_NS);
    transport_dpdk.account(pair.lanes[0], ACCOUNT_ALL);
    assert_int_equal(pair.sides[0].live.frames, 100);
    assert_int_equal(pair.sides[0].intended, 2 * FRAMES);
    assert_int_equal(pair.sides[1].live.frames, 100);
    ring_pair_destroy();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_burst_has_its_frames_and_is_over),
        cmocka_unit_test(gaps_are_as_asked_for),
        cmocka_unit_test(a_late_sender_gives_nothing_up),
        cmocka_unit_test(a_late_stream_tells_what_came_in_a_clump),
        cmocka_unit_test(the_last_burst_before_the_stop_is_whole),
        cmocka_unit_test(a_stop_that_is_moved_cuts_a_burst),
    };

    return cmocka_run_group_tests_name("dpdk_bursts", tests, ring_pair_open_crossed,
                                       ring_pair_close);
}
