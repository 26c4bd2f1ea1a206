/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over the kernel's sockets that carry frames, between namespaces: frames udp|packet
 * [jumbo] [KEY=VALUE...]. tests/transport/dpdk_lanes.c covers forged sequence numbers for all
 * frames.
 */
#include "battery.h"
#include "clock.h"
#include "kernel/ip_port.h"
#include "netlab.h"
#include "netns.h"
#include "signature.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_packet;
extern const struct transport transport_udp;

#define PORTS 4
#define FRAME_BYTES (256 - FRAME_FCS)
#define UDP_HEADERS (ETH_HLEN + 28u) /* with IPv4 */
#define PROBES_FPS 100

static const struct transport *transport;
static bool jumbo;

static const char *make(struct port_conf *confs)
{
    return netlab_make_ports(confs, PORTS, jumbo ? 9000 : 1500);
}

/* --- each frame counts once, as what it is -----------------------------------------------------*/

enum { UDP = 1, PACKET = 2 }; /* transport of the row */
enum counter { FRAMES, CORRUPTED, MISDELIVERED, ANNOUNCED, FOREIGN, COUNTERS };
enum tag { THIS_PHASE, OTHER_PHASE, PROBE_ANSWER };

/* A valid frame to rank 1 of the flow from rank 0, except for what these members change. */
static const struct injected {
    unsigned over;
    enum counter counts;
    enum tag tag;
    uint32_t sequence;
    bool stranger; /* from another socket */
    bool other_rank, fill_damaged, source_damaged, vlan, announces;
} injected[] = {
    {UDP | PACKET, FRAMES, .sequence = 0},
    {UDP | PACKET, CORRUPTED, .sequence = 1, .fill_damaged = true},
    {UDP | PACKET, MISDELIVERED, .other_rank = true},
    {UDP | PACKET, FOREIGN, OTHER_PHASE, .sequence = 0},
    {UDP | PACKET, ANNOUNCED, .announces = true},
    {PACKET, CORRUPTED, .source_damaged = true},
    {PACKET, FOREIGN, .vlan = true},
    {UDP, FOREIGN, .sequence = 1, .stranger = true},
    /* Otherwise more answers than probes would count, or round trips of any length. */
    {UDP, FOREIGN, PROBE_ANSWER, .sequence = 0},
    {UDP, FOREIGN, PROBE_ANSWER, .sequence = 1000},
    {UDP, FOREIGN, PROBE_ANSWER, .sequence = 0, .stranger = true},
    {UDP, FOREIGN, PROBE_ANSWER, .sequence = 1000, .stranger = true},
};

static struct battery_run run;
static struct battery_stage stage;
static int sockets[2]; /* the sender's and the stranger's */

static void begin(void)
{
    battery_begin(&run);
    stage = (struct battery_stage){.run = &run};
}

/* Return the lane of a rank, polled at the phase's start. */
static struct lane *make_lane(uint32_t rank)
{
    struct err err = {""};

    run.phase.start_ns = run.phase.open_ns = clock_now();
    run.phase.stop_ns = run.phase.close_ns = run.phase.start_ns + 100 * NS_PER_S;
    if (battery_prepare(&stage, rank, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport->connect(stage.lanes[rank], clock_now(), &err), 0);
    memset(&run.counts[rank], 0, sizeof run.counts[rank]);
    transport->poll(stage.lanes[rank], run.phase.start_ns);
    return stage.lanes[rank];
}

/* Open a socket in a port's namespace; *sender describes a UDP one as ports do. */
static int open_socket(const struct port_conf *conf, struct ip_port *sender)
{
    struct sockaddr_ll device = {.sll_family = AF_PACKET};
    struct sockaddr_storage *address = &sender->address;
    socklen_t size = sizeof(struct sockaddr_in);
    struct err err = {""};
    int home = -1, fd;

    *sender = (struct ip_port){.conf = conf, .netlink = -1};
    assert_int_equal(netns_enter(conf->netns, &home, &err), 0);
    fd = transport == &transport_udp ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
                                     : socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    device.sll_ifindex = (int)if_nametoindex(conf->iface);
    netns_leave(home);
    if (transport == &transport_packet) {
        assert_int_equal(bind(fd, (const struct sockaddr *)&device, sizeof device), 0);
        return fd;
    }
    *(struct sockaddr_in *)address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a630001)};
    assert_int_equal(bind(fd, (const struct sockaddr *)address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &size), 0);
    return fd;
}

