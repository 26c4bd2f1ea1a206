/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a udp port makes of sequence numbers. The sender is this test: it makes each datagram, with
 * the number and the stamp that a case wants, and polls the receiving lane at a time of its own.
 */
#include "clock.h"
#include "fill.h"
#include "ip_port.h"
#include "signature.h"
#include "transport.h"
#include "udp/udp_options.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct transport transport_udp;

#define SIZE 512u
#define FILL (SIZE - 46u - SIGNATURE_BYTES) /* less headers of Ethernet, IPv4 and UDP, and FCS */
#define LINE_BPS UINT64_C(100000000)
#define LOAD_FPS 10000.0
#define START_NS NS_PER_S
#define STEP_NS (100 * NS_PER_US) /* a frame at that load */
#define AHEAD 100000u

static struct bed {
    struct port_conf conf;
    struct port_conf sender_conf;
    struct ip_port sender; /* what its address says of it */
    int socket;
    struct transport_port *port;
    struct blob blob;
    struct phase phase;
    struct udp_options options;
    struct lane *lane;
    struct lane_flow flow; /* rank 0 sends to rank 1 */
    struct flow_side side;
    struct port_count count;
    int64_t now_ns;
    uint32_t next; /* the honest sender's number */
} bed;

static void begin_lane(void)
{
    struct lane_request request = {
        .port = bed.port,
        .phase = &bed.phase,
        .rank = 1,
        .ranks = 2,
        .receives = &bed.flow,
        .receive_count = 1,
        .count = &bed.count,
    };
    struct err err = {""};

    bed.flow = (struct lane_flow){.src = 0, .dst = 1, .side = &bed.side};
    ip_port_address((struct transport_port *)&bed.sender, &bed.flow.partner);
    if (transport_udp.prepare(&bed.lane, &request, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport_udp.settle(bed.lane, START_NS / 2, &err), 0);
    transport_udp.start(bed.lane, START_NS / 2);
}

static int begin_at(uint64_t line_bps)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    struct sockaddr_in *from = (struct sockaddr_in *)&bed.sender.address;
    socklen_t size = sizeof *from;
    struct err err = {""};

    memset(&bed, 0, sizeof bed);
    bed.conf = (struct port_conf){.name = "n:lo", .tcp_address = "127.0.0.2"};
    bed.sender_conf = (struct port_conf){.name = "m:lo", .line_rate_bps = line_bps};
    bed.sender = (struct ip_port){.conf = &bed.sender_conf, .netlink = -1};
    bed.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *from =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 2)};
    assert_int_equal(bind(bed.socket, (struct sockaddr *)from, size), 0);
    assert_int_equal(getsockname(bed.socket, (struct sockaddr *)from, &size), 0);
    if (transport_udp.open(&bed.port, &bed.conf, &run, &err) != 0)
        fail_msg("%s", err.text);
    transport_udp.address(bed.port, &bed.blob);
    bed.options = (struct udp_options){.offload = UDP_OFFLOAD_AUTO, .burst = 32, .catch_up = 8};
    bed.phase = (struct phase){
        .tag = 7,
        .traffic = TRAFFIC_STREAM,
        .sizes = {SIZE},
        .size_count = 1,
        .load = {.rate_fps = LOAD_FPS},
        .options = &bed.options,
        .start_ns = START_NS,
        .stop_ns = 100 * NS_PER_S,
    };
    begin_lane();
    bed.now_ns = START_NS;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_at(LINE_BPS);
}

/* Nothing is known of the line: a paced sender keeps to its load. */
static int begin_without_line(void **state)
{
    (void)state;
    return begin_at(0);
}

static int end(void **state)
{
    (void)state;
    transport_udp.finish(bed.lane);
    transport_udp.close(bed.port);
    close(bed.socket);
    return 0;
}

/* A sound frame with this number, which left at `sent_ns`; the lane receives it now. */
static void deliver(uint32_t sequence, int64_t sent_ns)
{
    struct {
        struct signature signature;
        uint8_t fill[FILL];
    } frame = {{.tag = htobe16(7), .dst = htobe16(1)}, {0}};
    struct signature_time time = signature_time(sent_ns - START_NS);
    struct sockaddr_storage to;

    signature_stamp(&frame.signature, sequence, &time, signature_base(&frame.signature) + time.sum);
    memcpy(frame.fill, fill_table()->bytes, FILL);
    assert_true(ip_port_partner(&bed.sender, &bed.blob, &to));
    assert_int_equal(sendto(bed.socket, &frame, sizeof frame, 0, (struct sockaddr *)&to,
                            sizeof(struct sockaddr_in)),
                     sizeof frame);
    transport_udp.poll(bed.lane, bed.now_ns);
}

