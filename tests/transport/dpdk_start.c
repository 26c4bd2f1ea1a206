/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ports of net_ring, crossed, whose workers do not begin at the same time: polled by hand with
 * times of our own. What comes before a receiver's worker is there counts as what it is.
 */
#include "ring_pair.h"

#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SIZE 128
#define FPS 1000
#define PROBES 3
#define START_NS RING_PAIR_START_NS
#define END_NS (START_NS + 200 * NS_PER_MS)
#define STEP_NS (NS_PER_MS / 4)

/* Both are connected, as before a barrier, and the sender's worker is at its lane. */
static void begin(enum traffic traffic, double fps)
{
    static const struct dpdk_options options = {
        .header = HEADER_L2, .udp_sources = 1, .burst = 32, .catch_up = 8};
    struct phase phase = ring_pair_phase(traffic, SIZE, fps, &options);

    phase.probes = PROBES;
    phase.close_ns = phase.stop_ns = END_NS;
    ring_pair_connect(&phase);
    transport_dpdk.poll(pair.lanes[0], START_NS);
}

static void poll_until(struct lane *lane, int64_t from_ns, int64_t until_ns)
{
    for (int64_t now_ns = from_ns; now_ns < until_ns; now_ns += STEP_NS)
        transport_dpdk.poll(lane, now_ns);
}

/* All that was sent is delivered, and nothing came from elsewhere. */
static void end(uint64_t least)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.account(pair.lanes[i], ACCOUNT_ALL);
    assert_true(pair.sides[0].live.frames >= least);
    assert_int_equal(pair.sides[1].live.frames, pair.sides[0].live.frames);
    assert_int_equal(pair.counts[1].foreign, 0);
    ring_pair_destroy();
}

/* Its worker comes 40 ms after the start, and finds them in the ring. */
static void a_late_worker_counts_what_waits(void **state)
{
    begin(TRAFFIC_STREAM, FPS);
    poll_until(pair.lanes[0], START_NS, START_NS + 40 * NS_PER_MS);
    transport_dpdk.poll(pair.lanes[1], START_NS + 40 * NS_PER_MS);
    poll_until(pair.lanes[1], START_NS + 40 * NS_PER_MS, START_NS + 41 * NS_PER_MS);
    end(30);
}

/* The same, and it has visited its port as it does between phases. */
static void an_idle_worker_counts_what_comes(void **state)
{
    begin(TRAFFIC_STREAM, FPS);
    poll_until(pair.lanes[0], START_NS, START_NS + 20 * NS_PER_MS);
    transport_dpdk.idle(pair.ports[1], START_NS + 20 * NS_PER_MS);
    poll_until(pair.lanes[0], START_NS + 20 * NS_PER_MS, START_NS + 40 * NS_PER_MS);
    transport_dpdk.poll(pair.lanes[1], START_NS + 40 * NS_PER_MS);
    poll_until(pair.lanes[1], START_NS + 40 * NS_PER_MS, START_NS + 41 * NS_PER_MS);
    end(30);
}

static unsigned waiting(void)
{
    return rte_ring_count(pair.rings.received[1]);
}

/* Probes leave at the rate that the phase asks for, so that they outlast a partner's late start. */
static void probes_are_spread(void **state)
{
    unsigned introduced;
    begin(TRAFFIC_PROBE, PROBES / 0.15);
    introduced = waiting();
    poll_until(pair.lanes[0], START_NS, START_NS + 50 * NS_PER_MS);
    assert_int_equal(waiting() - introduced, 1);
    poll_until(pair.lanes[0], START_NS + 50 * NS_PER_MS, START_NS + 100 * NS_PER_MS);
    assert_int_equal(waiting() - introduced, 2);
    poll_until(pair.lanes[0], START_NS + 100 * NS_PER_MS, START_NS + 151 * NS_PER_MS);
    assert_int_equal(waiting() - introduced, PROBES);
    transport_dpdk.poll(pair.lanes[1], END_NS);
    end(PROBES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_worker_counts_what_waits),
        cmocka_unit_test(an_idle_worker_counts_what_comes),
        cmocka_unit_test(probes_are_spread),
    };

    return cmocka_run_group_tests_name("dpdk_start", tests, ring_pair_open_crossed,
                                       ring_pair_close);
}
