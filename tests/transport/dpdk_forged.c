/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames whose sequence number was forged, between two lanes over rings that are polled with times
 * of our own.
 */
#include "ring_pair.h"
#include "signature.h"

#include "forged_cases.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PAYLOAD 14u /* of l2 */

static int64_t now_ns;
static uint64_t sent_count;

static struct rte_mbuf *next_sent(void)
{
    struct rte_mbuf *frame;

    if (rte_ring_dequeue(pair.rings.sent[0], (void **)&frame) != 0)
        return NULL;
    sent_count++;
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
    const struct phase phase = forged_phase(&options);

    ring_pair_connect(&phase);
    ring_pair_start(FORGED_START_NS / 2);
    now_ns = FORGED_START_NS;
    lose_sent(); /* what introduces the ports */
    sent_count = 0;
    return 0;
}

static int end(void **state)
{
    lose_sent();
    transport_dpdk.account(pair.lanes[0], ACCOUNT_ALL);
    assert_int_equal(pair.sides[0].live.frames, sent_count);
    ring_pair_destroy();
    for (unsigned rank = 0; rank < 2; rank++) {
        struct rte_mbuf *frame;

        while (rte_ring_dequeue(pair.rings.received[rank], (void **)&frame) == 0 ||
               rte_ring_dequeue(pair.rings.sent[rank], (void **)&frame) == 0)
            rte_pktmbuf_free(frame);
    }
    return 0;
}

static void let_send(int64_t for_ns)
{
    for (int64_t until_ns = now_ns + for_ns; now_ns < until_ns; now_ns += FORGED_STEP_NS)
        transport_dpdk.poll(pair.lanes[0], now_ns);
}

static void lose(int64_t for_ns)
{
    for (int64_t until_ns = now_ns + for_ns; now_ns < until_ns;) {
        let_send(10 * NS_PER_MS); /* the ring has no room for all */
        lose_sent();
    }
}

static void receive(void)
{
    while (rte_ring_count(pair.rings.received[1]) > 0)
        transport_dpdk.poll(pair.lanes[1], now_ns);
    transport_dpdk.account(pair.lanes[1], ACCOUNT_ALL);
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

    for (unsigned i = 0; i < 3 && rte_ring_count(pair.rings.sent[0]) == 0; i++)
        let_send(FORGED_STEP_NS);
    frame = next_sent();
    assert_non_null(frame);
    assert_int_equal(rte_ring_enqueue(pair.rings.received[1], forge(frame, forgery)), 0);
    rte_pktmbuf_free(frame);
}

static void send_frames(unsigned frames, const struct forgery *forgery, struct forged_counts *sent)
{
    struct rte_mbuf *frame;

    let_send(frames * FORGED_STEP_NS);
    while ((frame = next_sent()) != NULL) {
        struct rte_mbuf *copy = ring_ports_copy(frame);

        rte_pktmbuf_free(frame); /* it is the sender's buffer */
        assert_int_equal(rte_ring_enqueue(pair.rings.received[1], copy), 0);
        if (forgery != NULL && sent->honest % 10 == 0) {
            assert_int_equal(rte_ring_enqueue(pair.rings.received[1], forge(copy, forgery)), 0);
            sent->forged++;
        }
        sent->honest++;
    }
}

static int begin_without_line(void **state)
{
    int code;

    pair.confs[0].line_rate_bps = pair.confs[1].line_rate_bps = 0;
    code = begin(state);
    pair.confs[0].line_rate_bps = pair.confs[1].line_rate_bps = FORGED_LINE_BPS;
    return code;
}

static int open_rings(void **state)
{
    ring_pair_open(state);
    pair.confs[0].line_rate_bps = pair.confs[1].line_rate_bps = FORGED_LINE_BPS;
    return 0;
}

int main(void)
{
    static const struct forged_bed forged_bed = {
        .batch = 100,
        .received = &pair.sides[1],
        .send = send_frames,
        .send_forged = send_forged,
        .lose = lose,
        .receive = receive,
        .begin = begin,
        .begin_without_line = begin_without_line,
        .end = end,
        .open = open_rings,
        .close = ring_pair_close,
    };

    return forged_cases_run(&forged_bed);
}
