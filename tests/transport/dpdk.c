/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over dpdk: dpdk DEVICE [WORD] [KEY=VALUE...]
 *
 * af_packet, af_xdp: kernel interfaces. Words: jumbo; huge, with hugepages, reserved for the test
 * where none are free; and one case alone: router, in which port 0 reaches port 2 through the
 * kernel of the switch's namespace; slow, in which the switch carries less than is sent; narrow, in
 * which the MTU of its port is smaller than the frames.
 *
 * ring: net_ring ports that hand their buffers to each other by reference.
 *
 * capture SIZE...: some frames out of this namespace's eth0.
 */
#include "battery.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"
#include "netlab.h"
#include "netlink.h"
#include "netns.h"
#include "ring_ports.h"
#include "sysfs.h"
#include "unit.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

extern const struct transport transport_dpdk;

#define PORTS 3
static bool xdp, jumbo, huge, router, v6;

/* --- hugepages ---------------------------------------------------------------------------------*/

#define HUGE_WANTED 200 /* of 2 MB: more than the EAL asks for before it uses them */

static long long huge_before = -1;

static long long pages(const char *which)
{
    return sysfs_number(0, "/sys/kernel/mm/hugepages/hugepages-2048kB/%s_hugepages", which);
}

static void give_pages_back(void)
{
    (void)netlab_run("sysctl -qw vm.nr_hugepages=%lld", huge_before);
}

static const char *reserve_pages(void)
{
    if (pages("free") >= HUGE_WANTED)
        return NULL;
    huge_before = pages("nr");
    atexit(give_pages_back);
    return netlab_run("sysctl -qw vm.nr_hugepages=%lld", huge_before + HUGE_WANTED) &&
                   pages("free") >= HUGE_WANTED
               ? NULL
               : "hugepages can't be reserved here";
}

/* --- what is counted ---------------------------------------------------------------------------*/

/* Read the link state of the switch's port i. */
static struct link_state switch_port(size_t i)
{
    struct link_state link = {0};
    struct err err = {""};
    char name[16];
    int before, fd;

    snprintf(name, sizeof name, "p%zu", i);
    assert_int_equal(netns_enter(netlab_switch(), &before, &err), 0);
    fd = netlink_open();
    assert_int_equal(link_read(fd, (int)if_nametoindex(name), &link), 0);
    close(fd);
    netns_leave(before);
    return link;
}

#define OTHERS 50u

/* Send broadcast frames of another program on node 0's host. */
static void send_others(void)
{
    uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5};
    struct sockaddr_ll to = {.sll_family = AF_PACKET};
    struct err err = {""};
    int before, fd;

    assert_int_equal(netns_enter(netlab_namespace(0), &before, &err), 0);
    to.sll_ifindex = (int)if_nametoindex("eth0");
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    for (unsigned i = 0; i < OTHERS; i++)
        assert_int_equal(
            sendto(fd, frame, sizeof frame, 0, (const struct sockaddr *)&to, sizeof to),
            sizeof frame);
    close(fd);
    netns_leave(before);
}

/* The switch's own counters agree with the records to the frame: other frames are the guests' or
 * another program's, which count as foreign where they arrive, and nowhere where they are sent. */
static void check_counters(void)
{
    struct link_state before[PORTS];
    struct battery_run run;

    battery_begin(&run);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_GENERATE);
    battery_add(&run, 2, 1, PATTERN_GENERATE);
    for (size_t i = 0; i < PORTS; i++)
        before[i] = switch_port(i);
    send_others();
    battery_play(&run);
    battery_whole(&run, 50);
    for (size_t i = 0; i < PORTS; i++) {
        struct link_state now = switch_port(i);
        uint64_t sent = run.counts[i].arp_nd_sent + (i == 0 ? OTHERS : 0);
        uint64_t received = run.counts[i].arp_nd_received + run.counts[i].foreign;

        for (size_t flow = 0; flow < run.flow_count; flow++) {
            sent += run.flows[flow].src == i ? run.flows[flow].source.live.frames : 0;
            received += run.flows[flow].dst == i ? run.flows[flow].destination.live.frames : 0;
        }
        assert_int_equal(now.stats.rx_packets - before[i].stats.rx_packets, sent);
        assert_int_equal(now.stats.tx_packets - before[i].stats.tx_packets, received);
        assert_int_equal(run.counts[i].arp_nd_sent, 1);
        assert_int_equal(run.counts[i].foreign >= OTHERS, i > 0);
    }
}

