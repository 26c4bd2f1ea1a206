/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames whose sequence number was forged, between two lanes over rings that are polled with times
 * of our own: a jump that no sender can make is refused, and what honest senders, networks and
 * receivers do is not.
 */
#include "dpdk_options.h"
#include "ring_ports.h"
#include "signature.h"
#include "transport.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

#define PORTS 2
#define PAYLOAD 14u /* of l2 */
#define LINE_BPS UINT64_C(100000000)
#define SIZE 512
#define LOAD_FPS 10000.0
#define START_NS NS_PER_S
#define STEP_NS (100 * NS_PER_US) /* a frame at that load */
#define AHEAD 100000u

static struct ring_ports rings;
static struct port_conf confs[PORTS];
static struct transport_port *ports[PORTS];

static struct bed {
    struct phase phase;
    struct lane *lanes[PORTS]; /* rank 0 sends to rank 1 */
    struct lane_flow flows[PORTS];
    struct flow_side sides[PORTS];
    struct port_count counts[PORTS];
    int64_t now_ns;
} bed;

static void begin_lane(uint32_t rank)
{
    struct lane_flow *flow = &bed.flows[rank];
    struct lane_request request = {.port = ports[rank],
                                   .phase = &bed.phase,
                                   .rank = rank,
                                   .ranks = PORTS,
                                   .count = &bed.counts[rank],
                                   .line_rate_bps = confs[rank].line_rate_bps};
    struct err err = {""};

    *flow = (struct lane_flow){.src = 0, .dst = 1, .side = &bed.sides[rank]};
    transport_dpdk.address(ports[1 - rank], &flow->partner);
    request.sends = request.receives = flow;
    request.send_count = rank == 0;
    request.receive_count = rank == 1;
    if (transport_dpdk.prepare(&bed.lanes[rank], &request, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport_dpdk.settle(bed.lanes[rank], START_NS / 2, &err), 0);
    transport_dpdk.start(bed.lanes[rank], START_NS / 2);
}

static void lose(void)
{
    struct rte_mbuf *frame;

    while (rte_ring_dequeue(rings.sent[0], (void **)&frame) == 0)
        rte_pktmbuf_free(frame);
}

static int begin(void **state)
{
    static const struct dpdk_options options = {
        .ttl = 64, .udp_sources = 1, .burst = 32, .catch_up = 8};

    (void)state;
    memset(&bed, 0, sizeof bed);
    bed.phase = (struct phase){
        .tag = 7,
        .traffic = TRAFFIC_STREAM,
        .sizes = {SIZE},
        .size_count = 1,
        .load = {.rate_fps = LOAD_FPS},
        .options = &options,
        .start_ns = START_NS,
        .stop_ns = 100 * NS_PER_S,
    };
    for (uint32_t rank = 0; rank < PORTS; rank++)
        begin_lane(rank);
    bed.now_ns = START_NS;
    lose(); /* what introduces the ports */
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (unsigned rank = 0; rank < PORTS; rank++) {
        struct rte_mbuf *frame;

        transport_dpdk.finish(bed.lanes[rank]);
        while (rte_ring_dequeue(rings.received[rank], (void **)&frame) == 0 ||
               rte_ring_dequeue(rings.sent[rank], (void **)&frame) == 0)
            rte_pktmbuf_free(frame);
    }
    return 0;
}

static void send(int64_t for_ns)
{
    for (int64_t until_ns = bed.now_ns + for_ns; bed.now_ns < until_ns; bed.now_ns += STEP_NS)
        transport_dpdk.poll(bed.lanes[0], bed.now_ns);
}

static void receive(void)
{
    while (rte_ring_count(rings.received[1]) > 0)
        transport_dpdk.poll(bed.lanes[1], bed.now_ns);
    transport_dpdk.account(bed.lanes[1]);
}

/* A copy of a frame with another number, later by `later_ns`, with the complement mended. */
static struct rte_mbuf *forge(const struct rte_mbuf *frame, uint32_t ahead, int64_t later_ns)
{
    struct rte_mbuf *copy = ring_ports_copy(frame);
    struct signature *signature = rte_pktmbuf_mtod_offset(copy, struct signature *, PAYLOAD);
    struct signature_time time = signature_time((int64_t)signature_ns(signature) + later_ns);

    signature_stamp(signature, be32toh(signature->sequence) + ahead, &time,
                    signature_base(signature) + time.sum);
    return copy;
}

/* Carries what was sent; behind each `every`-th frame goes a forged one. Returns how many. */
static uint64_t carry(uint32_t every, uint32_t ahead, int64_t later_ns)
{
    uint64_t frames = 0, forged = 0;
    struct rte_mbuf *frame;

    while (rte_ring_dequeue(rings.sent[0], (void **)&frame) == 0) {
        struct rte_mbuf *copy = ring_ports_copy(frame);

        rte_pktmbuf_free(frame); /* it is the sender's buffer */
        assert_int_equal(rte_ring_enqueue(rings.received[1], copy), 0);
        if (every > 0 && ++frames % every == 0) {
            assert_int_equal(rte_ring_enqueue(rings.received[1], forge(copy, ahead, later_ns)), 0);
            forged++;
        }
    }
    return forged;
}

static void expect(uint64_t frames, uint64_t forged)
{
    const struct flow_side *side = &bed.sides[1];

    assert_int_equal(side->late, 0);
    assert_int_equal(side->forged, forged);
    assert_int_equal(side->duplicated, 0);
    assert_int_equal(side->reordered, 0);
    assert_int_equal(side->live.frames, frames);
}

static void forged_for_a_second(int64_t later_ns)
{
    uint64_t forged = 0;

    for (unsigned i = 0; i < 100; i++) {
        send(10 * NS_PER_MS);
        forged += carry(10, AHEAD, later_ns);
        receive();
    }
    transport_dpdk.account(bed.lanes[0]);
    assert_in_range(forged, 900, 1100);
    expect(bed.sides[0].live.frames, forged);
}

static void a_jump_ahead_is_refused(void **state)
{
    (void)state;
    forged_for_a_second(0);
}

/* A stamp of the future says nothing of how much a sender may have sent. */
static void so_is_one_with_a_stamp_of_the_future(void **state)
{
    (void)state;
    forged_for_a_second(20 * NS_PER_S);
}

static void the_first_frame_can_be_forged_too(void **state)
{
    struct rte_mbuf *frame = NULL;

    (void)state;
    send(STEP_NS * 3);
    assert_int_equal(rte_ring_dequeue(rings.sent[0], (void **)&frame), 0);
    assert_int_equal(rte_ring_enqueue(rings.received[1], forge(frame, AHEAD, 0)), 0);
    receive();
    expect(0, 1);
    rte_pktmbuf_free(frame);
    send(STEP_NS * 3);
    carry(0, 0, 0);
    receive();
    assert_true(bed.sides[1].live.frames > 0);
    expect(bed.sides[1].live.frames, 1);
}

/* What is lost for a while leaves a gap that the time since then explains. */
static void a_long_loss_is_a_loss(void **state)
{
    uint64_t before;

    (void)state;
    send(20 * NS_PER_MS);
    carry(0, 0, 0);
    receive();
    before = bed.sides[1].live.frames;
    for (unsigned i = 0; i < 500; i++) {
        send(10 * NS_PER_MS);
        lose();
    }
    send(20 * NS_PER_MS);
    carry(0, 0, 0);
    receive();
    assert_in_range(bed.sides[1].live.frames, before + 190, before + 210);
    expect(bed.sides[1].live.frames, 0);
}

/* A receiver that was away finds old frames and, behind what its ring had no room for, new ones,
 * all at one time. */
static void a_receiver_that_was_away_believes_the_stamps(void **state)
{
    (void)state;
    send(50 * NS_PER_MS);
    carry(0, 0, 0);
    for (unsigned i = 0; i < 300; i++) {
        send(10 * NS_PER_MS);
        lose();
    }
    send(30 * NS_PER_MS);
    carry(0, 0, 0);
    receive();
    assert_in_range(bed.sides[1].live.frames, 790, 810);
    expect(bed.sides[1].live.frames, 0);
}

/* One frame of each second comes, with a stamp that is off. */
static void with_clocks_that_differ(int64_t by_ns)
{
    for (unsigned i = 0; i < 5; i++) {
        struct rte_mbuf *frame = NULL;

        for (unsigned k = 0; k < 99; k++) {
            send(10 * NS_PER_MS);
            lose();
        }
        send(STEP_NS);
        assert_int_equal(rte_ring_dequeue(rings.sent[0], (void **)&frame), 0);
        assert_int_equal(rte_ring_enqueue(rings.received[1], forge(frame, 0, by_ns)), 0);
        rte_pktmbuf_free(frame);
        receive();
    }
    expect(5, 0);
}

/* Then the time between arrivals has to do. */
static void clocks_that_differ_do_no_harm(void **state)
{
    (void)state;
    with_clocks_that_differ(20 * NS_PER_S);
}

static void nor_those_that_are_behind(void **state)
{
    (void)state;
    with_clocks_that_differ(-20 * NS_PER_S);
}

/* Nothing is known of the line: a paced sender keeps to its load. */
static int begin_without_line(void **state)
{
    int code;

    confs[0].line_rate_bps = confs[1].line_rate_bps = 0;
    code = begin(state);
    confs[0].line_rate_bps = confs[1].line_rate_bps = LINE_BPS;
    return code;
}

static int open_rings(void **state)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    const char *reason = ring_ports_make(&rings, PORTS, false, confs);
    struct err err = {""};

    (void)state;
    if (reason != NULL)
        fail_msg("%s", reason);
    for (unsigned i = 0; i < PORTS; i++) {
        confs[i].line_rate_bps = LINE_BPS;
        if (transport_dpdk.open(&ports[i], &confs[i], &run, &err) != 0)
            fail_msg("%s", err.text);
    }
    return 0;
}

static int close_rings(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PORTS; i++)
        transport_dpdk.close(ports[i]);
    return 0;
}

#define CASE(test, setup) cmocka_unit_test_setup_teardown(test, setup, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_jump_ahead_is_refused, begin),
        CASE(so_is_one_with_a_stamp_of_the_future, begin),
        CASE(the_first_frame_can_be_forged_too, begin),
        CASE(a_long_loss_is_a_loss, begin),
        CASE(a_receiver_that_was_away_believes_the_stamps, begin),
        CASE(clocks_that_differ_do_no_harm, begin),
        CASE(nor_those_that_are_behind, begin),
        CASE(a_jump_ahead_is_refused, begin_without_line),
        CASE(a_long_loss_is_a_loss, begin_without_line),
        CASE(a_receiver_that_was_away_believes_the_stamps, begin_without_line),
    };

    return cmocka_run_group_tests(tests, open_rings, close_rings);
}
