/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counts at the ends of the window, of a flow of more streams than are accounted at once: what
 * passed before an end is before it, whenever it is accounted, and nothing that came behind it.
 */
#include "ring_pair.h"

#include <stdint.h>

#include <cmocka.h>

#define SOURCES 300u
#define STEP_NS 50000
#define RATE_FPS (1e9 / STEP_NS)

static bool arrives(const struct rte_mbuf *frame, int64_t now_ns)
{
    return true;
}

static int begin(void **state)
{
    static const struct dpdk_options options = {
        .header = HEADER_IPV4_UDP, .ttl = 64, .udp_sources = SOURCES, .burst = 32, .catch_up = 8};
    struct phase phase = ring_pair_phase(TRAFFIC_STREAM, 64, RATE_FPS, &options);

    ring_pair_connect(&phase);
    ring_pair_start(RING_PAIR_START_NS / 2);
    return 0;
}

static int end(void **state)
{
    ring_pair_destroy();
    return 0;
}

static void play(unsigned from, unsigned until)
{
    ring_pair_poll(RING_PAIR_START_NS + from * STEP_NS, RING_PAIR_START_NS + until * STEP_NS,
                   STEP_NS, arrives);
}

static void mark(void)
{
    for (unsigned rank = 0; rank < 2; rank++)
        transport_dpdk.account(pair.lanes[rank], ACCOUNT_MARK);
}

/* Every stream once more, some of them accounted between. Returns how many calls that took. */
static unsigned account_all(unsigned rank, unsigned *at)
{
    unsigned calls = 1;

    for (; !transport_dpdk.account(pair.lanes[rank], ACCOUNT_SOME); calls++, (*at) += 7)
        play(*at, *at + 7);
    return calls;
}

static void an_end_divides_what_passed(void **state)
{
    unsigned at = 1000;
    uint64_t opened[2], closed[2];

    play(0, at);
    for (unsigned rank = 0; rank < 2; rank++) {
        transport_dpdk.account(pair.lanes[rank], ACCOUNT_ALL);
        opened[rank] = pair.sides[rank].live.frames;
        assert_true(opened[rank] > SOURCES);
    }
    play(at, at + 450); /* not accounted yet when the window opens */
    at += 450;
    mark();
    opened[0] += 450;
    opened[1] += 450;
    assert_true(account_all(0, &at) > 2);
    assert_true(account_all(1, &at) > 2);
    play(at, at + 700);
    at += 700;
    closed[0] = closed[1] = at - 1450;
    mark();
    play(at, at + 700); /* none is accounted until the end */
    for (unsigned rank = 0; rank < 2; rank++) {
        const struct flow_window *window = &pair.sides[rank].window;

        transport_dpdk.account(pair.lanes[rank], ACCOUNT_ALL);
        assert_int_equal(window->open.frames, opened[rank]);
        assert_int_equal(window->close.frames, opened[rank] + closed[rank]);
        assert_int_equal(window->close.frame_bytes, window->close.frames * 64);
        assert_int_equal(window->close.payload_bytes, window->close.frames * (64 - 46));
        assert_int_equal(pair.sides[rank].live.frames, window->close.frames + 700);
        assert_int_equal(pair.sides[rank].duplicated + pair.sides[rank].late, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_divides_what_passed, begin, end),
    };

    return cmocka_run_group_tests(tests, ring_pair_open, ring_pair_close);
}
