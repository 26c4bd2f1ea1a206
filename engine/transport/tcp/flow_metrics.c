/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the kernel knows of a connection. The only file with linux/tcp.h's struct tcp_info, which
 * is longer than the C library's.
 */
#include "lane.h"

#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define IPPROTO_TCP_LEVEL 6
#define STATE_SYN_SENT 2 /* TCP_SYN_SENT of the C library's netinet/tcp.h */
#define FRAME_BYTES 38   /* preamble and delimiter 8, Ethernet 14, FCS 4, gap 12 */
#define TCP_HEADER 20
#define SEGMENT_BYTES 1448u /* of IPv4 at MTU 1500, with timestamps */
#define TIMESTAMPS 12       /* the option with its padding, RFC 7323 */

static bool read_info(int fd, struct tcp_info *info)
{
    socklen_t size = sizeof *info;

    memset(info, 0, sizeof *info);
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP_LEVEL, TCP_INFO, info, &size) == 0;
}

bool tcp_connecting(int fd)
{
    struct tcp_info info;

    return read_info(fd, &info) && info.tcpi_state == STATE_SYN_SENT;
}

/* Layer-1 bytes of a full segment beside its payload. */
static double segment_overhead(int fd, const struct tcp_info *info)
{
    int domain = AF_INET;
    socklen_t size = sizeof domain;

    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return FRAME_BYTES + (domain == AF_INET6 ? 40 : 20) + TCP_HEADER +
           (info->tcpi_options & TCPI_OPT_TIMESTAMPS ? TIMESTAMPS : 0);
}

double tcp_payload_share(int fd)
{
    struct tcp_info info;

    if (!read_info(fd, &info) || info.tcpi_snd_mss == 0)
        return SEGMENT_BYTES / 1538.0;
    return info.tcpi_snd_mss / (info.tcpi_snd_mss + segment_overhead(fd, &info));
}

uint32_t tcp_segment_bytes(int fd)
{
    struct tcp_info info;

    return read_info(fd, &info) && info.tcpi_snd_mss > 0 ? info.tcpi_snd_mss : SEGMENT_BYTES;
}

static int buffer_bytes(int fd, int option)
{
    int bytes = 0;
    socklen_t size = sizeof bytes;

    getsockopt(fd, SOL_SOCKET, option, &bytes, &size);
    return bytes;
}

/* The streams of a flow taken together. */
struct sum {
    unsigned streams;
    double retransmitted, sent, received, out_of_order, delivery_rate, rtt;
    double least_rtt;
    double mss, overhead, send_buffer, receive_buffer;
};

static void add(struct sum *sum, int fd, bool sends)
{
    struct tcp_info info;

    if (!read_info(fd, &info))
        return;
    sum->retransmitted += info.tcpi_total_retrans;
    sum->sent += info.tcpi_segs_out;
    sum->received += info.tcpi_segs_in;
    sum->out_of_order += info.tcpi_rcv_ooopack;
    sum->delivery_rate += 8.0 * (double)info.tcpi_delivery_rate;
    sum->rtt += info.tcpi_rtt;
    if (sum->streams == 0 || info.tcpi_min_rtt < sum->least_rtt)
        sum->least_rtt = info.tcpi_min_rtt;
    sum->mss = sends ? info.tcpi_snd_mss : info.tcpi_rcv_mss;
    sum->overhead = segment_overhead(fd, &info);
    sum->send_buffer = buffer_bytes(fd, SO_SNDBUF);
    sum->receive_buffer = buffer_bytes(fd, SO_RCVBUF);
    sum->streams++;
}

unsigned tcp_lane_flow_metrics(struct lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room)
{
    const struct tcp_lane *l = (const struct tcp_lane *)lane;
    bool sends = flow->src == lane->request.rank;
    size_t first = (size_t)(flow - (sends ? lane->request.sends : lane->request.receives));
    struct sum sum = {0};
    unsigned count;

    for (size_t i = first * l->base.stride; i < first * l->base.stride + l->base.streams; i++)
        add(&sum, sends ? l->outs[i].fd : l->ins[i].fd, sends);
    const struct flow_metric sent[] = {
        {"retransmitted_segments", sum.retransmitted},
        {"rtt_us", sum.rtt / sum.streams},
        {"min_rtt_us", sum.least_rtt},
        {"segments_sent", sum.sent},
        {"segments_received", sum.received},
        {"delivery_rate_bps", sum.delivery_rate},
        {"mss_bytes", sum.mss},
        {"segment_overhead_bytes", sum.overhead},
        {"send_buffer_bytes", sum.send_buffer},
        {"streams", sum.streams},
    };
    const struct flow_metric received[] = {
        {"segments_sent", sum.sent},
        {"segments_received", sum.received},
        {"out_of_order_segments", sum.out_of_order},
        {"mss_bytes", sum.mss},
        {"segment_overhead_bytes", sum.overhead},
        {"receive_buffer_bytes", sum.receive_buffer},
        {"streams", sum.streams},
    };

    if (sum.streams == 0)
        return 0;
    count = sends ? sizeof sent / sizeof *sent : sizeof received / sizeof *received;
    count = count < room ? count : room;
    memcpy(out, sends ? sent : received, count * sizeof *out);
    return count;
}
