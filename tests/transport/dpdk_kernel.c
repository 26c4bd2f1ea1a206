/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over dpdk on kernel interfaces: dpdk_kernel af_packet|af_xdp l2|ipv4-udp|ipv6-udp
 * [vlan] [jumbo].
 */
#include "battery.h"
#include "netlab.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern const struct transport transport_dpdk;

#define PORTS 3

static const char *driver = "af_packet";
static enum header_kind header;
static bool vlan;
static bool jumbo;
static char texts[PORTS][4][48];

static const char *make(struct port_conf *confs)
{
    const char *reason = netlab_make(PORTS, !jumbo                          ? 1500
                                            : strcmp(driver, "af_xdp") == 0 ? 3200
                                                                            : 9200);

    for (size_t i = 0; reason == NULL && i < PORTS; i++) {
        snprintf(texts[i][0], sizeof texts[i][0], "node%zu:e0", i);
        snprintf(texts[i][1], sizeof texts[i][1], "02:00:00:00:5b:%02zx", i + 1);
        snprintf(texts[i][2], sizeof texts[i][2], "198.18.0.%zu/16", i + 1);
        snprintf(texts[i][3], sizeof texts[i][3], "2001:2::%zx/64", i + 1);
        confs[i] = (struct port_conf){
            .name = texts[i][0],
            .network = "default",
            .netns = netlab_namespace(i),
            .iface = "eth0",
            .driver = driver,
            .mac = texts[i][1],
            .ipv4 = texts[i][2],
            .ipv6 = texts[i][3],
        };
    }
    return reason;
}

static void tune(struct phase *phase)
{
    phase->dpdk.header = header;
    phase->dpdk.vlan = vlan;
    phase->dpdk.vlan_id = vlan ? 77 : 0;
    phase->dpdk.pcp = vlan ? 5 : 0;
    phase->dpdk.dscp = 10;
    phase->dpdk.udp_sources = header == HEADER_L2 ? 1 : 3;
}

static void too_small(struct phase *phase)
{
    phase->sizes[0] = 63;
}

static void too_big(struct phase *phase)
{
    phase->sizes[0] = 9217;
}

static void no_load(struct phase *phase)
{
    phase->load = (struct load){.rate_bps = 0};
}

static const struct battery_refusal refusals[] = {
    {too_small, "at least"}, {too_big, "at most"}, {no_load, "no load"}};

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "dpdk on a kernel interface",
        .ports = PORTS,
        .make = make,
        .unmake = netlab_unmake,
        .tune = tune,
        .sizes = {88, 257, 594, 1518},
        .refusals = refusals,
        .refusal_count = sizeof refusals / sizeof refusals[0],
    };

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "af_", 3) == 0)
            driver = argv[i];
        else if (strcmp(argv[i], "ipv4-udp") == 0)
            header = HEADER_IPV4_UDP;
        else if (strcmp(argv[i], "ipv6-udp") == 0)
            header = HEADER_IPV6_UDP;
        vlan = vlan || strcmp(argv[i], "vlan") == 0;
        jumbo = jumbo || strcmp(argv[i], "jumbo") == 0;
    }
    if (jumbo)
        subject.sizes[4] = strcmp(driver, "af_xdp") == 0 ? 3000 : 9216;
    return battery_main(&subject);
}
