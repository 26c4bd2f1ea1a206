/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A forwarding lane against a driver that takes little: a ring port whose send ring is short, fed
 * by hand and polled with times of our own. Nothing may overtake, no sequence may be left out, and
 * each frame is counted once.
 */
#include "clock.h"
#include "eal.h"
#include "frame.h"
#include "transport.h"

#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <stdint.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

#define TAG 7
#define SIZE 128
#define SOURCES 2 /* UDP source ports, at most */
#define IN 2048u
#define OUT 63u    /* frames that the send ring holds */
#define QUEUE 512u /* and the forwarder beside it */
#define START_NS NS_PER_S

static const struct port_conf conf = {
    .name = "n:e0", .vdev = "net_ring_forward", .ipv4 = "198.18.0.2/16"};
static struct rte_ring *in, *out;
static struct rte_mempool *pool;
static struct transport_port *port;

struct chain {
    struct phase phase;
    struct dpdk_options options;
    struct lane *lane;
    struct lane_flow send;
    struct lane_flow receive;
    struct flow_side sent;
    struct flow_side received;
    struct port_count count;
    uint32_t fed[SOURCES];
    uint32_t came[SOURCES]; /* out of the send ring, in order */
    int64_t now_ns;
};

static struct frame_shape shape_of(const struct chain *chain)
{
    struct frame_shape shape;

    frame_shape(&shape, &chain->options, TAG);
    return shape;
}

/* Rank 1 of a chain of three, which receives from rank 0 and sends to rank 2. */
static void begin(struct chain *chain, uint16_t burst, uint16_t sources)
{
    struct lane_request request = {.port = port,
                                   .phase = &chain->phase,
                                   .rank = 1,
                                   .ranks = 3,
                                   .sends = &chain->send,
                                   .send_count = 1,
                                   .receives = &chain->receive,
                                   .receive_count = 1,
                                   .count = &chain->count};
    struct err err = {""};

    memset(chain, 0, sizeof *chain);
    chain->options = (struct dpdk_options){.header = HEADER_IPV4_UDP,
                                           .ttl = 64,
                                           .udp_sources = sources,
                                           .burst = burst,
                                           .catch_up = burst};
    chain->phase = (struct phase){
        .tag = TAG,
        .traffic = TRAFFIC_STREAM,
        .sizes = {SIZE},
        .size_count = 1,
        .load = {.unlimited = true},
        .options = &chain->options,
        .start_ns = START_NS,
        .stop_ns = 2 * START_NS,
    };
    chain->send =
        (struct lane_flow){.src = 1, .dst = 2, .role = PATTERN_FORWARD, .side = &chain->sent};
    chain->receive = (struct lane_flow){.src = 0, .dst = 1, .side = &chain->received};
    chain->send.partner = transport_address(&transport_dpdk, port);
    chain->receive.partner = chain->send.partner;
    assert_int_equal(transport_dpdk.prepare(&chain->lane, &request, &err), 0);
    assert_int_equal(transport_dpdk.connect(chain->lane, START_NS / 2, &err), 0);
    transport_dpdk.poll(chain->lane, START_NS / 2);
    chain->now_ns = START_NS;
    while (rte_ring_count(out) > 0) { /* the port's introduction */
        struct rte_mbuf *frame = NULL;

        assert_int_equal(rte_ring_dequeue(out, (void **)&frame), 0);
        rte_pktmbuf_free(frame);
    }
}

/* The next frames from rank 0, from its UDP source ports in turn. */
static void feed(struct chain *chain, uint32_t count)
{
    struct frame_end ends[2] = {{.ipv4 = {198, 18, 0, 1}, .rank = 0},
                                {.ipv4 = {198, 18, 0, 2}, .rank = 1}};
    struct frame_shape shape = shape_of(chain);
    struct signature_time time = signature_time(0);
    uint32_t headers = shape.payload + SIGNATURE_BYTES;
    struct frame_template template;

    for (uint32_t i = 0; i < count; i++) {
        uint16_t source = (uint16_t)(i % chain->options.udp_sources);
        struct rte_mbuf *buffer = rte_pktmbuf_alloc(pool);
        struct signature *signature;
        uint8_t *frame;

        assert_non_null(buffer);
        frame = (uint8_t *)rte_pktmbuf_append(buffer, SIZE - FRAME_FCS);
        frame_template(&template, &shape, ends, source, SIZE);
        memcpy(frame + headers, fill_table()->bytes, SIZE - FRAME_FCS - headers);
        memcpy(frame, template.bytes, FRAME_TEMPLATE);
        signature = (struct signature *)(frame + shape.payload);
        signature_stamp(signature, chain->fed[source]++, &time, signature_base(signature));
        assert_int_equal(rte_ring_enqueue(in, buffer), 0);
    }
}

static void poll_once(struct chain *chain)
{
    transport_dpdk.poll(chain->lane, chain->now_ns++);
}