/* Time passes, and what was sent in it is lost. */
static void lose(int64_t for_ns)
{
    bed.now_ns += for_ns;
    bed.next += (uint32_t)(for_ns / STEP_NS);
}

/* So many frames at the load; behind each tenth a copy that is `ahead` and later by `later_ns`, if
 * any. */
static void send_at_load(unsigned count, uint32_t ahead, int64_t later_ns)
{
    for (unsigned i = 0; i < count; i++, bed.now_ns += STEP_NS) {
        deliver(bed.next, bed.now_ns);
        if (ahead > 0 && i % 10 == 0)
            deliver(bed.next + ahead, bed.now_ns + later_ns);
        bed.next++;
    }
}

static void expect(uint64_t frames, uint64_t forged)
{
    assert_int_equal(bed.side.late, 0);
    assert_int_equal(bed.side.forged, forged);
    assert_int_equal(bed.side.duplicated, 0);
    assert_int_equal(bed.side.reordered, 0);
    assert_int_equal(bed.side.live.frames, frames);
}

static void a_jump_ahead_is_refused(void **state)
{
    (void)state;
    send_at_load(1000, AHEAD, 0);
    expect(1000, 100);
}

/* A stamp of the future says nothing of how much a sender may have sent. */
static void so_is_one_with_a_stamp_of_the_future(void **state)
{
    (void)state;
    send_at_load(1000, AHEAD, 20 * NS_PER_S);
    expect(1000, 100);
}

static void the_first_frame_can_be_forged_too(void **state)
{
    (void)state;
    deliver(AHEAD, bed.now_ns);
    expect(0, 1);
    send_at_load(10, 0, 0);
    expect(10, 1);
}

/* What is lost for a while leaves a gap that the time since then explains. */
static void a_long_loss_is_a_loss(void **state)
{
    (void)state;
    send_at_load(100, 0, 0);
    lose(5 * NS_PER_S);
    send_at_load(100, 0, 0);
    expect(200, 0);
}

/* A receiver that was away finds old frames and, behind what its socket had no room for, new ones,
 * all at one time. */
static void a_receiver_that_was_away_believes_the_stamps(void **state)
{
    (void)state;
    bed.now_ns += 4 * NS_PER_S;
    for (uint32_t i = 0; i < 500; i++)
        deliver(i, START_NS + i * STEP_NS);
    for (uint32_t i = 30000; i < 30300; i++)
        deliver(i, START_NS + i * STEP_NS);
    expect(800, 0);
}

/* One frame of each second comes, with a stamp that is off; then the time between arrivals has to
 * do. */
static void with_clocks_that_differ(int64_t by_ns)
{
    for (unsigned i = 0; i < 5; i++) {
        lose(NS_PER_S);
        deliver(bed.next, bed.now_ns + by_ns);
    }
    expect(5, 0);
}

static void clocks_that_differ_do_no_harm(void **state)
{
    (void)state;
    with_clocks_that_differ(20 * NS_PER_S);
}

static void nor_those_that_are_behind(void **state)
{
    (void)state;
    with_clocks_that_differ(-20 * NS_PER_S);
}

#define CASE(test, setup) cmocka_unit_test_setup_teardown(test, setup, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_jump_ahead_is_refused, begin),
        CASE(so_is_one_with_a_stamp_of_the_future, begin),
        CASE(the_first_frame_can_be_forged_too, begin),
        CASE(a_long_loss_is_a_loss, begin),
        CASE(a_receiver_that_was_away_believes_the_stamps, begin),
        CASE(clocks_that_differ_do_no_harm, begin),
        CASE(nor_those_that_are_behind, begin),
        CASE(a_jump_ahead_is_refused, begin_without_line),
        CASE(a_long_loss_is_a_loss, begin_without_line),
        CASE(a_receiver_that_was_away_believes_the_stamps, begin_without_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
