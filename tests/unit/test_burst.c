/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bursts: a port's frames follow its listed share, and its lanes send exactly these.
 */
#include "burst.h"

#include <stddef.h>

#include <cmocka.h>

#define FLOWS 7

static void ports_of_unlike_loads_end_together(void **state)
{
    assert_int_equal(burst_of_port(9998, 1), 9998);
    assert_int_equal(burst_of_port(9998, 1 / 99.98), 100); /* 99.98 % and 1 % (RFC 8239, 3.2) */
    assert_int_equal(burst_of_port(1000, 0.0125), 13);
    assert_int_equal(burst_of_port(10, 0.001), 1);
    assert_int_equal(burst_of_port(UINT64_C(1) << 50, 0.25), UINT64_C(1) << 48);
}

/* The frames of each of `lanes` lanes: flow i is of lane i % lanes. */
static void deal(uint64_t *found, const struct phase *phase, const double *shares, uint32_t lanes)
{
    struct lane_flow all[FLOWS] = {0}, own[FLOWS];
    struct lane_request request = {.phase = phase, .port_sends = all, .port_send_count = FLOWS};

    for (uint32_t i = 0; i < FLOWS; i++)
        all[i] = (struct lane_flow){.dst = i + 1, .share = shares != NULL ? shares[i] : 0};
    request.sends = own;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        request.send_count = 0;
        for (uint32_t i = lane; i < FLOWS; i += lanes)
            own[request.send_count++] = all[i];
        found[lane] = burst_of_lane(&request);
    }
}

static void lanes_send_exactly_the_ports_frames(void **state)
{
    static const double shares[FLOWS] = {0.5, 0.01, 0.03, 0.06, 0.1, 0.1, 0.2};
    uint64_t found[FLOWS];

    for (uint64_t frames = 1; frames < 2000; frames += 37) {
        const struct phase phase = {.burst = {.frames = 5000, .own_frames = frames}};

        for (uint32_t lanes = 1; lanes <= FLOWS; lanes++) {
            uint64_t even = 0, listed = 0;

            deal(found, &phase, NULL, lanes);
            for (uint32_t i = 0; i < lanes; i++)
                even += found[i];
            deal(found, &phase, shares, lanes);
            for (uint32_t i = 0; i < lanes; i++)
                listed += found[i];
            assert_int_equal(even, frames);
            assert_int_equal(listed, frames);
        }
        for (uint32_t i = 0; i < FLOWS; i++) /* each flow is a lane here */
            assert_float_equal((double)found[i], (double)frames * shares[i], 1);
    }
}

static void a_lane_that_is_alone_sends_all(void **state)
{
    struct lane_flow flows[2] = {{.dst = 1, .share = 0.75}, {.dst = 2, .share = 0.25}};
    const struct phase phase = {.burst = {.frames = 200, .own_frames = 101}};
    const struct lane_request request = {.phase = &phase, .sends = flows, .send_count = 2};

    assert_int_equal(burst_of_lane(&request), 101);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_of_unlike_loads_end_together),
        cmocka_unit_test(lanes_send_exactly_the_ports_frames),
        cmocka_unit_test(a_lane_that_is_alone_sends_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