/* A sleeping worker is woken by a probe and by its answer, but by no frame of the load. */
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

/* The kernel may note a change of links late: it does so once a second for the whole machine. */
static void check_link(struct transport_port *port, const char *change)
{
    int64_t limit_ns = clock_now() + 5 * NS_PER_S;
    struct port_facts facts;

    assert_true(netlab_run("ip -n %s link set p1 %s", netlab_switch(), change));
    do {
        transport_dpdk.facts(port, &facts, false);
        clock_sleep_until(clock_now() + 10 * NS_PER_MS);
    } while (facts.link_up != (strcmp(change, "up") == 0) && clock_now() < limit_ns);
    assert_int_equal(facts.link_up, strcmp(change, "up") == 0);
}

static void more(struct transport_port **ports, const struct port_conf *confs)
{
    if (huge)
        assert_true(pages("free") < pages("nr"));
    check_counters();
    if (xdp)
        return;
    check_wake();
    check_link(ports[1], "down");
    check_link(ports[1], "up");
}

/* The switch's port to port 2 carries half of what port 1 sends, and queues the rest. Frames in
 * that queue use the forwarder's send buffer, so frames wait in its own ring, too: all must have
 * left it when the drain is over. */
static void through_slow_link(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    assert_true(netlab_run("tc -n %s qdisc add dev p2 root tbf rate 4mbit burst 4kb limit 4mb",
                           netlab_switch()));
    battery_begin(&run);
    run.duration_ns = NS_PER_S;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 2, PATTERN_FORWARD);
    battery_play(&run);
    battery_whole(&run, 3000);
}

/* The kernel drops each frame that enters the switch, and may count a frame again each time that
 * the driver repeats it: no frame left, and no count of frames that left is negative. */
static void into_narrow_port(struct transport_port **ports, const struct port_conf *confs)
{
    int64_t left = -BATTERY_COUNTER(0, sent_frames), dropped = -BATTERY_COUNTER(0, dropped_send);
    struct battery_run run;
    int64_t frames;

    assert_true(netlab_run("ip -n %s link set dev p0 mtu 576", netlab_switch()));
    battery_begin(&run);
    run.phase.sizes[0] = 1518;
    run.duration_ns = NS_PER_S;
    run.phase.load = (struct load){.rate_fps = 20000};
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_play(&run);
    left += BATTERY_COUNTER(0, sent_frames);
    dropped += BATTERY_COUNTER(0, dropped_send);
    frames = (int64_t)(run.flows[0].source.live.frames + run.counts[0].arp_nd_sent);
    assert_int_equal(run.flows[0].destination.live.frames, 0);
    assert_in_range(left, 0, 10);
    assert_in_range(dropped, frames - 10, frames);
}

/* The switch's kernel is the gateway of both prefixes: its ARP is not padded on a veth, and its
 * IPv6 redirects the ports to each other, from a link-local address. */
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
    return netlab_run("ip netns exec %s sysctl -qw net.ipv4.ip_forward=1 "
                      "net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.send_redirects=0 "
                      "net.ipv4.conf.br0.send_redirects=0",
                      netlab_switch()) &&
           netlab_run(
               "for address in 198.18.0.254/24 198.18.1.254/24 2001:2::fe/64 "
               "2001:2:0:1::fe/64 fe80::fe/64; do ip -n %s addr add $address dev br0 nodad; done",
               netlab_switch());
}

