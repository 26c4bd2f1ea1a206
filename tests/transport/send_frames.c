/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends some frames of one flow out of a kernel interface, for a capture to look at:
 * send_frames IFACE l2|ipv4-udp|ipv6-udp VLAN_ID|0 COUNT SIZE...
 * From 02:00:00:00:00:01 (198.18.0.1, 2001:2::1) to ...:02, DSCP 46, PCP 5, TTL 63, tag 0xbeef,
 * rank 0 to rank 1, two UDP source ports. Prints how many frames it sent, and learning frames.
 */
#include "clock.h"
#include "dpdk_options.h"
#include "transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct transport transport_dpdk;

static const struct port_conf confs[2] = {
    {.mac = "02:00:00:00:00:01", .ipv4 = "198.18.0.1/16", .ipv6 = "2001:2::1/64", .name = "from"},
    {.mac = "02:00:00:00:00:02",
     .ipv4 = "198.18.0.2/16",
     .ipv6 = "2001:2::2/64",
     .name = "to",
     .vdev = "net_null0,no-rx=1"},
};

static int fail(const struct err *err)
{
    fprintf(stderr, "send_frames: %s\n", err->text);
    return 1;
}

static struct dpdk_options options;

static void fill_phase(struct phase *phase, int argc, char **argv)
{
    uint16_t vlan = (uint16_t)atoi(argv[3]);

    *phase = (struct phase){
        .tag = 0xbeef,
        .traffic = TRAFFIC_PROBE,
        .probes = (uint32_t)atoi(argv[4]),
        .load = {.rate_fps = 1000},
        .options = &options,
    };
    options = (struct dpdk_options){.vlan = vlan != 0,
                                    .vlan_id = vlan,
                                    .pcp = 5,
                                    .dscp = 46,
                                    .ttl = 63,
                                    .burst = 8,
                                    .catch_up = 8,
                                    .udp_sources = 2};
    if (strcmp(argv[2], "ipv4-udp") == 0)
        options.header = HEADER_IPV4_UDP;
    else if (strcmp(argv[2], "ipv6-udp") == 0)
        options.header = HEADER_IPV6_UDP;
    else
        options.udp_sources = 1;
    for (int i = 5; i < argc && phase->size_count < TRANSPORT_SIZES_MAX; i++)
        phase->sizes[phase->size_count++] = (uint32_t)atoi(argv[i]);
}

/* Connects, sends everything and waits a little. */
static int run(struct lane *lane, struct phase *phase, struct err *err)
{
    int64_t end_ns = clock_now() + 5 * NS_PER_S;

    if (transport_dpdk.connect(lane, clock_now(), err) != 0)
        return fail(err);
    phase->start_ns = clock_now();
    phase->stop_ns = end_ns;
    transport_dpdk.poll(lane, clock_now());
    while (!lane->tx_done && clock_now() < end_ns)
        clock_sleep_until(transport_dpdk.poll(lane, clock_now()));
    transport_dpdk.account(lane, ACCOUNT_ALL);
    return 0;
}

int main(int argc, char **argv)
{
    const struct transport_run names = {.run_id = "capture", .node = "capture"};
    struct transport_port *ports[2];
    struct port_conf from = confs[0];
    struct flow_side side = {.first_ns = 0};
    struct port_count count = {.foreign = 0};
    struct lane_flow flow = {.src = 0, .dst = 1, .side = &side};
    struct lane_request request = {.ranks = 2, .sends = &flow, .send_count = 1, .count = &count};
    struct phase phase;
    struct lane *lane;
    struct err err = {""};
    int rc;

    if (argc < 6)
        return 2;
    from.iface = argv[1];
    fill_phase(&phase, argc, argv);
    if (transport_dpdk.open(&ports[0], &from, &names, &err) != 0 ||
        transport_dpdk.open(&ports[1], &confs[1], &names, &err) != 0)
        return fail(&err);
    request.port = ports[0];
    request.phase = &phase;
    flow.partner = transport_address(&transport_dpdk, ports[1]);
    if (transport_dpdk.prepare(&lane, &request, &err) != 0)
        return fail(&err);
    rc = run(lane, &phase, &err);
    printf("%" PRIu64 " frames, %" PRIu64 " learning\n", side.live.frames, count.arp_nd_sent);
    transport_dpdk.destroy(lane);
    transport_dpdk.close(ports[1]);
    transport_dpdk.close(ports[0]);
    return rc;
}
