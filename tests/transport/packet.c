/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over raw frames between namespaces: packet [jumbo].
 */
#include "battery.h"
#include "clock.h"
#include "fill.h"
#include "netlab.h"
#include "netns.h"
#include "signature.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_packet;

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
    {.says = NULL},
};

/* --- counting ----------------------------------------------------------------------------------*/

#define FRAME_BYTES (256 - 4)

enum injected {
    SOUND,
    DAMAGED_FILL,
    DAMAGED_RANK,
    TAGGED,
    MISDELIVERED,
    OTHER_PHASE,
    TO_ALL,
    KINDS
};

/* A frame of the flow from rank 0 to rank 1, sound but for what `kind` says; returns its length. */
static size_t write_frame(uint8_t *frame, const struct blob ends[2], uint16_t tag,
                          enum injected kind)
{
    uint8_t *at = frame;
    struct signature signature = {.tag = htobe16((uint16_t)(tag + (kind == OTHER_PHASE))),
                                  .dst = htobe16(kind == MISDELIVERED ? 2 : 1)};
    struct signature_time time = signature_time(0);
    const uint8_t vlan[] = {0x81, 0x00, 0x00, 0x05}, type[] = {0x88, 0xb5};

    signature_stamp(&signature, 0, &time, signature_base(&signature) + time.sum);
    if (kind == DAMAGED_RANK)
        signature.src ^= htobe16(0x4000);
    memset(at, 0xff, ETH_ALEN);
    if (kind != TO_ALL)
        memcpy(at, ends[1].bytes, ETH_ALEN); /* it begins with the address */
    memcpy(at + ETH_ALEN, ends[0].bytes, ETH_ALEN);
    at += 2 * ETH_ALEN;
    if (kind == TAGGED) {
        memcpy(at, vlan, sizeof vlan);
        at += sizeof vlan;
    }
    memcpy(at, type, sizeof type);
    at += sizeof type;
    if (kind == TO_ALL)
        memset(&signature, 0, sizeof signature);
    memcpy(at, &signature, sizeof signature);
    at += sizeof signature;
    memcpy(at, fill_table()->bytes, FRAME_BYTES - ETH_HLEN - SIGNATURE_BYTES);
    at[100] ^= kind == DAMAGED_FILL;
    return (size_t)(at - frame) + FRAME_BYTES - ETH_HLEN - SIGNATURE_BYTES;
}

/* One frame of each kind, from a socket of rank 0's namespace. */
static void inject(const struct port_conf *conf, const struct blob ends[2], uint16_t tag)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET};
    struct err err = {""};
    uint8_t frame[FRAME_BYTES + 4];
    int home = -1, fd;

    assert_int_equal(netns_enter(conf->netns, &home, &err), 0);
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    address.sll_ifindex = (int)if_nametoindex(conf->iface);
    netns_leave(home);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    for (int kind = 0; kind < KINDS; kind++) {
        size_t length = write_frame(frame, ends, tag, (enum injected)kind);

        assert_int_equal(send(fd, frame, length, 0), length);
    }
    close(fd);
}

/* Each frame that the kernel hands over counts once, as what it is. */
static void count_each(struct transport_port **ports, const struct port_conf *confs)
{
    const struct blob ends[2] = {transport_address(&transport_packet, ports[0]),
                                 transport_address(&transport_packet, ports[1])};
    struct flow_side side = {0};
    struct port_count count = {0};
    struct lane_flow flow = {.src = 0, .dst = 1, .partner = ends[0], .side = &side};
    struct lane_request request = {.port = ports[1],
                                   .rank = 1,
                                   .ranks = PORTS,
                                   .sends = &flow,
                                   .receives = &flow,
                                   .receive_count = 1};
    struct port_facts before, after;
    struct battery_run run;
    struct lane *lane = NULL;
    struct err err = {""};
    int64_t begin_ns;

    battery_begin(&run);
    run.phase.start_ns = run.phase.open_ns = clock_now();
    run.phase.stop_ns = run.phase.close_ns = begin_ns = run.phase.start_ns + NS_PER_S;
    request.phase = &run.phase;
    request.count = &count;
    assert_int_equal(transport_packet.prepare(&lane, &request, &err), 0);
    assert_int_equal(transport_packet.connect(lane, clock_now(), &err), 0);
    transport_packet.facts(ports[1], &before, true);
    memset(&count, 0, sizeof count);
    transport_packet.poll(lane, clock_now());
    inject(&confs[0], ends, run.phase.tag);
    do {
        transport_packet.poll(lane, clock_now());
        transport_packet.facts(ports[1], &after, true);
    } while (after.hardware.received_frames - before.hardware.received_frames < KINDS &&
             clock_now() < begin_ns);
    transport_packet.account(lane, ACCOUNT_ALL);
    transport_packet.destroy(lane);
    assert_int_equal(after.hardware.received_frames - before.hardware.received_frames, KINDS);
    assert_int_equal(side.live.frames, 1);
    assert_int_equal(side.corrupted, 2);
    assert_int_equal(count.misdelivered, 1);
    assert_int_equal(count.arp_nd_received, 1);
    assert_int_equal(count.foreign, 2); /* another phase's, and the tagged one */
}

static const struct battery_closed closed[] = {
    {{.iface = NULL}, "iface"},
    {{.iface = "eth7"}, "can't read the state of eth7"},
    {{.iface = "lo"}, "no Ethernet interface"},
    {.says = NULL},
};

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_packet,
        .what = "packet between namespaces",
        .ports = PORTS,
        .make = make,
        .unmake = netlab_unmake,
        .options = "catch_up=64",
        .overrun = "burst=128",
        .back_most = 1400,
        .sizes = {64, 65, 128, 777, 1518},
        .refusals = refusals,
        .closed = closed,
        .more = count_each,
    };

    jumbo = battery_word(argc, argv, "jumbo");
    if (jumbo)
        subject.sizes[4] = 9018;
    return battery_main(&subject, argc, argv);
}
