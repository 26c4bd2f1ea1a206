/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A udp port beside a stranger, who sends datagrams that look like the sender's; and loads by
 * segments. The sender is this test, which makes each datagram. Forged sequence numbers are
 * frame_lane's (tests/transport/dpdk_lanes.c).
 */
#include "../transport/option_set.h"
#include "clock.h"
#include "fill.h"
#include "frame_prober.h"
#include "ip_port.h"
#include "signature.h"
#include "transport.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_udp;

#define SIZE 512
#define FILL (SIZE - 46u - SIGNATURE_BYTES) /* less headers of Ethernet, IPv4 and UDP, and FCS */
#define START_NS NS_PER_S
#define FLOWS 3

static struct bed {
    struct port_conf conf, sender_conf;
    struct ip_port sender; /* what its address says of it */
    int sockets[2];        /* the sender's and the stranger's */
    struct transport_port *port;
    struct phase phase;
    uint64_t options[OPTION_BYTES_MAX / 8];
    struct lane *lane;
    struct lane_flow in, out[FLOWS]; /* from rank 0 to rank 1, and from 1 to others */
    struct flow_side in_side, out_sides[FLOWS];
    struct port_count count;
} bed;

/* Of its own address, and any port. */
static int bind_socket(struct sockaddr_in *address, uint32_t host)
{
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &size), 0);
    return fd;
}

/* A lane that receives one flow and sends so many, with probes or at this load. Offload: 1 on, 2
 * automatic. */
static void begin(uint32_t sends, double probe_fps, double rate_fps, uint64_t offload)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    struct lane_request request = {.phase = &bed.phase,
                                   .rank = 1,
                                   .ranks = 2 + FLOWS,
                                   .receives = &bed.in,
                                   .receive_count = 1,
                                   .sends = bed.out,
                                   .send_count = sends,
                                   .count = &bed.count};
    struct sockaddr_in other;
    struct err err = {""};

    memset(&bed, 0, sizeof bed);
    bed.conf = (struct port_conf){.name = "n:lo", .tcp_address = "127.0.0.2"};
    bed.sender_conf = (struct port_conf){.name = "m:lo", .line_rate_bps = UINT64_C(100000000)};
    bed.sender = (struct ip_port){.conf = &bed.sender_conf, .netlink = -1};
    bed.sockets[0] = bind_socket((struct sockaddr_in *)&bed.sender.address, 2);
    bed.sockets[1] = bind_socket(&other, 3);
    option_set(transport_udp.options, bed.options, "offload", offload);
    option_set(transport_udp.options, bed.options, "burst", 32);
    option_set(transport_udp.options, bed.options, "catch_up", 11);
    bed.phase = (struct phase){.tag = 7,
                               .traffic = TRAFFIC_STREAM,
                               .sizes = {SIZE},
                               .size_count = 1,
                               .load = {.rate_fps = rate_fps},
                               .options = bed.options,
                               .latency = {.probe_fps = probe_fps},
                               .start_ns = START_NS,
                               .stop_ns = 100 * NS_PER_S};
    bed.in = (struct lane_flow){.src = 0, .dst = 1, .side = &bed.in_side};
    ip_port_address(&bed.sender, &bed.in.partner);
    for (uint32_t i = 0; i < FLOWS; i++) /* with probes back to rank 0, else to others */
        bed.out[i] = (struct lane_flow){.src = 1,
                                        .dst = probe_fps > 0 ? 0 : 2 + i,
                                        .partner = bed.in.partner,
                                        .side = &bed.out_sides[i]};
    if (transport_udp.open(&bed.port, &bed.conf, &run, &err) != 0)
        fail_msg("%s", err.text);
    request.port = bed.port;
    if (transport_udp.prepare(&bed.lane, &request, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport_udp.connect(bed.lane, START_NS / 2, &err), 0);
    transport_udp.poll(bed.lane, START_NS / 2);
}

static int end(void **state)
{
    transport_udp.destroy(bed.lane);
    transport_udp.close(bed.port);
    close(bed.sockets[0]);
    close(bed.sockets[1]);
    return 0;
}

/* The lane receives a frame now, from the sender's or the stranger's socket. */
static void deliver(int from, uint16_t tag, uint32_t sequence)
{
    struct {
        struct signature signature;
        uint8_t fill[FILL];
    } frame = {{.tag = htobe16(tag), .dst = htobe16(1)}, {0}};
    struct signature_time time = signature_time(0);
    const struct blob own = transport_address(&transport_udp, bed.port);
    struct sockaddr_storage to;

    signature_stamp(&frame.signature, sequence, &time, signature_base(&frame.signature) + time.sum);
    memcpy(frame.fill, fill_table()->bytes, FILL);
    assert_true(ip_port_partner(&bed.sender, &own, &to));
    assert_int_equal(sendto(bed.sockets[from], &frame, sizeof frame, 0, (struct sockaddr *)&to,
                            sizeof(struct sockaddr_in)),
                     sizeof frame);
    transport_udp.poll(bed.lane, START_NS);
    transport_udp.account(bed.lane, ACCOUNT_ALL);
}

static void a_stranger_is_not_the_sender(void **state)
{
    begin(0, 0, 10000, 2);
    deliver(1, 7, 0);
    assert_int_equal(bed.in_side.live.frames + bed.in_side.duplicated + bed.in_side.corrupted, 0);
    assert_int_equal(bed.count.foreign, 1);
    deliver(0, 7, 0);
    assert_int_equal(bed.in_side.live.frames, 1);
}

/* Neither a stranger's answers nor those of a partner's socket to probes that were never sent are
 * counted: else more came back than were sent, or round trips of any length. */
static void forged_answers_to_probes_are_not_counted(void **state)
{
    static struct flow_reading reading;

    begin(1, 100, 10000, 2);
    for (int from = 0; from < 2; from++) {
        deliver(from, probe_answer_tag(7), 0);
        deliver(from, probe_answer_tag(7), 1000);
    }
    assert_int_equal(bed.count.foreign, 4);
    assert_int_equal(bed.count.probes_received, 0);
    transport_udp.read_flow(bed.lane, &bed.out[0], &reading);
    assert_true(reading.measured[LATENCY_ROUND_TRIP]);
    assert_int_equal(reading.latency[LATENCY_ROUND_TRIP].histogram.count, 0);
}

/* Segments are of one destination: a burst has a train of each flow, and over the bursts each flow
 * gets as much. */
static void flows_have_equal_loads_by_segments(void **state)
{
    begin(FLOWS, 0, 32e6, 1);
    for (int i = 1; i <= 64; i++) /* 11 are due: trains of 3, and 2 more */
        transport_udp.poll(bed.lane, START_NS + i * 1000);
    transport_udp.account(bed.lane, ACCOUNT_ALL);
    assert_string_equal(bed.lane->error.text, "");
    assert_true(bed.out_sides[0].live.frames >= 100);
    for (uint32_t i = 1; i < FLOWS; i++)
        assert_in_range(bed.out_sides[i].live.frames, bed.out_sides[0].live.frames - 4,
                        bed.out_sides[0].live.frames + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_stranger_is_not_the_sender, end),
        cmocka_unit_test_teardown(forged_answers_to_probes_are_not_counted, end),
        cmocka_unit_test_teardown(flows_have_equal_loads_by_segments, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
