/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several addresses of a port, and frames to all ports: two ports of net_ring whose rings are in
 * our hands, so that each frame is looked at on its way.
 */
#include "ring_pair.h"

#include "addresses.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESSES 100u
#define MANY 2000u /* more than a ring holds */
#define FIRST 40u
#define BLOCK 3
#define RATE 10000
#define FRAMES 250u
#define START_NS RING_PAIR_START_NS
#define STEP_NS (10 * NS_PER_US)

static struct dpdk_options options;

static struct phase phase_of(enum traffic traffic)
{
    struct phase phase = ring_pair_phase(traffic, 64, 100000, &options);

    phase.probes = 3;
    phase.burst = (struct burst_options){.frames = FRAMES, .own_frames = FRAMES, .count = 1};
    return phase;
}

static void expect_address(const uint8_t *at, unsigned port, uint32_t number)
{
    struct port_facts facts = {0};
    uint8_t own[FRAME_MAC];
    char text[18];

    transport_dpdk.facts(pair.ports[port], &facts, false);
    for (unsigned i = 0; i < FRAME_MAC; i++)
        own[i] = (uint8_t)strtoul(facts.mac + (size_t)3 * i, NULL, 16);
    address_write(own, BLOCK, (uint16_t)port, number);
    snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", at[0], at[1], at[2], at[3], at[4],
             at[5]);
    if (memcmp(at, own, FRAME_MAC) != 0)
        fail_msg("address %u of port %u: found %s", number, port, text);
}

static struct rte_mbuf *take(unsigned port)
{
    void *frame = NULL;

    return rte_ring_dequeue(pair.rings.sent[port], &frame) == 0 ? frame : NULL;
}

static void begin(enum traffic traffic)
{
    const struct phase phase = phase_of(traffic);

    ring_pair_connect(&phase);
}

/* Its announcement, and one frame from each address to the port that will send to it. */
static void a_port_that_receives_makes_its_addresses_known(void **state)
{
    struct rte_mbuf *frame;

    options.addresses = ADDRESSES;
    begin(TRAFFIC_BURST);
    rte_pktmbuf_free(take(1));
    for (uint32_t number = 0; number < ADDRESSES; number++) {
        frame = take(1);
        assert_non_null(frame);
        expect_address(rte_pktmbuf_mtod(frame, const uint8_t *), 0, 0);
        expect_address(rte_pktmbuf_mtod(frame, const uint8_t *) + FRAME_MAC, 1, FIRST + number);
        rte_pktmbuf_free(frame);
    }
    assert_null(take(1));
    rte_pktmbuf_free(take(0)); /* whoever only sends has its announcement alone */
    assert_null(take(0));
    ring_pair_destroy();
}

/* Port 1 alone, which is about to announce so many addresses. */
static void prepare_learner(uint32_t addresses)
{
    static struct phase phase;
    static struct lane_flow flow;
    struct lane_request request = {
        .port = pair.ports[1],
        .phase = &phase,
        .rank = 1,
        .ranks = 2,
        .receives = &flow,
        .receive_count = 1,
        .count = &pair.counts[1],
    };
    struct err err = {""};

    flow = (struct lane_flow){.src = 0, .dst = 1, .side = &pair.sides[1]};
    phase = phase_of(TRAFFIC_BURST);
    options.addresses = addresses;
    flow.partner = transport_address(&transport_dpdk, pair.ports[0]);
    assert_int_equal(transport_dpdk.prepare(&pair.lanes[1], &request, &err), 0);
}

/* At its rate, and then a switch has some time: 100 frames at 10,000/s. */
static void learning_keeps_to_its_rate(void **state)
{
    struct err err = {""};

    prepare_learner(ADDRESSES);
    for (int64_t ms = 0; ms < 10; ms++) {
        assert_int_equal(transport_dpdk.connect(pair.lanes[1], ms * NS_PER_MS, &err), -EINPROGRESS);
        assert_int_equal(rte_ring_count(pair.rings.sent[1]), 1 + 10 * ms + 1);
    }
    assert_int_equal(transport_dpdk.connect(pair.lanes[1], 10 * NS_PER_MS, &err), -EINPROGRESS);
    assert_int_equal(rte_ring_count(pair.rings.sent[1]), 1 + ADDRESSES);
    assert_int_equal(transport_dpdk.connect(pair.lanes[1], NS_PER_S, &err), 0);
    assert_int_equal(rte_ring_count(pair.rings.sent[1]), 1 + ADDRESSES);
    assert_true(ring_pair_metric(1, "learning_late") == 0);
    ring_pair_lose_sent(1);
    transport_dpdk.destroy(pair.lanes[1]);
}

