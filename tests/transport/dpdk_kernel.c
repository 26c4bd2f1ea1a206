/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over dpdk on kernel interfaces: dpdk_kernel af_packet|af_xdp l2|ipv4-udp|ipv6-udp
 * [vlan] [jumbo] [huge] [gateway] [router] [slow] [narrow]. huge: with hugepages, reserved for the
 * test where none are free; gateway: one case only, in which port 0 reaches port 2 through port 1;
 * router: one case only, in which it does so through the kernel of the switch's namespace; slow:
 * one case only, in which the switch carries less than is sent; narrow: one case only, in which
 * the MTU of its port is smaller than the frames.
 */
#include "battery.h"
#include "clock.h"
#include "dpdk_options.h"
#include "netlab.h"
#include "netns.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

#define PORTS 3

static struct dpdk_options *options_of(struct phase *phase)
{
    return battery_options(phase);
}

static const char *driver;
static enum header_kind header;
static bool vlan;
static bool jumbo;
static bool huge;
static bool through_port;
static bool through_kernel;
static char texts[PORTS][4][48];

#define HUGE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
#define HUGE_FREE "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
#define HUGE_WANTED 200 /* of 2 MB: more than the EAL asks for before it uses them */

static long huge_before = -1;

static long read_number(const char *path)
{
    long number = -1;
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return -1;
    if (fscanf(file, "%ld", &number) != 1)
        number = -1;
    fclose(file);
    return number;
}

static void set_pages(long number)
{
    FILE *file = fopen(HUGE_PAGES, "w");

    if (file == NULL)
        return;
    fprintf(file, "%ld", number);
    fclose(file);
}

static void give_pages_back(void)
{
    if (huge_before >= 0)
        set_pages(huge_before);
}

static const char *reserve_pages(void)
{
    if (read_number(HUGE_FREE) >= HUGE_WANTED)
        return NULL;
    huge_before = read_number(HUGE_PAGES);
    atexit(give_pages_back);
    if (huge_before >= 0)
        set_pages(huge_before + HUGE_WANTED);
    return read_number(HUGE_FREE) >= HUGE_WANTED ? NULL : "hugepages can't be reserved here";
}

static void check_pages(void)
{
    if (huge)
        assert_true(read_number(HUGE_FREE) < read_number(HUGE_PAGES));
}

/* What the kernel counts on the bridge's port towards node i. */
struct switch_count {
    unsigned long long received;
    unsigned long long sent;
};

static struct switch_count switch_count(size_t i)
{
    struct switch_count count = {0, 0};
    char line[512], name[16];
    struct err err = {""};
    int before;
    FILE *file;

    snprintf(name, sizeof name, "p%zu:", i);
    assert_int_equal(netns_enter(netlab_switch(), &before, &err), 0);
    file = fopen("/proc/thread-self/net/dev", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (strstr(line, name) != NULL)
            sscanf(strchr(line, ':') + 1, "%*u %llu %*u %*u %*u %*u %*u %*u %*u %llu",
                   &count.received, &count.sent);
    fclose(file);
    netns_leave(before);
    return count;
}

/* The switch's own counters agree with the records to the frame: what is not the flows' is the
 * guests'. */
static void check_counters(void)
{
    struct switch_count before[PORTS];
    struct battery_run run;

    battery_begin(&run);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_GENERATE);
    battery_add(&run, 2, 1, PATTERN_GENERATE);
    for (size_t i = 0; i < PORTS; i++)
        before[i] = switch_count(i);
    battery_play(&run);
    battery_whole(&run, 50);
    for (size_t i = 0; i < PORTS; i++) {
        struct switch_count now = switch_count(i);
        uint64_t sent = run.counts[i].arp_nd_sent;
        uint64_t received = run.counts[i].arp_nd_received + run.counts[i].foreign;

        for (size_t flow = 0; flow < run.flow_count; flow++) {
            sent += run.flows[flow].src == i ? run.flows[flow].source.live.frames : 0;
            received += run.flows[flow].dst == i ? run.flows[flow].destination.live.frames : 0;
        }
        assert_int_equal(now.received - before[i].received, sent);
        assert_int_equal(now.sent - before[i].sent, received);
        assert_int_equal(run.counts[i].arp_nd_sent, 1);
    }
}

#define OTHERS 50u

