/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over udp in namespaces: udp [offload] [jumbo].
 */
#include "battery.h"
#include "netlab.h"
#include "option_set.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_udp;

#define PORTS 4

static void set_number(struct phase *phase, const char *key, uint64_t value)
{
    option_set(transport_udp.options, battery_options(phase), key, value);
}

static bool offload;
static bool jumbo;

static const char *make(struct port_conf *confs)
{
    return netlab_make_ports(confs, PORTS, jumbo ? 9000 : 1500);
}

static void tune(struct phase *phase)
{
    set_number(phase, "offload", offload ? 1 : 2); /* on, automatic */
    set_number(phase, "catch_up", 64);
}

static const struct battery_refusal refusals[] = {
    {.size = 63, .says = "64 to "},
    {.size = 9019, .says = "MTU"},
    {.no_load = true, .says = "no load"},
    {.option = "burst", .value = 0, .says = "1 to 128"},
    {.option = "receive_buffer", .value = UINT32_MAX, .says = "net.core.rmem_max"},
    {.size = 9000, .message = true, .says = "larger ones run over tcp and verbs"},
};

static void look_at_end(struct battery_run *run, uint32_t rank, struct lane *lane)
{
    if (rank == 0)
        assert_true(lane->stopped_ns >= run->phase.stop_ns);
}

/* Counted frames of a stream: they begin when the window opens, and the port ends with the phase.
 */
static void count_in_window(void)
{
    struct battery_run run;

    battery_begin(&run);
    set_number(&run.phase, "window_frames", 37);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 2, 1, PATTERN_GENERATE);
    run.look = look_at_end;
    battery_play(&run);
    battery_whole(&run, 37);
    for (size_t i = 0; i < run.flow_count; i++) {
        assert_int_equal(run.flows[i].source.live.frames, 37);
        assert_int_equal(run.flows[i].source.intended, 37);
        assert_true(run.flows[i].source.first_ns >= run.phase.open_ns);
        assert_true(run.flows[i].source.last_ns < run.phase.close_ns);
    }
}

/* More than the receiver's buffer holds: what the sender counts is what arrived and what the
 * receiving host says that it dropped, where it does not drop several frames at once. */
static void overrun(struct transport_port **ports, const struct port_conf *confs)
{
    struct port_facts before, after;
    const struct flow_side *from, *to;
    const struct transport_run battery = {.run_id = "battery", .node = "battery"};
    struct battery_run run;
    struct err err = {""};
    int64_t lost;

    count_in_window();
    battery_begin(&run);
    run.phase.sizes[0] = 1518;
    run.phase.load = (struct load){.unlimited = true};
    set_number(&run.phase, "receive_buffer", 20000);
    set_number(&run.phase, "burst", 128);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    transport_udp.facts(ports[1], &before, true);
    battery_play(&run);
    transport_udp.facts(ports[1], &after, true);
    from = &run.flows[0].source;
    to = &run.flows[0].destination;
    print_message("sent %llu, received %llu, dropped %lld\n", (unsigned long long)from->live.frames,
                  (unsigned long long)to->live.frames,
                  (long long)(after.hardware.dropped_receive - before.hardware.dropped_receive));
    assert_true(from->live.frames > 1000 && to->live.frames > 0);
    assert_true(after.hardware.dropped_receive > before.hardware.dropped_receive);
    lost = (int64_t)(from->live.frames - to->live.frames);
    assert_in_range(after.hardware.dropped_receive - before.hardware.dropped_receive,
                    offload ? 1 : lost, lost);
    assert_int_equal(to->duplicated + to->reordered + to->late + to->corrupted, 0);
    transport_udp.close(ports[1]); /* what it dropped goes with it */
    ports[1] = NULL;
    assert_int_equal(transport_udp.open(&ports[1], &confs[1], &battery, &err), 0);
}

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_udp,
        .what = "udp between namespaces",
        .ports = PORTS,
        .make = make,
        .unmake = netlab_unmake,
        .tune = tune,
        .back_most = 1400,
        .sizes = {64, 65, 128, 777, 1518},
        .refusals = refusals,
        .refusal_count = sizeof refusals / sizeof refusals[0],
        .more = overrun,
    };

    for (int i = 1; i < argc; i++) {
        offload = offload || strcmp(argv[i], "offload") == 0;
        jumbo = jumbo || strcmp(argv[i], "jumbo") == 0;
    }
    if (jumbo)
        subject.sizes[4] = 9018;
    return battery_main(&subject);
}
