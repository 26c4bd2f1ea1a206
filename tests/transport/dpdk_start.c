/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ports of net_ring, crossed, whose workers do not begin at the same time: polled by hand with
 * times of our own. What comes before a receiver's worker is there counts as what it is.
 */
#include "ring_ports.h"

#include "frame.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

#define TAG 7
#define SIZE 128
#define FPS 1000
#define PROBES 3
#define START_NS NS_PER_S
#define END_NS (START_NS + 200 * NS_PER_MS)
#define STEP_NS (NS_PER_MS / 4)

static struct ring_ports rings;
static struct port_conf confs[2];
static struct transport_port *ports[2];

/* A flow from port 0 to port 1, as its two lanes have it. */
struct pair {
    struct phase phase;
    struct lane *lanes[2];
    struct lane_flow flows[2];
    struct flow_side sides[2];
    struct port_count counts[2];
};

static void prepare(struct pair *pair, uint32_t rank)
{
    struct err err = {""};
    struct lane_request request = {.port = ports[rank],
                                   .phase = &pair->phase,
                                   .rank = rank,
                                   .ranks = 2,
                                   .count = &pair->counts[rank]};

    pair->flows[rank] = (struct lane_flow){.src = 0, .dst = 1, .side = &pair->sides[rank]};
    pair->flows[rank].partner = transport_address(&transport_dpdk, ports[1 - rank]);
    *(rank == 0 ? &request.sends : &request.receives) = &pair->flows[rank];
    *(rank == 0 ? &request.send_count : &request.receive_count) = 1;
    assert_int_equal(transport_dpdk.prepare(&pair->lanes[rank], &request, &err), 0);
    assert_int_equal(transport_dpdk.connect(pair->lanes[rank], START_NS / 2, &err), 0);
}

/* Both are connected, as before a barrier, and the sender's worker is at its lane. */
static void begin(struct pair *pair, enum traffic traffic, double fps)
{
    static const struct dpdk_options options = {
        .header = HEADER_L2, .udp_sources = 1, .burst = 32, .catch_up = 8};

    memset(pair, 0, sizeof *pair);
    pair->phase = (struct phase){
        .tag = TAG,
        .traffic = traffic,
        .probes = PROBES,
        .sizes = {SIZE},
        .size_count = 1,
        .load = {.rate_fps = fps},
        .options = &options,
        .start_ns = START_NS,
        .open_ns = START_NS,
        .close_ns = END_NS,
        .stop_ns = END_NS,
    };
    prepare(pair, 1);
    prepare(pair, 0);
    transport_dpdk.start(pair->lanes[0], START_NS);
}

static void poll_until(struct lane *lane, int64_t from_ns, int64_t until_ns)
{
    for (int64_t now_ns = from_ns; now_ns < until_ns; now_ns += STEP_NS)
        transport_dpdk.poll(lane, now_ns);
}

/* All that was sent is delivered, and nothing came from elsewhere. */
static void end(struct pair *pair, uint64_t least)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.account(pair->lanes[i]);
    assert_true(pair->sides[0].live.frames >= least);
    assert_int_equal(pair->sides[1].live.frames, pair->sides[0].live.frames);
    assert_int_equal(pair->counts[1].foreign, 0);
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.destroy(pair->lanes[i]);
}

/* Its worker comes 40 ms after the start, and finds them in the ring. */
static void a_late_worker_counts_what_waits(void **state)
{
    struct pair pair;

    (void)state;
    begin(&pair, TRAFFIC_STREAM, FPS);
    poll_until(pair.lanes[0], START_NS, START_NS + 40 * NS_PER_MS);
    transport_dpdk.start(pair.lanes[1], START_NS + 40 * NS_PER_MS);
    poll_until(pair.lanes[1], START_NS + 40 * NS_PER_MS, START_NS + 41 * NS_PER_MS);
    end(&pair, 30);
}

/* The same, and it has visited its port as it does between phases. */
static void an_idle_worker_counts_what_comes(void **state)
{
    struct pair pair;

    (void)state;
    begin(&pair, TRAFFIC_STREAM, FPS);
    poll_until(pair.lanes[0], START_NS, START_NS + 20 * NS_PER_MS);
    transport_dpdk.idle(ports[1], START_NS + 20 * NS_PER_MS);
    poll_until(pair.lanes[0], START_NS + 20 * NS_PER_MS, START_NS + 40 * NS_PER_MS);
    transport_dpdk.start(pair.lanes[1], START_NS + 40 * NS_PER_MS);
    poll_until(pair.lanes[1], START_NS + 40 * NS_PER_MS, START_NS + 41 * NS_PER_MS);
    end(&pair, 30);
}

static unsigned waiting(void)
{
    return rte_ring_count(rings.received[1]);
}

/* Probes leave at the rate that the phase asks for, so that they outlast a partner's late start. */
static void probes_are_spread(void **state)
{
    unsigned introduced;
    struct pair pair;

    (void)state;
    begin(&pair, TRAFFIC_PROBE, PROBES / 0.15);
    introduced = waiting();
    poll_until(pair.lanes[0], START_NS, START_NS + 50 * NS_PER_MS);
    assert_int_equal(waiting() - introduced, 1);
    poll_until(pair.lanes[0], START_NS + 50 * NS_PER_MS, START_NS + 100 * NS_PER_MS);
    assert_int_equal(waiting() - introduced, 2);
    poll_until(pair.lanes[0], START_NS + 100 * NS_PER_MS, START_NS + 151 * NS_PER_MS);
    assert_int_equal(waiting() - introduced, PROBES);
    transport_dpdk.start(pair.lanes[1], END_NS);
    end(&pair, PROBES);
}

static int open_ports(void **state)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    const char *why = ring_ports_make(&rings, 2, true, confs);
    struct err err = {""};

    (void)state;
    if (why != NULL)
        fail_msg("%s", why);
    for (unsigned i = 0; i < 2; i++)
        if (transport_dpdk.open(&ports[i], &confs[i], &run, &err) != 0)
            fail_msg("%s", err.text);
    return 0;
}

static int close_ports(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.close(ports[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_worker_counts_what_waits),
        cmocka_unit_test(an_idle_worker_counts_what_comes),
        cmocka_unit_test(probes_are_spread),
    };

    return cmocka_run_group_tests_name("dpdk_start", tests, open_ports, close_ports);
}
