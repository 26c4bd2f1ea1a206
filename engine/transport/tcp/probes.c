/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Round trips beside a load: each flow has one more connection, on which small messages go to the
 * destination and come back at random times (probe_scheduler.h), while its streams send. A probe
 * that is late does not hold up the next one (else a slow moment would be probed less, and look
 * shorter than it was); so several may be under way. Probes count in no flow's bytes.
 */
#include "clock.h"
#include "echo_connection.h"
#include "prng.h"
#include "probe_scheduler.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_LINE_BYTES 154.0 /* a probe at layer 1: IPv4, with timestamps */
#define UNDER_WAY 1024u        /* probes of a flow that may be */

static const uint32_t connectivity_check_sizes[] = {TCP_PROBE_MESSAGE};

/* A flow's probes, at its source. */
struct prober {
    struct tcp_echo *echo;
    const struct lane_flow *flow;
    struct probe_scheduler schedule;
    uint64_t returned;
    uint64_t measured;
    int64_t begun_ns[UNDER_WAY]; /* by sequence */
    struct histogram times;
};

struct tcp_probes {
    int epoll;
    double gap_ns;
    struct tcp_echo *echoes; /* of the flows sent, then of those received */
    struct prober *probers;
};

double tcp_probes_rate(const struct lane_request *request)
{
    return flow_load_probe_rate(request, PROBE_LINE_BYTES);
}

void tcp_probes_script(struct tcp_script *script)
{
    script->sizes = connectivity_check_sizes;
    script->size_count = 1;
    script->total = FLOW_ENDLESS;
}

int tcp_probes_make(struct tcp_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct tcp_probes *probes = calloc(1, sizeof *probes);

    if (probes == NULL)
        return -ENOMEM;
    lane->probes = probes;
    probes->gap_ns = NS_PER_S / tcp_probes_rate(request);
    probes->epoll = epoll_create1(EPOLL_CLOEXEC);
    probes->echoes =
        calloc(request->send_count + request->receive_count + 1, sizeof *probes->echoes);
    probes->probers = calloc(request->send_count + 1, sizeof *probes->probers);
    if (probes->epoll < 0 || probes->echoes == NULL || probes->probers == NULL)
        return probes->epoll < 0 ? -errno : -ENOMEM;
    for (uint32_t i = 0; i < request->send_count; i++) {
        struct tcp_out *out = &lane->outs[i * lane->stride + lane->streams];
        struct prober *prober = &probes->probers[i];

        prober->echo = &probes->echoes[i];
        prober->flow = out->flow->flow;
        tcp_echo_out(prober->echo, out);
        prober->echo->sent = &prober->echo->back;
    }
    for (uint32_t i = 0; i < request->receive_count; i++) {
        struct tcp_in *in = &lane->ins[i * lane->stride + lane->streams];
        struct tcp_echo *echo = &probes->echoes[request->send_count + i];

        tcp_echo_in(echo, in);
        in->sink.side = &echo->back;
    }
    return 0;
}

void tcp_probes_free(struct tcp_lane *lane)
{
    if (lane->probes == NULL)
        return;
    if (lane->probes->epoll >= 0)
        close(lane->probes->epoll);
    free(lane->probes->echoes);
    free(lane->probes->probers);
    free(lane->probes);
}

int tcp_probes_fd(const struct tcp_lane *lane)
{
    return lane->probes->epoll;
}

/* `index` is the connection's among those out, or behind them among those in. */
int tcp_probes_watch(struct tcp_lane *lane, int fd, unsigned index)
{
    unsigned ins = index < lane->out_count ? 0 : lane->lane.request.send_count;
    unsigned place = index < lane->out_count ? index : index - lane->out_count;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.u32 = ins + place / lane->stride};
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return epoll_ctl(lane->probes->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Takes what came back. */
static void take_returns(struct tcp_lane *lane, struct prober *prober)
{
    const struct phase *phase = lane->lane.request.phase;
    int64_t at_ns = tcp_echo_pull(lane, prober->echo, UINT64_MAX);

    for (; prober->returned < prober->echo->sink->at.sequence; prober->returned++) {
        int64_t begun_ns = prober->begun_ns[prober->returned % UNDER_WAY];

        if (begun_ns >= phase->open_ns && begun_ns < phase->close_ns)
            histogram_add(&prober->times, (uint64_t)(at_ns - begun_ns));
    }
}

static void send_one(struct tcp_lane *lane, struct prober *prober)
{
    const struct phase *phase = lane->lane.request.phase;
    int64_t begun_ns = clock_now();

    prober->begun_ns[prober->echo->source->at.sequence % UNDER_WAY] = begun_ns;
    prober->measured += begun_ns >= phase->open_ns && begun_ns < phase->close_ns;
    tcp_echo_push(lane, prober->echo);
}

/* Sends what is due, and the end mark once all is back. */
static void work_prober(struct tcp_lane *lane, struct prober *prober, int64_t now_ns)
{
    const struct tcp_cursor *at = &prober->echo->source->at;

    if (prober->echo->out->ended)
        return;
    take_returns(lane, prober);
    if (at->position > 0)
        tcp_echo_push(lane, prober->echo);
    if (now_ns >= lane->lane.stop_ns) {
        if (at->position == 0 && prober->returned == at->sequence)
            tcp_push_end(lane, prober->echo->out);
        return;
    }
    if (now_ns < prober->schedule.next_ns)
        return;
    probe_scheduler_step(&prober->schedule, now_ns);
    if (at->position == 0 && prober->echo->writable && at->sequence - prober->returned < UNDER_WAY)
        send_one(lane, prober);
}

void tcp_probes_start(struct tcp_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;

    for (uint32_t i = 0; lane->probes != NULL && i < lane->lane.request.send_count; i++) {
        struct prober *prober = &lane->probes->probers[i];

        probe_scheduler_begin(&prober->schedule, lane->probes->gap_ns, phase->start_ns,
                              prng_seed(phase->seed, prober->flow->src, prober->flow->dst));
    }
}

int64_t tcp_probes_poll(struct tcp_lane *lane, int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;
    struct tcp_probes *probes = lane->probes;
    int64_t wake_ns = CLOCK_NEVER;

    tcp_echo_events(probes->echoes, probes->epoll);
    for (uint32_t i = 0; i < request->receive_count; i++)
        (void)tcp_echo_reply(lane, &probes->echoes[request->send_count + i]);
    for (uint32_t i = 0; i < request->send_count; i++) {
        struct prober *prober = &probes->probers[i];

        work_prober(lane, prober, now_ns);
        if (!prober->echo->out->ended && prober->schedule.next_ns < wake_ns)
            wake_ns = prober->schedule.next_ns;
    }
    return wake_ns > now_ns ? wake_ns : now_ns;
}

bool tcp_probes_latency(const struct tcp_lane *lane, const struct lane_flow *flow,
                        struct latency *sum)
{
    for (uint32_t i = 0; lane->probes != NULL && i < lane->lane.request.send_count; i++) {
        const struct prober *prober = &lane->probes->probers[i];

        if (prober->flow->src != flow->src || prober->flow->dst != flow->dst)
            continue;
        histogram_merge(&sum->histogram, &prober->times);
        sum->sent += prober->measured;
        return true;
    }
    return false;
}