/* Takes what was sent: each stream's sequences without a gap, from rank 1 to rank 2, and sound. */
static uint32_t drain(struct chain *chain)
{
    struct frame_shape shape = shape_of(chain);
    struct rte_mbuf *buffer = NULL;
    struct frame_expect expect;
    struct frame_check check;
    uint32_t count = 0;

    frame_check(&check, &shape);
    frame_expect(&expect, &shape, SIZE - FRAME_FCS);
    for (; rte_ring_dequeue(out, (void **)&buffer) == 0; count++) {
        const uint8_t *frame = rte_pktmbuf_mtod(buffer, const uint8_t *);
        const struct signature *signature = (const struct signature *)(frame + shape.payload);
        uint32_t source =
            be16toh(frame_u16(frame + shape.payload - FRAME_UDP)) - (uint32_t)FRAME_UDP_SOURCE;

        assert_int_equal(rte_pktmbuf_data_len(buffer), SIZE - FRAME_FCS);
        assert_true(frame_sound_ipv4(&check, &expect, frame));
        assert_int_equal(be16toh(signature->src), 1);
        assert_int_equal(be16toh(signature->dst), 2);
        assert_true(source < SOURCES);
        assert_int_equal(be32toh(signature->sequence), chain->came[source]++);
        rte_pktmbuf_free(buffer);
    }
    return count;
}

/* `fed` came in and were delivered; all but `lost` have left. */
static void end(struct chain *chain, uint64_t fed, uint64_t lost)
{
    struct flow_count left = {.frames = fed - lost,
                              .frame_bytes = (fed - lost) * SIZE,
                              .payload_bytes =
                                  (fed - lost) * (SIZE - FRAME_FCS - shape_of(chain).payload)};

    transport_dpdk.account(chain->lane, ACCOUNT_ALL);
    assert_int_equal(chain->received.live.frames, fed);
    assert_int_equal(chain->sent.intended, fed);
    assert_memory_equal(&chain->sent.live, &left, sizeof left);
    assert_int_equal(chain->came[0] + chain->came[1], fed - lost);
    transport_dpdk.destroy(chain->lane);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static int64_t dropped(void)
{
    struct port_facts facts;

    transport_dpdk.facts(port, &facts, true);
    return facts.hardware.dropped_send;
}

/* What comes early waits for the start: the next hop may not be there yet. */
static void test_waits_for_the_start(void **state)
{
    struct chain chain;

    begin(&chain, 32, 1);
    feed(&chain, 40);
    transport_dpdk.poll(chain.lane, START_NS - 2);
    transport_dpdk.poll(chain.lane, START_NS - 1);
    assert_int_equal(drain(&chain), 0);
    feed(&chain, 10);
    poll_once(&chain);
    poll_once(&chain);
    assert_int_equal(drain(&chain), 50);
    end(&chain, 50, 0);
}

/* A burst may be larger than what is sent at a time. */
static void test_sends_small_bursts(void **state)
{
    struct chain chain;

    begin(&chain, 4, 1);
    feed(&chain, 32);
    for (unsigned i = 0; i < 8; i++)
        poll_once(&chain);
    assert_int_equal(drain(&chain), 32);
    end(&chain, 32, 0);
}

/* The driver takes a part of a burst, then nothing: the rest waits, and what comes meanwhile stays
 * behind it. */
static void test_keeps_the_order(void **state)
{
    int64_t before = dropped();
    uint32_t taken = 0;
    struct chain chain;

    begin(&chain, 32, 2);
    feed(&chain, 200);
    for (unsigned i = 0; i < 8; i++)
        poll_once(&chain);
    assert_int_equal(rte_ring_count(out), OUT);
    assert_true(chain.count.send_refused > 0);
    while (taken < 300) {
        uint32_t count;

        if (taken < 200)
            feed(&chain, 10);
        count = drain(&chain);
        taken += count;
        poll_once(&chain);
        poll_once(&chain);
        if (count == 0)
            break;
    }
    assert_int_equal(dropped(), before);
    end(&chain, chain.fed[0] + chain.fed[1], 0);
}

/* Frames that find no room are this host's drops: not sent, and no sequence is used for them. */
static void test_drops_what_finds_no_room(void **state)
{
    int64_t before = dropped();
    struct chain chain;

    begin(&chain, 32, 2);
    feed(&chain, 1000);
    for (unsigned i = 0; i < 64; i++)
        poll_once(&chain);
    assert_int_equal(dropped() - before, 1000 - OUT - QUEUE);
    for (uint32_t taken = 0; taken < OUT + QUEUE;) {
        taken += drain(&chain);
        poll_once(&chain);
        poll_once(&chain);
    }
    end(&chain, 1000, 1000 - OUT - QUEUE);
    assert_int_equal(dropped() - before, 1000 - OUT - QUEUE);
}

static int open_ring(void **state)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    struct err err = {""};

    if (eal_start("test", &err) != 0)
        fail_msg("%s", err.text);
    in = rte_ring_create("in", IN, SOCKET_ID_ANY, 0);
    out = rte_ring_create("out", OUT + 1, SOCKET_ID_ANY, 0);
    pool = rte_pktmbuf_pool_create("feed", IN - 1, 0, 0, 2 * SIZE + RTE_PKTMBUF_HEADROOM,
                                   SOCKET_ID_ANY);
    assert_true(in != NULL && out != NULL && pool != NULL);
    assert_true(rte_eth_from_rings("forward", &in, 1, &out, 1, 0) >= 0);
    if (transport_dpdk.open(&port, &conf, &run, &err) != 0)
        fail_msg("%s", err.text);
    return 0;
}

static int close_ring(void **state)
{
    transport_dpdk.close(port);
    rte_mempool_free(pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_the_start),
        cmocka_unit_test(test_sends_small_bursts),
        cmocka_unit_test(test_keeps_the_order),
        cmocka_unit_test(test_drops_what_finds_no_room),
    };

    return cmocka_run_group_tests(tests, open_ring, close_ring);
}
