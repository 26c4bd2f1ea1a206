/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a udp port makes of sequence numbers. The sender is this test: it makes each datagram, with
 * the number and the stamp that a case wants, and polls the receiving lane at a time of its own. A
 * stranger on the network sends datagrams that look like the sender's.
 */
#include "../transport/option_set.h"
#include "clock.h"
#include "fill.h"
#include "forged_cases.h"
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

#define FILL                                                                                       \
    (FORGED_SIZE - 46u - SIGNATURE_BYTES) /* less headers of Ethernet, IPv4 and UDP, and FCS */
#define WAITING_MAX 1000u

/* A sound frame. */
struct frame {
    uint32_t sequence;
    int64_t sent_ns;
};

static struct bed {
    struct port_conf conf;
    struct port_conf sender_conf;
    struct ip_port sender; /* what its address says of it */
    int socket;
    int stranger;
    struct transport_port *port;
    struct blob blob;
    struct phase phase;
    uint64_t options[OPTION_BYTES_MAX / 8];
    struct lane *lane;
    struct lane_flow flow; /* rank 0 sends to rank 1 ... */
    struct flow_side side;
    struct lane_flow back; /* ... which may send back */
    struct flow_side back_side;
    struct port_count count;
    int64_t now_ns;
    uint32_t next; /* the honest sender's number */
    struct frame waiting[WAITING_MAX];
    unsigned waiting_count;
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
        .sends = &bed.back,
        .send_count = bed.phase.latency.probe_fps > 0,
        .count = &bed.count,
    };
    struct err err = {""};

    bed.flow = (struct lane_flow){.src = 0, .dst = 1, .side = &bed.side};
    bed.back = (struct lane_flow){.src = 1, .dst = 0, .side = &bed.back_side};
    ip_port_address(&bed.sender, &bed.flow.partner);
    bed.back.partner = bed.flow.partner;
    if (transport_udp.prepare(&bed.lane, &request, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport_udp.connect(bed.lane, FORGED_START_NS / 2, &err), 0);
    transport_udp.poll(bed.lane, FORGED_START_NS / 2);
}

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

/* Offload: 1 on, 2 automatic. */
static void set_options(void *options, uint64_t offload, uint64_t catch_up)
{
    option_set(transport_udp.options, options, "offload", offload);
    option_set(transport_udp.options, options, "burst", 32);
    option_set(transport_udp.options, options, "catch_up", catch_up);
}

static int begin_at(uint64_t line_bps, double probe_fps)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    struct sockaddr_in other;
    struct err err = {""};

    memset(&bed, 0, sizeof bed);
    bed.conf = (struct port_conf){.name = "n:lo", .tcp_address = "127.0.0.2"};
    bed.sender_conf = (struct port_conf){.name = "m:lo", .line_rate_bps = line_bps};
    bed.sender = (struct ip_port){.conf = &bed.sender_conf, .netlink = -1};
    bed.socket = bind_socket((struct sockaddr_in *)&bed.sender.address, 2);
    bed.stranger = bind_socket(&other, 3);
    if (transport_udp.open(&bed.port, &bed.conf, &run, &err) != 0)
        fail_msg("%s", err.text);
    bed.blob = transport_address(&transport_udp, bed.port);
    set_options(bed.options, 2, 8);
    bed.phase = forged_phase(bed.options);
    bed.phase.latency.probe_fps = probe_fps;
    begin_lane();
    bed.now_ns = FORGED_START_NS;
    return 0;
}

static int begin(void **state)
{
    return begin_at(FORGED_LINE_BPS, 0);
}

static int begin_without_line(void **state)
{
    return begin_at(0, 0);
}

static int begin_with_probes(void **state)
{
    return begin_at(FORGED_LINE_BPS, 100);
}

static int end(void **state)
{
    transport_udp.destroy(bed.lane);
    transport_udp.close(bed.port);
    close(bed.stranger);
    close(bed.socket);
    return 0;
}

/* The lane receives a frame now, from one of the sockets. */
static void deliver_from(int from, uint16_t tag, const struct frame *sent)
{
    struct {
        struct signature signature;
        uint8_t fill[FILL];
    } frame = {{.tag = htobe16(tag), .dst = htobe16(1)}, {0}};
    struct signature_time time = signature_time(sent->sent_ns - FORGED_START_NS);
    struct sockaddr_storage to;

    signature_stamp(&frame.signature, sent->sequence, &time,
                    signature_base(&frame.signature) + time.sum);
    memcpy(frame.fill, fill_table()->bytes, FILL);
    assert_true(ip_port_partner(&bed.sender, &bed.blob, &to));
    assert_int_equal(
        sendto(from, &frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof(struct sockaddr_in)),
        sizeof frame);
    transport_udp.poll(bed.lane, bed.now_ns);
    transport_udp.account(bed.lane, ACCOUNT_ALL);
}

static void deliver(const struct frame *sent)
{
    deliver_from(bed.socket, 7, sent);
}

/* One by one: the socket has no room for all. */
static void receive(void)
{
    for (unsigned i = 0; i < bed.waiting_count; i++)
        deliver(&bed.waiting[i]);
    bed.waiting_count = 0;
}

