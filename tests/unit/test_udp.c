/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a udp port makes of sequence numbers. The sender is this test: it makes each datagram, with
 * the number and the stamp that a case wants, and polls the receiving lane at a time of its own.
 */
#include "clock.h"
#include "fill.h"
#include "forged_cases.h"
#include "ip_port.h"
#include "signature.h"
#include "transport.h"
#include "udp/udp_options.h"

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
        .count = &bed.count,
    };
    struct err err = {""};

    bed.flow = (struct lane_flow){.src = 0, .dst = 1, .side = &bed.side};
    ip_port_address(&bed.sender, &bed.flow.partner);
    if (transport_udp.prepare(&bed.lane, &request, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(transport_udp.connect(bed.lane, FORGED_START_NS / 2, &err), 0);
    transport_udp.start(bed.lane, FORGED_START_NS / 2);
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
    bed.blob = transport_address(&transport_udp, bed.port);
    bed.options = (struct udp_options){.offload = UDP_OFFLOAD_AUTO, .burst = 32, .catch_up = 8};
    bed.phase = forged_phase(&bed.options);
    begin_lane();
    bed.now_ns = FORGED_START_NS;
    return 0;
}

static int begin(void **state)
{
    return begin_at(FORGED_LINE_BPS);
}

static int begin_without_line(void **state)
{
    return begin_at(0);
}

static int end(void **state)
{
    transport_udp.destroy(bed.lane);
    transport_udp.close(bed.port);
    close(bed.socket);
    return 0;
}

/* The lane receives this frame now. */
static void deliver(const struct frame *sent)
{
    struct {
        struct signature signature;
        uint8_t fill[FILL];
    } frame = {{.tag = htobe16(7), .dst = htobe16(1)}, {0}};
    struct signature_time time = signature_time(sent->sent_ns - FORGED_START_NS);
    struct sockaddr_storage to;

    signature_stamp(&frame.signature, sent->sequence, &time,
                    signature_base(&frame.signature) + time.sum);
    memcpy(frame.fill, fill_table()->bytes, FILL);
    assert_true(ip_port_partner(&bed.sender, &bed.blob, &to));
    assert_int_equal(sendto(bed.socket, &frame, sizeof frame, 0, (struct sockaddr *)&to,
                            sizeof(struct sockaddr_in)),
                     sizeof frame);
    transport_udp.poll(bed.lane, bed.now_ns);
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

    return forged_cases_run(&forged_bed);
}