static void send_frame(const struct injected *row, const struct blob ends[2],
                       const struct sockaddr_storage *to)
{
    const uint16_t phase = run.phase.tag;
    const uint16_t tags[] = {phase, (uint16_t)(phase + 1), phase ^ SIGNATURE_ANSWER};
    const uint8_t vlan[] = {0x81, 0x00, 0x00, 0x05}, type[] = {0x88, 0xb5};
    struct signature signature = {.tag = htobe16(tags[row->tag]),
                                  .dst = htobe16(row->other_rank ? 2 : 1)};
    struct signature_time time = signature_time(0);
    uint8_t frame[FRAME_BYTES + sizeof vlan], *at = frame, *payload;
    size_t bytes;

    signature_stamp(&signature, row->sequence, &time, signature_base(&signature) + time.sum);
    if (row->source_damaged)
        signature.src ^= htobe16(0x4000);
    if (row->announces)
        memset(&signature, 0, sizeof signature);
    memset(at, 0xff, ETH_ALEN);
    if (!row->announces)
        memcpy(at, ends[1].bytes, ETH_ALEN); /* a packet port's begins with the address */
    memcpy(at + ETH_ALEN, ends[0].bytes, ETH_ALEN);
    at += 2 * ETH_ALEN;
    if (row->vlan)
        at = (uint8_t *)memcpy(at, vlan, sizeof vlan) + sizeof vlan;
    memcpy(at, type, sizeof type);
    payload = at + sizeof type;
    memcpy(payload, &signature, sizeof signature);
    memcpy(payload + sizeof signature, fill_table()->bytes,
           FRAME_BYTES - ETH_HLEN - sizeof signature);
    payload[100] ^= row->fill_damaged;
    if (transport == &transport_packet) {
        bytes = (size_t)(payload - frame) + FRAME_BYTES - ETH_HLEN;
        assert_int_equal(send(sockets[0], frame, bytes, 0), bytes);
    } else {
        bytes = row->announces ? 0 : FRAME_BYTES - UDP_HEADERS;
        assert_int_equal(sendto(sockets[row->stranger], payload, bytes, 0,
                                (const struct sockaddr *)to, sizeof(struct sockaddr_in)),
                         bytes);
    }
}

static void read_counters(struct lane *lane, uint64_t counters[COUNTERS])
{
    const struct flow_side *side = &stage.flows[1][1].side; /* after the flow that it sends */

    transport->account(lane, ACCOUNT_ALL);
    counters[FRAMES] = side->live.frames;
    counters[CORRUPTED] = side->corrupted;
    counters[MISDELIVERED] = run.counts[1].misdelivered;
    counters[ANNOUNCED] = run.counts[1].arp_nd_received;
    counters[FOREIGN] = run.counts[1].foreign;
}