/* Broadcast frames of another program on node 0's host. */
static void send_others(void)
{
    uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5};
    struct sockaddr_ll to = {.sll_family = AF_PACKET};
    struct err err = {""};
    int before, fd;

    assert_int_equal(netns_enter(netlab_namespace(0), &before, &err), 0);
    to.sll_ifindex = (int)if_nametoindex("eth0");
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < OTHERS; i++)
        assert_int_equal(
            sendto(fd, frame, sizeof frame, 0, (const struct sockaddr *)&to, sizeof to),
            sizeof frame);
    close(fd);
    netns_leave(before);
}

/* They are foreign where they arrive, and nothing where they are sent. */
static void check_others(void)
{
    struct battery_run run;

    battery_begin(&run);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    send_others();
    battery_play(&run);
    battery_whole(&run, 50);
    assert_true(run.counts[0].foreign < OTHERS); /* kernels speak, too */
    assert_true(run.counts[1].foreign >= OTHERS);
}

/* A sleeping worker is woken by a probe and by its answer, and for no frame of the load. */
static void check_wake(void)
{
    struct battery_run run;

    battery_begin(&run);
    run.phase.latency.probe_fps = 50;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_play(&run);
    battery_whole(&run, 50);
    for (size_t i = 0; i < 2; i++) {
        assert_in_range(run.counts[i].probes_received, 5, 30);
        assert_in_range(run.woken[i], 1, 100);
    }
}

static void more(struct transport_port **ports, const struct port_conf *confs)
{
    check_pages();
    check_counters();
    check_others();
    if (strcmp(driver, "af_packet") == 0)
        check_wake();
}

/* The switch's port to port 2 carries half of what port 1 sends on, and queues the rest. What waits
 * there counts against the forwarder's send buffer, so frames wait in its own ring too: all must
 * have left it when the drain is over. */
static void through_slow_link(struct transport_port **ports, const struct port_conf *confs)
{
    const char *const shape[] = {"tc",  "-n",    netlab_switch(), "qdisc", "add",   "dev",
                                 "p2",  "root",  "tbf",           "rate",  "4mbit", "burst",
                                 "4kb", "limit", "4mb",           NULL};
    struct battery_run run;

    assert_int_equal(netlab_run(shape), 0);
    battery_begin(&run);
    run.duration_ns = NS_PER_S;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 2, PATTERN_FORWARD);
    battery_play(&run);
    battery_whole(&run, 3000);
}

/* The kernel drops each frame where it enters the switch, and may count one that the driver sends
 * again each time: of those sent, none left, and no count of what did is negative. */
static void into_narrow_port(struct transport_port **ports, const struct port_conf *confs)
{
    const char *const shrink[] = {"ip",  "-n", netlab_switch(), "link", "set",
                                  "dev", "p0", "mtu",           "576",  NULL};
    struct port_facts before, after;
    struct battery_run run;
    int64_t frames;

    assert_int_equal(netlab_run(shrink), 0);
    battery_begin(&run);
    run.phase.sizes[0] = 1518;
    run.duration_ns = NS_PER_S;
    run.phase.load = (struct load){.rate_fps = 20000};
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    transport_dpdk.facts(ports[0], &before, true);
    battery_play(&run);
    transport_dpdk.facts(ports[0], &after, true);
    frames = (int64_t)(run.flows[0].source.live.frames + run.counts[0].arp_nd_sent);
    assert_int_equal(run.flows[0].destination.live.frames, 0);
    assert_in_range(after.hardware.sent_frames - before.hardware.sent_frames, 0, 10);
    assert_in_range(after.hardware.dropped_send - before.hardware.dropped_send, frames - 10,
                    frames);
}

/* Port 2 is in another prefix: port 0 finds the gateway, port 1, and sends its frames there. */
static void through_gateway(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    battery_begin(&run);
    battery_add(&run, 0, 2, PATTERN_GENERATE);
    battery_play(&run);
    assert_true(run.flows[0].source.live.frames > 50);
    assert_int_equal(run.flows[0].destination.live.frames, 0);
    assert_int_equal(run.counts[1].misdelivered, run.flows[0].source.live.frames);
    assert_true(run.counts[0].arp_nd_sent >= 2); /* learning and the question */
    assert_true(run.counts[1].arp_nd_sent >= 2); /* learning and the answer */
}

/* The switch's own kernel is the gateway of both prefixes: its ARP is not padded on a veth. */
static void through_router(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    battery_begin(&run);
    battery_add(&run, 0, 2, PATTERN_GENERATE);
    battery_add(&run, 2, 0, PATTERN_GENERATE);
    battery_play(&run);
    battery_whole(&run, 50);
}