static void set_prefixes(struct port_conf *confs)
{
    confs[0].ipv4 = "198.18.0.1/24";
    confs[0].ipv6 = "2001:2::1/64";
    confs[2].ipv4 = "198.18.1.3/24";
    confs[2].ipv6 = "2001:2:0:1::3/64";
    confs[0].gateway = v6 ? "2001:2::fe" : "198.18.0.254";
    confs[2].gateway = v6 ? "2001:2:0:1::fe" : "198.18.1.254";
}

static const char *make(struct port_conf *confs)
{
    static char macs[PORTS][24];
    const char *reason = huge ? reserve_pages() : NULL;

    if (reason == NULL)
        reason = netlab_make(PORTS, !jumbo ? 1500 : xdp ? 3200 : 9200);
    for (unsigned i = 0; reason == NULL && i < PORTS; i++) {
        snprintf(macs[i], sizeof macs[i], "02:00:00:00:5b:%02x", i + 1);
        ring_ports_describe(&confs[i], i, NULL);
        confs[i].netns = netlab_namespace(i);
        confs[i].iface = "eth0";
        confs[i].driver = xdp ? "af_xdp" : "af_packet";
        confs[i].mac = macs[i];
    }
    if (router)
        set_prefixes(confs);
    if (reason == NULL && (!netlab_run("ip -n %s link add down0 type veth", netlab_namespace(0)) ||
                           (router && !make_router())))
        reason = "the kernel can't forward";
    return reason;
}

static const struct battery_refusal refusals[] = {
    {.size = 63, .says = "not 63"},
    {.size = 9217, .says = "not 9217"},
    {.size = 9216, .message = true, .says = "use tcp or verbs for larger messages"},
    {.no_load = true, .says = "needs a load above 0"},
    {.says = NULL},
};
static const struct battery_refusal xdp_refusals[] = {
    {.options = "vlan=77", .says = "rxvlan off"},
    {.says = NULL},
};

static const struct battery_closed closed[] = {
    {{.iface = NULL}, "one of iface, pci and vdev"},
    {{.vdev = "net_nosuch0"}, "DPDK can't use"},
    {{.pci = "ffff:ff:1e.7"}, "vfio-pci"},
    {{.vdev = "net_null0", .mac = "01:00:00:00:00:01"}, "not a unicast MAC address"},
    {{.vdev = "net_null0", .ipv4 = "198.18.0.1/33"}, "198.18.0.1/33"},
    {{.vdev = "net_null0", .ipv4 = "198.18.0/16"}, "not an IPv4 address"},
    {{.vdev = "net_null0", .ipv4 = "198.18.0.1/16x"}, "198.18.0.1/16x"},
    {{.vdev = "net_null0", .ipv6 = "2001:2::1/129"}, "2001:2::1/129"},
    {{.vdev = "net_null0", .ipv6 = "198.18.0.1"}, "not an IPv6 address"},
    {{.vdev = "net_null0", .gateway = "router"}, "router"},
    {{.iface = "nosuch0"}, "no interface nosuch0"},
    {{.iface = "a-name-that-is-too-long"}, "no interface a-name-that-is-too-long"},
    {{.iface = "lo"}, "not an Ethernet"},
    {{.iface = "eth0", .driver = "af_nosuch"}, "neither af_packet nor af_xdp"},
    {{.iface = "eth0", .netns = "sbt-no-such-namespace"}, "sbt-no-such-namespace"},
    {{.iface = "down0"}, "is down"},
    {.says = NULL},
};

/* --- rings -------------------------------------------------------------------------------------*/

/* Port 0's frames return from port 1 in the same buffers, with other headers; it must write its own
 * headers again when it sends the buffers the next time. */
static void passed_by_reference(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    battery_begin(&run);
    run.phase.load.rate_bps = 80e6;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_FORWARD);
    battery_play(&run);
    battery_whole(&run, 5000);
}

