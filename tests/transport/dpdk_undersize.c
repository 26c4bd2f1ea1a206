/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames below 64 bytes (RFC 2889, 5.9) over two ports of net_ring: they have the length that was
 * asked for, and one that is forwarded is counted.
 */
#include "ring_pair.h"

#include "frame.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define START_NS RING_PAIR_START_NS
#define FRAMES 50u

static struct dpdk_options options = {
    .header = HEADER_L2, .udp_sources = 1, .burst = 32, .catch_up = 8, .addresses = 1};

static struct phase phase_of(uint32_t size)
{
    struct phase phase = ring_pair_phase(TRAFFIC_BURST, size, 1e5, &options);

    phase.burst = (struct burst_options){.frames = FRAMES, .own_frames = FRAMES, .count = 1};
    return phase;
}

static uint32_t sent;

static bool has_its_size(const struct rte_mbuf *frame, int64_t now_ns)
{
    sent++;
    assert_int_equal(rte_pktmbuf_pkt_len(frame), pair.phase.sizes[0] - FRAME_FCS);
    return true;
}

static void short_frames_are_sent_and_counted_as_they_are(void **state)
{
    static const uint32_t sizes[] = {36, 63};

    options.undersize = true;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct phase phase = phase_of(sizes[i]);

        ring_pair_connect(&phase);
        for (unsigned rank = 0; rank < 2; rank++)
            ring_pair_lose_sent(rank); /* what introduces the ports */
        ring_pair_start(START_NS);
        sent = 0;
        ring_pair_poll(START_NS, START_NS + NS_PER_MS, NS_PER_US, has_its_size);
        transport_dpdk.account(pair.lanes[1], ACCOUNT_ALL);
        assert_int_equal(sent, FRAMES);
        assert_int_equal(pair.sides[1].live.frames, FRAMES);
        assert_int_equal(pair.sides[1].live.frame_bytes, FRAMES * sizes[i]);
        ring_pair_destroy();
    }
}

/* What is too short for a signature, or not asked for by name, is refused. */
static void others_are_refused(void **state)
{
    static const struct {
        bool undersize;
        uint32_t size;
        const char *words;
    } cases[] = {{true, 35, "have 36 bytes at least, not 35"},
                 {false, 63, "have 64 bytes at least, not 63"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct phase phase = phase_of(cases[i].size);
        struct lane_flow flow = {.src = 0, .dst = 1, .side = &pair.sides[0]};
        struct lane_request request = {
            .port = pair.ports[0],
            .phase = &phase,
            .ranks = 2,
            .sends = &flow,
            .send_count = 1,
            .count = &pair.counts[0],
        };
        struct err err = {""};

        options.undersize = cases[i].undersize;
        flow.partner = transport_address(&transport_dpdk, pair.ports[1]);
        assert_int_equal(transport_dpdk.prepare(&pair.lanes[0], &request, &err), -EINVAL);
        assert_non_null(strstr(err.text, cases[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_frames_are_sent_and_counted_as_they_are),
        cmocka_unit_test(others_are_refused),
    };

    return cmocka_run_group_tests_name("dpdk_undersize", tests, ring_pair_open, ring_pair_close);
}
