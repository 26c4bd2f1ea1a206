/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over dpdk on devices without a kernel: dpdk_devices ring|null l2|ipv4-udp|ipv6-udp.
 * Ring ports hand their buffers to each other by reference.
 */
#include "battery.h"
#include "eal.h"

#include <stdio.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ring.h>

extern const struct transport transport_dpdk;

#define PORTS 2
#define RING 1024

static enum header_kind header;
static char texts[PORTS][3][48];

static void describe(struct port_conf *confs, size_t i, const char *vdev)
{
    snprintf(texts[i][0], sizeof texts[i][0], "node%zu:e0", i);
    snprintf(texts[i][1], sizeof texts[i][1], "198.18.0.%zu/16", i + 1);
    snprintf(texts[i][2], sizeof texts[i][2], "2001:2::%zx/64", i + 1);
    confs[i] = (struct port_conf){
        .name = texts[i][0], .vdev = vdev, .ipv4 = texts[i][1], .ipv6 = texts[i][2]};
}

static const char *make_null(struct port_conf *confs)
{
    describe(confs, 0, "net_null0,no-rx=1");
    return NULL;
}

/* Two ports, crosswise: what one sends the other receives, buffer for buffer. */
static const char *make_ring(struct port_conf *confs)
{
    static const char *const devices[PORTS] = {"cross0", "cross1"};
    static char names[PORTS][32];
    struct rte_ring *rings[PORTS];
    struct err err = {""};

    if (eal_start("battery", &err) != 0)
        return "DPDK does not start here";
    for (unsigned i = 0; i < PORTS; i++) {
        rings[i] = rte_ring_create(devices[i], RING, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
        if (rings[i] == NULL)
            return "no memory for rings";
    }
    for (unsigned i = 0; i < PORTS; i++) {
        if (rte_eth_from_rings(devices[i], &rings[i], 1, &rings[1 - i], 1, 0) < 0)
            return "DPDK has no ring driver here";
        snprintf(names[i], sizeof names[i], "net_ring_%s", devices[i]);
        describe(confs, i, names[i]);
    }
    return NULL;
}

static void tune(struct phase *phase)
{
    phase->dpdk.header = header;
    phase->dpdk.udp_sources = header == HEADER_L2 ? 1 : 2;
}

/* What port 0 sends comes back from port 1 in the same buffers, rewritten; it must find its own
 * headers again when it sends them the next time. */
static void there_and_back(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    (void)ports;
    (void)confs;
    battery_begin(&run);
    run.phase.load.rate_bps = 80e6;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_FORWARD);
    battery_play(&run);
    battery_whole(&run, 5000);
}

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "dpdk on net_ring",
        .ports = PORTS,
        .make = make_ring,
        .tune = tune,
        .sizes = {84, 333, 1518, 9216},
        .more = there_and_back,
    };

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "null") == 0) {
            subject.what = "dpdk on net_null";
            subject.ports = 1;
            subject.make = make_null;
            subject.more = NULL;
        } else if (strcmp(argv[i], "ipv4-udp") == 0) {
            header = HEADER_IPV4_UDP;
        } else if (strcmp(argv[i], "ipv6-udp") == 0) {
            header = HEADER_IPV6_UDP;
        }
    }
    return battery_main(&subject);
}