/* Two crossed ports: each receives the buffers that the other sends. */
static const char *make_ring(struct port_conf *confs)
{
    static struct ring_ports rings;

    return ring_ports_make(&rings, 2, true, confs);
}

/* --- for a capture -----------------------------------------------------------------------------*/

#define CAPTURED 6

static uint32_t captured_sizes[TRANSPORT_SIZES_MAX], captured_size_count;

static const char *make_cable(struct port_conf *confs)
{
    confs[0] = (struct port_conf){.name = "from",
                                  .iface = "eth0",
                                  .mac = "02:00:00:00:00:01",
                                  .ipv4 = "198.18.0.1/16",
                                  .ipv6 = "2001:2::1/64"};
    confs[1] = (struct port_conf){.name = "to",
                                  .vdev = "net_null0,no-rx=1",
                                  .mac = "02:00:00:00:00:02",
                                  .ipv4 = "198.18.0.2/16",
                                  .ipv6 = "2001:2::2/64"};
    return NULL;
}

/* Send CAPTURED frames of one flow by eth0 of this namespace, which tests/system/test_capture.py
 * captures. */
static void send_for_capture(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    battery_begin(&run);
    run.phase.tag = 0xbeef;
    run.phase.traffic = TRAFFIC_PROBE;
    run.phase.probes = CAPTURED;
    run.phase.load = (struct load){.rate_fps = 1000};
    run.phase.size_count = captured_size_count;
    memcpy(run.phase.sizes, captured_sizes, sizeof captured_sizes);
    run.duration_ns = 5 * NS_PER_S;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_play(&run);
    assert_int_equal(run.flows[0].source.live.frames, CAPTURED);
    assert_int_equal(run.counts[0].arp_nd_sent, 1);
}

/* --- all ---------------------------------------------------------------------------------------*/

int main(int argc, char **argv)
{
    static bool ring, alone;
    static const struct {
        const char *word;
        bool *mode;
        void (*more)(struct transport_port **ports, const struct port_conf *confs);
        const char *(*make)(struct port_conf *confs); /* of two ports */
    } words[] = {
        {"af_xdp", &xdp, NULL, NULL},
        {"jumbo", &jumbo, NULL, NULL},
        {"huge", &huge, NULL, NULL},
        {"header=ipv6-udp", &v6, NULL, NULL},
        {"router", &router, through_router, NULL},
        {"slow", &alone, through_slow_link, NULL},
        {"narrow", &alone, into_narrow_port, NULL},
        {"ring", &ring, passed_by_reference, make_ring},
        {"capture", &alone, send_for_capture, make_cable},
    };
    struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "dpdk",
        .ports = PORTS,
        .make = make,
        .options = battery_word(argc, argv, "header=l2") ? "catch_up=64 dscp=10"
                                                         : "catch_up=64 dscp=10 udp_sources=2",
        .more = more,
        .back_most = 1400,
        .sizes = {88, 257, 594, 1518},
        .drops = battery_word(argc, argv, "narrow"),
    };

    for (int i = 1; i < argc && captured_size_count < TRANSPORT_SIZES_MAX; i++)
        if (atoi(argv[i]) > 0)
            captured_sizes[captured_size_count++] = (uint32_t)atoi(argv[i]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!battery_word(argc, argv, words[i].word))
            continue;
        *words[i].mode = true;
        subject.more = words[i].more != NULL ? words[i].more : subject.more;
        if (words[i].make != NULL) {
            subject.make = words[i].make;
            subject.ports = 2;
        }
    }
    subject.only_more = alone || router;
    if (jumbo || ring)
        subject.sizes[4] = xdp ? 3000 : 9216;
    if (subject.ports == PORTS) {
        subject.refusals = xdp ? xdp_refusals : refusals;
        subject.closed = !xdp && !jumbo ? closed : NULL;
        subject.overrun = !xdp && !subject.only_more ? "burst=128" : NULL;
    }
    return battery_main(&subject, argc, argv);
}