/* A switch whose core was taken away: what its ring does not take is sent when it does. */
static void a_full_device_loses_no_learning_frame(void **state)
{
    struct rte_mbuf *frame;
    struct err err = {""};
    uint32_t number = 0;

    prepare_learner(MANY);
    for (int64_t ms = 0; ms < 150; ms++)
        (void)transport_dpdk.connect(pair.lanes[1], ms * NS_PER_MS, &err);
    assert_int_equal(transport_dpdk.connect(pair.lanes[1], NS_PER_S, &err), -EAGAIN);
    rte_pktmbuf_free(take(1)); /* its announcement */
    for (int64_t ms = 1000; ms < 1300; ms++) {
        while ((frame = take(1)) != NULL) {
            expect_address(rte_pktmbuf_mtod(frame, const uint8_t *) + FRAME_MAC, 1, FIRST + number);
            rte_pktmbuf_free(frame);
            number++;
        }
        (void)transport_dpdk.connect(pair.lanes[1], ms * NS_PER_MS, &err);
    }
    assert_int_equal(number, MANY);
    assert_true(ring_pair_metric(1, "learning_late") > 0);
    transport_dpdk.destroy(pair.lanes[1]);
}

static void nothing_is_learned_for_a_probe(void **state)
{
    options.addresses = ADDRESSES;
    begin(TRAFFIC_PROBE);
    assert_int_equal(rte_ring_count(pair.rings.sent[1]), 1);
    rte_pktmbuf_free(take(0));
    rte_pktmbuf_free(take(1));
    ring_pair_destroy();
}

static uint32_t frames;

static bool has_its_addresses(const struct rte_mbuf *frame, int64_t now_ns)
{
    static const uint8_t group[FRAME_MAC] = FRAME_MULTICAST;
    const uint8_t *at = rte_pktmbuf_mtod(frame, const uint8_t *);

    if (options.destination == DESTINATION_MULTICAST)
        assert_memory_equal(at, group, sizeof group);
    else
        expect_address(at, 1, FIRST + frames % ADDRESSES);
    expect_address(at + FRAME_MAC, 0, 0);
    frames++;
    return true;
}

/* Sends all, each frame looked at on its way; returns how many they were. */
static uint32_t play(void)
{
    for (unsigned i = 0; i < 2; i++)
        ring_pair_lose_sent(i); /* what introduces the ports */
    ring_pair_start(START_NS);
    frames = 0;
    ring_pair_poll(START_NS, START_NS + 5 * NS_PER_MS, STEP_NS, has_its_addresses);
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.account(pair.lanes[i], ACCOUNT_ALL);
    return frames;
}

static void frames_go_to_the_addresses_in_turn(void **state)
{
    options.addresses = ADDRESSES;
    begin(TRAFFIC_BURST);
    assert_int_equal(play(), FRAMES);
    assert_int_equal(pair.sides[1].live.frames, FRAMES);
    assert_int_equal(pair.counts[1].misdelivered + pair.counts[1].foreign, 0);
    ring_pair_destroy();
}

/* One frame goes to all, and is of both flows of its sender. */
static void frames_to_all_are_sent_once(void **state)
{
    const struct phase phase = phase_of(TRAFFIC_BURST);
    struct flow_side further = {.intended = 0};
    struct lane_flow flows[2] = {{.src = 0, .dst = 1, .side = &pair.sides[0]},
                                 {.src = 0, .dst = 2, .side = &further}};
    struct lane_request request = {
        .port = pair.ports[0],
        .phase = &phase,
        .rank = 0,
        .ranks = 3,
        .sends = flows,
        .send_count = 2,
        .count = &pair.counts[0],
    };
    struct err err = {""};

    options.destination = DESTINATION_MULTICAST;
    begin(TRAFFIC_BURST);
    transport_dpdk.destroy(pair.lanes[0]);
    flows[0].partner = flows[1].partner = transport_address(&transport_dpdk, pair.ports[1]);
    assert_int_equal(transport_dpdk.prepare(&pair.lanes[0], &request, &err), 0);
    assert_int_equal(transport_dpdk.connect(pair.lanes[0], START_NS / 2, &err), 0);
    assert_int_equal(play(), FRAMES);
    assert_int_equal(pair.sides[1].live.frames, FRAMES);
    assert_int_equal(pair.sides[0].live.frames, FRAMES);
    assert_false(pair.sides[0].is_copy);
    assert_true(further.is_copy);
    assert_int_equal(further.live.frames, FRAMES);
    assert_int_equal(further.intended, FRAMES);
    assert_int_equal(further.first_ns, START_NS);
    ring_pair_destroy();
}