static void append(const struct forgery *forgery)
{
    assert_true(bed.waiting_count < WAITING_MAX);
    bed.waiting[bed.waiting_count++] =
        (struct frame){bed.next + forgery->ahead, bed.now_ns + forgery->later_ns};
}

static void send_forged(const struct forgery *forgery)
{
    append(forgery);
    bed.next++;
}

static void send_frames(unsigned frames, const struct forgery *forgery, struct forged_counts *sent)
{
    const struct forgery none = {0};

    for (unsigned i = 0; i < frames; i++) {
        append(&none);
        if (forgery != NULL && bed.next % 10 == 0) {
            append(forgery);
            sent->forged++;
        }
        bed.next++;
        bed.now_ns += FORGED_STEP_NS;
    }
    sent->honest += frames;
}

static void lose(int64_t for_ns)
{
    bed.now_ns += for_ns;
    bed.next += (uint32_t)(for_ns / FORGED_STEP_NS);
}

static void a_stranger_is_not_the_sender(void **state)
{
    const struct frame frame = {0, bed.now_ns};

    deliver_from(bed.stranger, 7, &frame);
    assert_int_equal(bed.side.live.frames + bed.side.duplicated + bed.side.corrupted, 0);
    assert_int_equal(bed.count.foreign, 1);
    deliver(&frame);
    assert_int_equal(bed.side.live.frames, 1);
}

/* Neither a stranger's answers nor those of a partner's socket to probes that were never sent are
 * counted: else more came back than were sent, or round trips of any length. */
static void forged_answers_to_probes_are_not_counted(void **state)
{
    const struct frame answers[] = {{0, FORGED_START_NS}, {1000, FORGED_START_NS}};
    static struct flow_reading reading;

    for (unsigned i = 0; i < 2; i++) {
        deliver_from(bed.stranger, probe_answer_tag(7), &answers[i]);
        deliver_from(bed.socket, probe_answer_tag(7), &answers[i]);
    }
    assert_int_equal(bed.count.foreign, 4);
    assert_int_equal(bed.count.probes_received, 0);
    transport_udp.read_flow(bed.lane, &bed.back, &reading);
    assert_true(reading.measured[LATENCY_ROUND_TRIP]);
    assert_int_equal(reading.latency[LATENCY_ROUND_TRIP].histogram.count, 0);
}

/* Segments are of one destination: a burst has a train of each flow, and over the bursts each flow
 * gets as much. */
static void flows_have_equal_loads_by_segments(void **state)
{
    enum { FLOWS = 3, POLLS = 64 };
    struct flow_side sides[FLOWS];
    struct lane_flow flows[FLOWS];
    struct port_count count = {0};
    struct phase phase = bed.phase;
    uint64_t options[OPTION_BYTES_MAX / 8] = {0};
    struct lane_request request = {.port = bed.port,
                                   .phase = &phase,
                                   .rank = 1,
                                   .ranks = 8,
                                   .sends = flows,
                                   .send_count = FLOWS,
                                   .count = &count};
    struct err err = {""};
    struct lane *lane;
    int64_t now_ns = FORGED_START_NS;

    (void)state;
    memset(sides, 0, sizeof sides);
    set_options(options, 1, 11);
    phase.options = options;
    phase.load.rate_fps = 32e6;
    for (uint32_t i = 0; i < FLOWS; i++) {
        flows[i] = (struct lane_flow){.src = 1, .dst = 2 + i, .side = &sides[i]};
        ip_port_address(&bed.sender, &flows[i].partner);
    }
    if (transport_udp.prepare(&lane, &request, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport_udp.connect(lane, FORGED_START_NS / 2, &err), 0);
    transport_udp.poll(lane, FORGED_START_NS / 2);
    for (unsigned i = 0; i < POLLS; i++) /* 11 are due: trains of 3, and 2 more */
        transport_udp.poll(lane, now_ns += 1000);
    transport_udp.account(lane, ACCOUNT_ALL);
    assert_string_equal(lane->error.text, "");
    assert_true(sides[0].live.frames >= 100);
    for (uint32_t i = 1; i < FLOWS; i++)
        assert_in_range(sides[i].live.frames, sides[0].live.frames - 4, sides[0].live.frames + 4);
    transport_udp.destroy(lane);
}

int main(void)
{
    static const struct forged_bed forged_bed = {
        .batch = 1,
        .received = &bed.side,
        .send = send_frames,
        .send_forged = send_forged,
        .lose = lose,
        .receive = receive,
        .begin = begin,
        .begin_without_line = begin_without_line,
        .end = end,
    };

    const struct CMUnitTest strangers[] = {
        cmocka_unit_test_setup_teardown(a_stranger_is_not_the_sender, begin, end),
        cmocka_unit_test_setup_teardown(forged_answers_to_probes_are_not_counted, begin_with_probes,
                                        end),
        cmocka_unit_test_setup_teardown(flows_have_equal_loads_by_segments, begin, end),
    };

    return forged_cases_run(&forged_bed) + cmocka_run_group_tests(strangers, NULL, NULL);
}