static void count_each(struct transport_port **ports, const struct port_conf *confs)
{
    const struct flow_reading *reading;
    const bool udp = transport == &transport_udp;
    struct blob ends[2] = {transport_address(transport, ports[0]),
                           transport_address(transport, ports[1])};
    struct ip_port sender, stranger;
    struct sockaddr_storage to;
    struct lane *lane;

    begin();
    run.phase.latency.probe_fps = PROBES_FPS;
    for (int i = 0; i < 2; i++)
        sockets[i] = open_socket(&confs[0], i == 0 ? &sender : &stranger);
    if (udp) {
        assert_true(ip_port_partner(&sender, &ends[1], &to));
        ip_port_address(&sender, &ends[0]);
    }
    battery_add(&run, 1, 0, PATTERN_GENERATE);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    run.flows[0].other[0] = run.flows[1].other[1] = ends[0];
    lane = make_lane(1);
    for (size_t i = 0; i < sizeof injected / sizeof injected[0]; i++) {
        const int64_t until_ns = clock_now() + NS_PER_S, come = BATTERY_COUNTER(1, received_frames);
        uint64_t before[COUNTERS], after[COUNTERS];

        if ((injected[i].over & (udp ? UDP : PACKET)) == 0)
            continue;
        read_counters(lane, before);
        send_frame(&injected[i], ends, &to);
        while (BATTERY_COUNTER(1, received_frames) == come && clock_now() < until_ns)
            transport->poll(lane, run.phase.start_ns);
        if (poll(&(struct pollfd){.fd = lane->wake_fd, .events = POLLIN}, 1, 0) != 0)
            fail_msg("row %zu: all is read, and a worker that sleeps would be woken", i);
        read_counters(lane, after);
        for (unsigned c = 0; c < COUNTERS; c++)
            if (after[c] - before[c] != (c == injected[i].counts))
                fail_msg("row %zu: counter %u went from %llu to %llu", i, c,
                         (unsigned long long)before[c], (unsigned long long)after[c]);
    }
    assert_int_equal(run.counts[1].probes_received, 0);
    reading = battery_reading(transport, lane, &stage.flows[1][0]);
    assert_true(reading->measured[LATENCY_ROUND_TRIP]);
    assert_int_equal(reading->latency[LATENCY_ROUND_TRIP].histogram.count, 0);
    battery_destroy(&stage, 1);
    close(sockets[0]);
    close(sockets[1]);
}

/* --- udp's own ---------------------------------------------------------------------------------*/

static void look_at_end(struct battery_run *played, uint32_t rank, struct lane *lane)
{
    if (rank == 0)
        assert_true(lane->stopped_ns >= played->phase.stop_ns);
}

/* A stream of a counted number of frames begins when the window opens, and the port ends with the
 * phase. */
static void count_in_window(void)
{
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

static void more(struct transport_port **ports, const struct port_conf *confs)
{
    count_each(ports, confs);
    if (transport != &transport_udp)
        return;
    count_in_window();
}

static const struct battery_refusal refusals[] = {
    {.options = "receive_buffer=4294967295", .says = "net.core.rmem_max"}, /* packet has none */
    {.size = 63, .says = "64 to "},
    {.size = 9019, .says = "MTU"},
    {.size = 9000, .message = true, .says = "use tcp or verbs for larger messages"},
    {.no_load = true, .says = "needs a load above 0"},
    {.says = NULL},
};
static const struct battery_closed packet_closed[] = {
    {{.iface = NULL}, "iface"},
    {{.iface = "eth7"}, "no interface eth7"},
    {{.iface = "lo"}, "not an Ethernet interface"},
    {.says = NULL},
};

int main(int argc, char **argv)
{
    bool udp = battery_word(argc, argv, "udp");
    struct battery_subject subject = {
        .transport = transport = udp ? &transport_udp : &transport_packet,
        .what = udp ? "udp between namespaces" : "packet between namespaces",
        .ports = PORTS,
        .make = make,
        .options = "catch_up=64",
        .overrun = udp ? "receive_buffer=20000 burst=128" : "burst=128",
        .back_most = 1400,
        .sizes = {64, 65, 128, 777, 1518},
        .refusals = udp ? refusals : refusals + 1,
        .closed = udp ? NULL : packet_closed,
        .more = more,
    };

    jumbo = battery_word(argc, argv, "jumbo");
    if (jumbo)
        subject.sizes[4] = 9018;
    return battery_main(&subject, argc, argv);
}
