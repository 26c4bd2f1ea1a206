/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames whose sequence number was forged, between two lanes over rings that are polled with times
 * of our own.
 */
#include "dpdk_options.h"
#include "ring_ports.h"
#include "signature.h"
#include "transport.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "forged_cases.h"

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
    uint64_t sent;
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
    flow->partner = transport_address(&transport_dpdk, ports[1 - rank]);
    request.sends = request.receives = flow;
    request.send_count = rank == 0;
    request.receive_count = rank == 1;
    if (transport_dpdk.prepare(&bed.lanes[rank], &request, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport_dpdk.connect(bed.lanes[rank], FORGED_START_NS / 2, &err), 0);
    transport_dpdk.start(bed.lanes[rank], FORGED_START_NS / 2);
}

static struct rte_mbuf *next_sent(void)
{
    struct rte_mbuf *frame;

    if (rte_ring_dequeue(rings.sent[0], (void **)&frame) != 0)
        return NULL;
    bed.sent++;
    return frame;
}

static void lose_sent(void)
{
    struct rte_mbuf *frame;

    while ((frame = next_sent()) != NULL)
        rte_pktmbuf_free(frame);
}

static int begin(void **state)
{
    static const struct dpdk_options options = {
        .ttl = 64, .udp_sources = 1, .burst = 32, .catch_up = 8};

    (void)state;
    memset(&bed, 0, sizeof bed);
    bed.phase = forged_phase(&options);
    for (uint32_t rank = 0; rank < PORTS; rank++)
        begin_lane(rank);
    bed.now_ns = FORGED_START_NS;
    lose_sent(); /* what introduces the ports */
    bed.sent = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    lose_sent();
    transport_dpdk.account(bed.lanes[0]);
    assert_int_equal(bed.sides[0].live.frames, bed.sent);
    for (unsigned rank = 0; rank < PORTS; rank++) {
        struct rte_mbuf *frame;

        transport_dpdk.destroy(bed.lanes[rank]);
        while (rte_ring_dequeue(rings.received[rank], (void **)&frame) == 0 ||
               rte_ring_dequeue(rings.sent[rank], (void **)&frame) == 0)
            rte_pktmbuf_free(frame);
    }
    return 0;
}

static void let_send(int64_t for_ns)
{
    for (int64_t until_ns = bed.now_ns + for_ns; bed.now_ns < until_ns;
         bed.now_ns += FORGED_STEP_NS)
        transport_dpdk.poll(bed.lanes[0], bed.now_ns);
}

static void lose(int64_t for_ns)
{
    for (int64_t until_ns = bed.now_ns + for_ns; bed.now_ns < until_ns;) {
        let_send(10 * NS_PER_MS); /* the ring has no room for all */
        lose_sent();
    }
}

static void receive(void)
{
    while (rte_ring_count(rings.received[1]) > 0)
        transport_dpdk.poll(bed.lanes[1], bed.now_ns);
    transport_dpdk.account(bed.lanes[1]);
}

/* A copy of a frame, forged, with the complement mended. */
static struct rte_mbuf *forge(const struct rte_mbuf *frame, const struct forgery *forgery)
{
    struct rte_mbuf *copy = ring_ports_copy(frame);
    struct signature *signature = rte_pktmbuf_mtod_offset(copy, struct signature *, PAYLOAD);
    struct signature_time time =
        signature_time((int64_t)signature_ns(signature) + forgery->later_ns);

    signature_stamp(signature, be32toh(signature->sequence) + forgery->ahead, &time,
                    signature_base(signature) + time.sum);
    return copy;
}

static void send_forged(const struct forgery *forgery)
{
    struct rte_mbuf *frame;

    for (unsigned i = 0; i < 3 && rte_ring_count(rings.sent[0]) == 0; i++)
        let_send(FORGED_STEP_NS);
    frame = next_sent();
    assert_non_null(frame);
    assert_int_equal(rte_ring_enqueue(rings.received[1], forge(frame, forgery)), 0);
    rte_pktmbuf_free(frame);
}

static void send_frames(unsigned frames, const struct forgery *forgery, struct forged_counts *sent)
{
    struct rte_mbuf *frame;

    let_send(frames * FORGED_STEP_NS);
    while ((frame = next_sent()) != NULL) {
        struct rte_mbuf *copy = ring_ports_copy(frame);

        rte_pktmbuf_free(frame); /* it is the sender's buffer */
        assert_int_equal(rte_ring_enqueue(rings.received[1], copy), 0);
        if (forgery != NULL && sent->honest % 10 == 0) {
            assert_int_equal(rte_ring_enqueue(rings.received[1], forge(copy, forgery)), 0);
            sent->forged++;
        }
        sent->honest++;
    }
}

static int begin_without_line(void **state)
{
    int code;

    confs[0].line_rate_bps = confs[1].line_rate_bps = 0;
    code = begin(state);
    confs[0].line_rate_bps = confs[1].line_rate_bps = FORGED_LINE_BPS;
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
        confs[i].line_rate_bps = FORGED_LINE_BPS;
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

int main(void)
{
    static const struct forged_bed forged_bed = {
        .batch = 100,
        .received = &bed.sides[1],
        .send = send_frames,
        .send_forged = send_forged,
        .lose = lose,
        .receive = receive,
        .begin = begin,
        .begin_without_line = begin_without_line,
        .end = end,
        .open = open_rings,
        .close = close_rings,
    };

    return forged_cases_run(&forged_bed);
}
