/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port whose ring is looped back is opened for a few hundredths of a second; one lane sends to
 * itself, with the same code as in a phase.
 */
#include "loopback_baseline.h"

#include "clock.h"
#include "lane.h"
#include "port.h"
#include "port_address.h"

#include <stdlib.h>

#define BASELINE_NS (20 * NS_PER_MS)
#define BASELINE_FPS 200000.0 /* each frame is back before the next is sent */
#define BASELINE_PROBES_FPS 50000.0
#define BASELINE_SIZE 64

static void set_times(struct phase *phase)
{
    phase->start_ns = clock_now() + NS_PER_MS;
    phase->open_ns = phase->start_ns + BASELINE_NS / 4; /* caches are warm by then */
    phase->close_ns = phase->open_ns + BASELINE_NS;
    phase->stop_ns = phase->close_ns;
}

static int run_lane(struct transport_port *port, const struct phase *phase,
                    struct latency baseline[LATENCY_KINDS], struct err *err)
{
    struct flow_side sides[2] = {0};
    struct port_count count = {0};
    struct lane_flow flows[2] = {{.side = &sides[0]}, {.side = &sides[1]}};
    struct lane_request request = {.port = port,
                                   .phase = phase,
                                   .ranks = 1,
                                   .sends = &flows[0],
                                   .send_count = 1,
                                   .receives = &flows[1],
                                   .receive_count = 1,
                                   .count = &count};
    struct lane *lane = NULL;
    int rc;

    port_address(port, &flows[0].partner);
    flows[1].partner = flows[0].partner;
    if ((rc = lane_prepare(&lane, &request, err)) != 0)
        return rc;
    rc = lane_connect(lane, clock_now(), err);
    if (rc == 0) {
        lane_start(lane, clock_now());
        while (clock_now() < phase->stop_ns + NS_PER_MS)
            (void)lane_poll(lane, clock_now());
        for (enum latency_kind kind = 0; kind < LATENCY_KINDS; kind++)
            (void)lane_latency(lane, &flows[0], kind, &baseline[kind]);
    }
    lane_destroy(lane);
    return rc;
}

int loopback_baseline_measure(const struct transport_run *run,
                              struct latency baseline[LATENCY_KINDS], struct err *err)
{
    static const struct port_conf conf = {.name = "the loopback baseline",
                                          .vdev = "net_ring_baseline"};
    static const struct dpdk_options options = {.udp_sources = 1, .burst = 32, .catch_up = 1};
    struct phase phase = {
        .tag = 1,
        .traffic = TRAFFIC_STREAM,
        .sizes = {BASELINE_SIZE},
        .size_count = 1,
        .load = {.rate_fps = BASELINE_FPS},
        .options = &options,
        .latency = {.probe_fps = BASELINE_PROBES_FPS, .stamps = true},
    };
    struct transport_port *port = NULL;
    int rc = port_open(&port, &conf, run, err);

    if (rc != 0)
        return rc;
    set_times(&phase);
    rc = run_lane(port, &phase, baseline, err);
    port_close(port);
    return rc;
}