static bool make_router(void)
{
    static const char *const commands[][12] = {
        {"ip", "addr", "add", "198.18.0.254/24", "dev", "br0"},
        {"ip", "addr", "add", "198.18.1.254/24", "dev", "br0"},
        {"ip", "addr", "add", "2001:2::fe/64", "dev", "br0", "nodad"},
        {"ip", "addr", "add", "2001:2:0:1::fe/64", "dev", "br0", "nodad"},
        {"sh", "-c",
         "cd /proc/sys/net && echo 1 >ipv4/ip_forward && echo 1 >ipv6/conf/all/forwarding && "
         "echo 0 >ipv4/conf/all/send_redirects && echo 0 >ipv4/conf/br0/send_redirects"},
    };

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *command[16] = {"ip", "netns", "exec", netlab_switch()};

        memcpy(command + 4, commands[i], sizeof commands[i]);
        if (netlab_run(command) != 0)
            return false;
    }
    return true;
}

static void set_prefixes(struct port_conf *confs)
{
    bool v6 = header == HEADER_IPV6_UDP;

    confs[0].ipv4 = "198.18.0.1/24";
    confs[0].ipv6 = "2001:2::1/64";
    confs[2].ipv4 = "198.18.1.3/24";
    confs[2].ipv6 = "2001:2:0:1::3/64";
    if (through_kernel) {
        confs[0].gateway = v6 ? "2001:2::fe" : "198.18.0.254";
        confs[2].gateway = v6 ? "2001:2:0:1::fe" : "198.18.1.254";
    } else {
        confs[0].gateway = v6 ? "2001:2::2" : "198.18.0.2";
    }
}

static const char *make(struct port_conf *confs)
{
    const char *pages = huge ? reserve_pages() : NULL;
    const char *reason = pages != NULL ? pages
                                       : netlab_make(PORTS, !jumbo                          ? 1500
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
    if (through_port || through_kernel)
        set_prefixes(confs);
    if (reason == NULL && through_kernel && !make_router())
        reason = "the kernel can't forward";
    return reason;
}

static void tune(struct phase *phase)
{
    options_of(phase)->header = header;
    options_of(phase)->catch_up = 64;
    options_of(phase)->vlan = vlan;
    options_of(phase)->vlan_id = vlan ? 77 : 0;
    options_of(phase)->pcp = vlan ? 5 : 0;
    options_of(phase)->dscp = 10;
    options_of(phase)->udp_sources = header == HEADER_L2 ? 1 : 3;
}

static void tagged(struct phase *phase)
{
    options_of(phase)->vlan = true;
}

static const struct battery_refusal refusals[] = {
    {.size = 63, .says = "at least"},
    {.size = 9217, .says = "at most"},
    {.no_load = true, .says = "no load"},
    {.size = 9216, .message = true, .says = "larger ones run over tcp and verbs"},
    {.spoil = tagged, .says = "rxvlan off"}, /* AF_XDP's */
};
#define REFUSALS (sizeof refusals / sizeof refusals[0])

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const struct {
        const char *word;
        void (*more)(struct transport_port **ports, const struct port_conf *confs);
        bool *mode;
    } cases[] = {{"gateway", through_gateway, &through_port},
                 {"router", through_router, &through_kernel},
                 {"slow", through_slow_link, NULL},
                 {"narrow", into_narrow_port, NULL}};
    bool xdp = has(argc, argv, "af_xdp");
    struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "dpdk on a kernel interface",
        .ports = PORTS,
        .make = make,
        .unmake = netlab_unmake,
        .tune = tune,
        .more = more,
        .back_most = 1400,
        .sizes = {88, 257, 594, 1518},
        .refusals = refusals,
        .refusal_count = xdp ? REFUSALS : REFUSALS - 1,
        .drops = has(argc, argv, "narrow"),
    };

    driver = xdp ? "af_xdp" : "af_packet";
    header = has(argc, argv, "ipv4-udp")   ? HEADER_IPV4_UDP
             : has(argc, argv, "ipv6-udp") ? HEADER_IPV6_UDP
                                           : HEADER_L2;
    vlan = has(argc, argv, "vlan");
    huge = has(argc, argv, "huge");
    jumbo = has(argc, argv, "jumbo");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!has(argc, argv, cases[i].word))
            continue;
        subject.more = cases[i].more;
        subject.only_more = true;
        if (cases[i].mode != NULL)
            *cases[i].mode = true;
    }
    if (jumbo)
        subject.sizes[4] = xdp ? 3000 : 9216;
    return battery_main(&subject);
}
