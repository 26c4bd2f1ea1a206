/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over udp in namespaces: udp [jumbo] [KEY=VALUE...].
 */
#include "battery.h"
#include "netlab.h"

#include <cmocka.h>

extern const struct transport transport_udp;

#define PORTS 4

static bool jumbo;

static const char *make(struct port_conf *confs)
{
    return netlab_make_ports(confs, PORTS, jumbo ? 9000 : 1500);
}

static const struct battery_refusal refusals[] = {
    {.size = 63, .says = "64 to "},
    {.size = 9019, .says = "MTU"},
    {.no_load = true, .says = "no load"},
    {.options = "burst=0", .says = "1 to 128"},
    {.options = "receive_buffer=4294967295", .says = "net.core.rmem_max"},
    {.size = 9000, .message = true, .says = "larger ones run over tcp and verbs"},
    {.says = NULL},
};

static void look_at_end(struct battery_run *run, uint32_t rank, struct lane *lane)
{
    if (rank == 0)
        assert_true(lane->stopped_ns >= run->phase.stop_ns);
}

/* Counted frames of a stream: they begin when the window opens, and the port ends with the phase.
 */
static void count_in_window(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    battery_begin(&run);
    battery_set(&run.phase, "window_frames=37");
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

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_udp,
        .what = "udp between namespaces",
        .ports = PORTS,
        .make = make,
        .unmake = netlab_unmake,
        .options = "catch_up=64",
        .overrun = "receive_buffer=20000 burst=128",
        .drops_one = battery_word(argc, argv, "offload=1"),
        .back_most = 1400,
        .sizes = {64, 65, 128, 777, 1518},
        .refusals = refusals,
        .more = count_in_window,
    };

    jumbo = battery_word(argc, argv, "jumbo");
    if (jumbo)
        subject.sizes[4] = 9018;
    return battery_main(&subject, argc, argv);
}
