/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a phase asks of one flow: bytes of each stream, rates, and the intended load as time passes.
 */
#include "flow_rate.h"

#include "clock.h"

#include <stddef.h>

#include <cmocka.h>

#define START_NS (5 * NS_PER_S)
#define STOP_NS (START_NS + NS_PER_S)

static const uint32_t sizes[] = {1000, 3000};

static struct phase phase_of(enum traffic traffic)
{
    return (struct phase){.traffic = traffic,
                          .transfer_bytes = 1000,
                          .probes = 3,
                          .size_count = 2,
                          .start_ns = START_NS,
                          .stop_ns = STOP_NS};
}

static void streams_share_a_transfer_to_the_byte(void **state)
{
    const struct phase phase = phase_of(TRAFFIC_TRANSFER);
    uint64_t sum = 0;

    for (unsigned stream = 0; stream < 7; stream++) {
        uint64_t bytes = flow_load_bytes(&phase, sizes, 7, stream);

        assert_in_range(bytes, 142, 143);
        sum += bytes;
    }
    assert_int_equal(sum, 1000);
}

static void probes_take_the_sizes_in_turn(void **state)
{
    const struct phase probe = phase_of(TRAFFIC_PROBE);
    const struct phase stream = phase_of(TRAFFIC_STREAM);

    assert_int_equal(flow_load_bytes(&probe, sizes, 1, 0), 1000 + 3000 + 1000);
    assert_true(flow_load_bytes(&stream, sizes, 4, 0) == FLOW_ENDLESS);
}

static void flows_share_the_ports_load(void **state)
{
    struct phase phase = phase_of(TRAFFIC_STREAM);
    const struct lane_request request = {.phase = &phase, .send_count = 4};
    const struct lane_flow flow = {0}, third = {.share = 0.75};

    phase.load = (struct load){.rate_bps = 80e6};
    assert_float_equal(flow_load_rate(&request, &flow, sizes, 0.5), 10e6 / 4 * 0.5, 1e-3);
    assert_float_equal(flow_load_rate(&request, &third, sizes, 0.5), 10e6 * 0.75 * 0.5, 1e-3);
    phase.load = (struct load){.rate_fps = 100};
    assert_float_equal(flow_load_rate(&request, &flow, sizes, 0.5), 100 * 2000.0 / 4, 1e-3);
    phase.load = (struct load){.rate_bps = 80e6, .unlimited = true};
    assert_float_equal(flow_load_rate(&request, &flow, sizes, 0.5), 0, 0);
    /* Probes are slow, whatever the load is. */
    phase.traffic = TRAFFIC_PROBE;
    assert_float_equal(flow_load_rate(&request, &flow, sizes, 0.5), 100 * 2000.0, 1e-3);
}

static uint64_t intended(struct phase *phase, double rate, uint64_t sent, int64_t now_ns)
{
    const struct lane lane = {.request.phase = phase, .stop_ns = STOP_NS};
    struct flow_side side = {.live.payload_bytes = sent};
    struct pace pace;

    flow_load_pace(&pace, phase, rate, 1e12);
    assert_int_equal(pace.origin_ns, START_NS);
    assert_true(pace.catch_up > 0); /* the bound of 32 bits holds */
    flow_load_account(&lane, &pace, &side, now_ns);
    return side.intended;
}

static void intended_is_the_schedule_up_to_the_stop(void **state)
{
    struct phase phase = phase_of(TRAFFIC_STREAM);
    int64_t half_ns = START_NS + NS_PER_S / 2;

    assert_in_range(intended(&phase, 1e6, 1, half_ns), 499999, 500001);
    assert_in_range(intended(&phase, 1e6, 1, STOP_NS + NS_PER_S), 999999, 1000001);
    /* A message that was begun in time was asked for whole. */
    assert_int_equal(intended(&phase, 1e6, 1000123, STOP_NS + 1), 1000123);
    /* As fast as it goes: what was sent. */
    assert_int_equal(intended(&phase, 0, 77, half_ns), 77);
    phase.traffic = TRAFFIC_TRANSFER;
    assert_int_equal(intended(&phase, 1e6, 1, half_ns), 1000);
}

static void a_flows_probes_share_a_thousandth_of_the_line(void **state)
{
    struct phase phase = phase_of(TRAFFIC_STREAM);
    struct lane_request request = {.phase = &phase, .send_count = 4, .line_rate_bps = 100000000};

    assert_float_equal(flow_load_probe_rate(&request, 150), 0, 0);
    phase.latency.probe_fps = 250;
    assert_float_equal(flow_load_probe_rate(&request, 150), 250, 0);
    phase.latency.probe_fps = -1;
    assert_float_equal(flow_load_probe_rate(&request, 125), 25, 1e-9);
    request.line_rate_bps = UINT64_C(100000000000);
    assert_float_equal(flow_load_probe_rate(&request, 125), 1000, 0);
    request.line_rate_bps = 0; /* not known */
    assert_float_equal(flow_load_probe_rate(&request, 125), 1000, 0);
    request.send_count = 0; /* its partner's end must expect them all the same */
    assert_true(flow_load_probe_rate(&request, 125) > 0);
    phase.traffic = TRAFFIC_TRANSFER;
    assert_float_equal(flow_load_probe_rate(&request, 125), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_share_a_transfer_to_the_byte),
        cmocka_unit_test(probes_take_the_sizes_in_turn),
        cmocka_unit_test(flows_share_the_ports_load),
        cmocka_unit_test(intended_is_the_schedule_up_to_the_stop),
        cmocka_unit_test(a_flows_probes_share_a_thousandth_of_the_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
