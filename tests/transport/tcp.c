/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over tcp in namespaces: tcp [streams] [zero-copy].
 */
#include "battery.h"
#include "clock.h"
#include "netlab.h"
#include "tcp/tcp_lane.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_tcp;

#define PORTS 4

static struct tcp_options *options_of(struct phase *phase)
{
    return battery_options(phase);
}

static bool streams;
static bool zero_copy;

static const char *make(struct port_conf *confs)
{
    return netlab_make_ports(confs, PORTS, 1500);
}

static void tune(struct phase *phase)
{
    options_of(phase)->streams = streams ? 3 : 1;
    options_of(phase)->zero_copy = zero_copy;
}

static void tune_waiting(struct phase *phase)
{
    options_of(phase)->streams = 1;
    options_of(phase)->zero_copy = false;
}

static void no_such_congestion_control(struct phase *phase)
{
    snprintf(options_of(phase)->congestion, sizeof options_of(phase)->congestion, "warp");
}

static void too_large_a_buffer(struct phase *phase)
{
    options_of(phase)->send_buffer = UINT32_MAX;
}

static void too_large_a_receive_buffer(struct phase *phase)
{
    options_of(phase)->receive_buffer = UINT32_MAX;
}

static void streams_there_and_back(struct phase *phase)
{
    phase->traffic = TRAFFIC_PINGPONG;
    options_of(phase)->streams = 2;
    options_of(phase)->zero_copy = false;
}

static void no_copy_there_and_back(struct phase *phase)
{
    phase->traffic = TRAFFIC_PINGPONG;
    options_of(phase)->streams = 1;
    options_of(phase)->zero_copy = true;
}

static const struct battery_refusal refusals[] = {
    {.spoil = streams_there_and_back, .says = "goes by one stream"},
    {.spoil = no_copy_there_and_back, .says = "zero_copy"},
    {.spoil = no_such_congestion_control, .says = "available: "},
    {.spoil = too_large_a_buffer, .says = "net.core.wmem_max"},
    {.spoil = too_large_a_receive_buffer, .says = "net.core.rmem_max"},
};

/* As fast as it goes, both ways at once, and the ports' own counters say that it went there. */
static void unlimited(struct transport_port **ports, const struct port_conf *confs)
{
    struct port_facts before;
    struct port_facts after;
    struct battery_run run;

    battery_begin(&run);
    run.phase.load = (struct load){.unlimited = true};
    run.phase.sizes[0] = 65536;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_GENERATE);
    transport_tcp.facts(ports[0], &before, true);
    battery_play(&run);
    transport_tcp.facts(ports[0], &after, true);
    battery_whole(&run, 10000000);
    /* At most 64 KiB in what the kernel counts as one packet. */
    assert_true((uint64_t)(after.hardware.sent_frames - before.hardware.sent_frames) * 65536 >=
                run.flows[0].source.live.payload_bytes);
}

int main(int argc, char **argv)
{
    const struct battery_subject subject = {
        .transport = &transport_tcp,
        .what = "tcp between namespaces",
        .ports = PORTS,
        .make = make,
        .unmake = netlab_unmake,
        .tune = tune,
        .tune_waiting = tune_waiting,
        .sizes = {1, 16, 100, 1448, 8192},
        .refusals = refusals,
        .refusal_count = sizeof refusals / sizeof refusals[0],
        .more = unlimited,
    };

    for (int i = 1; i < argc; i++) {
        streams = streams || strcmp(argv[i], "streams") == 0;
        zero_copy = zero_copy || strcmp(argv[i], "zero-copy") == 0;
    }
    return battery_main(&subject);
}