/* Of another station, in a phase with frames to all: its sender's, and not the port's own. */
static void what_can_not_be_is_refused(void **state)
{
    struct {
        struct dpdk_options options;
        uint32_t ranks;
        const char *says;
    } cases[] = {
        {{.addresses = 2}, ADDRESSES_RANKS_MAX + 1, "4096 ranks at most"},
        {{.addresses = 2, .destination = DESTINATION_BROADCAST}, 2, "ports one address"},
        {{.addresses = 1, .destination = DESTINATION_BROADCAST, .header = HEADER_IPV4_UDP},
         2,
         "header l2"},
        {{.addresses = 1, .destination = DESTINATION_BROADCAST}, 65535, "65534 others"},
    };
    struct phase phase = phase_of(TRAFFIC_BURST);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lane_request request = {
            .port = pair.ports[0],
            .phase = &phase,
            .ranks = cases[i].ranks,
            .count = &pair.counts[0],
        };
        struct err err = {""};

        cases[i].options.burst = cases[i].options.udp_sources = cases[i].options.catch_up = 1;
        cases[i].options.ttl = 64;
        phase.options = &cases[i].options;
        assert_int_equal(transport_dpdk.prepare(&pair.lanes[0], &request, &err), -EINVAL);
        if (strstr(err.text, cases[i].says) == NULL)
            fail_msg("'%s' says nothing of '%s'", err.text, cases[i].says);
    }
}

static void receive_control(struct rte_mbuf *frame, uint16_t opcode)
{
    static const uint8_t head[] = {0x01, 0x80, 0xc2, 0, 0, 0x01, 2, 0, 0, 0, 0, 9, 0x88, 0x08};
    uint8_t *at = rte_pktmbuf_mtod(frame, uint8_t *);

    memcpy(at, head, sizeof head);
    at[sizeof head] = (uint8_t)(opcode >> 8);
    at[sizeof head + 1] = (uint8_t)opcode;
    assert_int_equal(rte_ring_enqueue(pair.rings.received[1], frame), 0);
    transport_dpdk.poll(pair.lanes[1], START_NS);
}

/* PAUSE and PFC; another MAC control frame is foreign. */
static void pause_frames_that_no_mac_took_are_counted(void **state)
{
    struct port_facts before, after;
    struct rte_mbuf *frame;

    begin(TRAFFIC_BURST);
    transport_dpdk.poll(pair.lanes[1], START_NS);
    frame = take(0);
    assert_non_null(frame);
    transport_dpdk.facts(pair.ports[1], &before, true);
    receive_control(ring_ports_copy(frame), 0x0001);
    receive_control(ring_ports_copy(frame), 0x0101);
    receive_control(frame, 0x0002);
    transport_dpdk.facts(pair.ports[1], &after, true);
    assert_int_equal(after.hardware.pause_received - before.hardware.pause_received, 2);
    assert_int_equal(pair.counts[1].foreign, 1);
    rte_pktmbuf_free(take(1));
    ring_pair_destroy();
}

static int default_options(void **state)
{
    options = (struct dpdk_options){
        .header = HEADER_L2,
        .udp_sources = 1,
        .burst = 32,
        .catch_up = 8,
        .addresses = 1,
        .address_block = BLOCK,
        .learning_rate = RATE,
        .address_first = FIRST,
    };
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_port_that_receives_makes_its_addresses_known, default_options),
        cmocka_unit_test_setup(learning_keeps_to_its_rate, default_options),
        cmocka_unit_test_setup(a_full_device_loses_no_learning_frame, default_options),
        cmocka_unit_test_setup(nothing_is_learned_for_a_probe, default_options),
        cmocka_unit_test_setup(frames_go_to_the_addresses_in_turn, default_options),
        cmocka_unit_test_setup(frames_to_all_are_sent_once, default_options),
        cmocka_unit_test_setup(what_can_not_be_is_refused, default_options),
        cmocka_unit_test_setup(pause_frames_that_no_mac_took_are_counted, default_options),
    };

    return cmocka_run_group_tests_name("dpdk_addresses", tests, ring_pair_open, ring_pair_close);
}
