/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "lane.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#define EVENTS 64
#define HANG_UPS ((uint32_t)EPOLLHUP | EPOLLRDHUP)
#define DRAIN_LOOK_NS (100 * NS_PER_US) /* between two looks whether all was acknowledged */
/* Between two looks at what came, of a worker that sleeps: each is a wake-up, and 100 us of a line
 * of 100 Gbit/s are 1.25 MB, which a receive buffer holds. */
#define READ_LOOK_LEAST_NS (100 * NS_PER_US)
#define READ_LOOK_MOST_NS (500 * NS_PER_US)
#define LOOK_FEW_BYTES (16u * 1024)
#define LOOK_MANY_BYTES (32u * 1024)

/* --- faults --- */

static void fault(struct tcp_lane *lane, const struct sockaddr_storage *partner, uint32_t rank,
                  int why)
{
    char here[IP_ADDRESS_TEXT];
    char there[IP_ADDRESS_TEXT];

    err_set(&lane->lane.error, -EPIPE, "the connection between %s and %s (rank %u) broke: %s",
            ip_address_text(&lane->port->ip.address, here), ip_address_text(partner, there), rank,
            why ? strerror(why) : "the partner closed it too early");
}

void tcp_fault_out(struct tcp_lane *lane, const struct tcp_out *out, int why)
{
    fault(lane, &out->flow->partner, out->flow->flow->dst, why);
}

void tcp_fault_in(struct tcp_lane *lane, const struct tcp_in *in, int why)
{
    struct sockaddr_storage partner;

    ip_port_partner(&lane->port->ip, &in->flow->partner, &partner);
    fault(lane, &partner, in->flow->src, why);
}

/* --- receiving --- */

/* The sender is through when its last byte and its end are acknowledged: an acknowledgement that
 * waits for data to go with would hold up the whole phase (40 ms, or until a probe for lost
 * tails asks). */
static void acknowledge_at_once(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
}

/* A relay that its own source can't reach has no probe to send on: so the next one misses it. */
static void end_early(struct tcp_lane *lane, struct tcp_in *in, int why)
{
    if (why != 0 || lane->lane.request.phase->traffic != TRAFFIC_PROBE) {
        tcp_fault_in(lane, in, why);
        return;
    }
    in->sink.ended = true;
    lane->ins_whole++;
    lane->lane.received_all = lane->ins_whole == lane->in_count;
}

void tcp_received(struct tcp_lane *lane, struct tcp_in *in, uint8_t *data, ssize_t got,
                  int64_t now_ns)
{
    struct flow_side *side = in->flow->side;
    bool ended;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        int why = got < 0 ? errno : 0;

        epoll_ctl(lane->epoll, EPOLL_CTL_DEL, in->fd, NULL);
        if (!in->sink.ended)
            end_early(lane, in, why);
        return;
    }
    if ((size_t)got > lane->most_read)
        lane->most_read = (size_t)got;
    lane->more |= got == TCP_READ_BYTES;
    ended = in->sink.ended;
    tcp_sink_feed(&in->sink, data, (size_t)got);
    if (!ended && in->sink.ended)
        acknowledge_at_once(in->fd);
    lane->ins_whole += !ended && in->sink.whole;
    lane->lane.received_all = lane->ins_whole == lane->in_count;
    if (side->first_ns == 0)
        side->first_ns = now_ns;
    side->last_ns = now_ns;
    lane->lane.arrived_ns = now_ns;
}

void tcp_receive(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns)
{
    ssize_t got = recv(in->fd, lane->buffer, TCP_READ_BYTES, MSG_DONTWAIT);

    tcp_received(lane, in, lane->buffer, got, now_ns);
}

/* --- sending --- */

/* What is due, in whole segments: the rest would go as a small one, whose headers are load of their
 * own (at 95 % of 10 Mbit/s they filled the line; seen). */
static size_t paced_bytes(struct tcp_flow *flow, int64_t now_ns)
{
    uint32_t due = pace_allow(&flow->pace, now_ns, 1, UINT32_MAX);

    return due - due % flow->segment;
}

/* Writes what the flow's load allows now; returns when the next is due. */
static int64_t send_flow(struct tcp_lane *lane, struct tcp_flow *flow, int64_t now_ns)
{
    struct flow_side *side = flow->flow->side;
    bool stopping = now_ns >= lane->lane.stop_ns;
    int64_t due_ns = flow->pace.next_ns + flow->gather_ns;
    uint64_t before = side->live.payload_bytes;
    size_t write_most = TCP_WRITE_BYTES - TCP_WRITE_BYTES % flow->segment;
    size_t budget;

    if (now_ns < due_ns && !stopping)
        return due_ns;
    budget = flow->unpaced || stopping ? SIZE_MAX : paced_bytes(flow, now_ns);
    for (unsigned i = 0; i < lane->streams && budget > 0; i++) {
        struct tcp_out *out = &flow->outs[(flow->turn + i) % lane->streams];
        size_t most = budget < write_most ? budget : write_most;

        out->source.stopping |= stopping;
        if (out->ended || !out->writable)
            continue;
        if (tcp_source_at_end(&out->source))
            tcp_push_end(lane, out);
        else
            budget -= lane->push(lane, out, most);
    }
    flow->turn++;
    if (side->live.payload_bytes > before) {
        pace_spend(&flow->pace, side->live.payload_bytes - before);
        side->first_ns = side->first_ns ? side->first_ns : now_ns;
        side->last_ns = now_ns;
    }
    if (flow->unpaced || stopping || budget > 0)
        return now_ns + (side->live.payload_bytes > before ? 0 : lane->refill_ns);
    return flow->pace.next_ns + flow->gather_ns;
}

int64_t tcp_generate(struct tcp_lane *lane, int64_t now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        struct tcp_flow *flow = &lane->flows[i];
        int64_t due_ns;

        if (flow->open == 0)
            continue;
        due_ns = send_flow(lane, flow, now_ns);
        flow_load_account(&lane->lane, &flow->pace, flow->flow->side, now_ns);
        wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
    }
    return wake_ns;
}

/* --- the worker's calls --- */

/* The unit in which a flow is sent: a segment, or single bytes where a message may be shorter and
 * nothing may hold it up. */
static uint32_t unit_bytes(const struct tcp_lane *lane, uint32_t segment)
{
    if (lane->lane.request.phase->traffic == TRAFFIC_PROBE)
        return 1;
    for (uint32_t i = 0; i < lane->lane.request.phase->size_count; i++)
        if (lane->sizes[i] < segment)
            return 1;
    return segment;
}

static void set_pace(struct tcp_lane *lane, struct tcp_flow *flow)
{
    const struct phase *phase = lane->lane.request.phase;
    bool probe = phase->traffic == TRAFFIC_PROBE;
    double share = tcp_payload_share(flow->outs[0].fd, flow->partner.ss_family == AF_INET6);
    double rate = flow_load_rate(&lane->lane.request, lane->sizes, share);
    double gather = rate * FLOW_LOAD_GATHER_NS / NS_PER_S;
    uint32_t segment = tcp_segment_bytes(flow->outs[0].fd);
    double least = probe || lane->sizes[0] < segment ? lane->sizes[0] : segment;

    flow->segment = unit_bytes(lane, segment);
    if (gather < least)
        gather = least + (flow->segment > 1); /* not a byte too few when times are rounded */
    if (gather > TCP_WRITE_BYTES)
        gather = TCP_WRITE_BYTES;
    /* One second of load: what a full socket or a taken core had kept it from. */
    flow_load_pace(&flow->pace, phase, rate, probe ? gather : rate + gather);
    flow->unpaced = rate <= 0;
    flow->gather_ns = (int64_t)((gather - 1) * flow->pace.ns_per_cost);
}

void tcp_lane_start(struct lane *lane, int64_t now_ns)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;

    (void)now_ns;
    lane->stop_ns = lane->request.phase->stop_ns;
    lane->sent_all = l->out_count == 0;
    lane->received_all = l->ins_whole == l->in_count; /* those of a probe may all be lost */
    for (uint32_t i = 0; i < lane->request.send_count; i++)
        set_pace(l, &l->flows[i]);
    for (unsigned i = 0; i < l->in_count; i++)
        if (l->ins[i].relay.ring)
            l->ins[i].relay.segment = tcp_segment_bytes(l->outs[i].fd);
    if (l->probes != NULL)
        tcp_probes_start(l);
    if (l->steps != NULL)
        tcp_steps_start(l);
}

/* The partner's kernel has yet to say that it has all, but for the FIN at the end: that takes a
 * place in the sequence, too, and it may take its time for it. Once a connection is reset it stays
 * so for ever. */
static bool unacknowledged(int fd)
{
    int queued = 0;

    return ioctl(fd, SIOCOUTQ, &queued) == 0 && queued > 1;
}

/* Writing is possible again, or the partner has gone. */
static void out_event(struct tcp_lane *lane, struct tcp_out *out, uint32_t events)
{
    int why = 0;
    socklen_t size = sizeof why;

    if (events & EPOLLOUT)
        out->writable = true;
    if (!(events & (EPOLLERR | HANG_UPS)))
        return;
    /* Zero-copy completions come as errors, too. */
    if (events & EPOLLERR)
        tcp_zero_copy_reap(out->fd);
    getsockopt(out->fd, SOL_SOCKET, SO_ERROR, &why, &size);
    /* Behind the end mark the partner may close first: but it must have taken all. */
    if (out->ended ? why != 0 && unacknowledged(out->fd) : why || (events & HANG_UPS))
        tcp_fault_out(lane, out, why);
}

int tcp_await_events(struct tcp_lane *lane, int64_t now_ns, int most_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(lane->epoll, events, EVENTS, most_ms);

    lane->more = count == EVENTS;
    for (int i = 0; i < count; i++) {
        unsigned index = events[i].data.u32;

        if (index < lane->out_count)
            out_event(lane, &lane->outs[index], events[i].events);
        else
            lane->receive(lane, &lane->ins[index - lane->out_count], now_ns);
    }
    return count;
}

int tcp_take_events(struct tcp_lane *lane, int64_t now_ns)
{
    return tcp_await_events(lane, now_ns, 0);
}

bool tcp_drained(const struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->out_count; i++)
        if (unacknowledged(lane->outs[i].fd))
            return false;
    return true;
}

/* What there is to send; returns when to look again. */
static int64_t work_outs(struct tcp_lane *lane, int64_t now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    if (lane->outs_ended < lane->out_count)
        wake_ns = lane->send(lane, now_ns);
    if (lane->outs_ended < lane->out_count)
        return wake_ns;
    if (lane->lane.stopped_ns == 0)
        lane->lane.stopped_ns = now_ns;
    lane->lane.sent_all = tcp_drained(lane);
    return lane->lane.sent_all ? CLOCK_NEVER : now_ns + DRAIN_LOOK_NS;
}

/* Looks as rarely as possible, but so often that it never finds a new connection's whole receive
 * window (64 KB): then the partner would have waited for us, the kernel would see no reason to open
 * the window, and it would stay so (1.3 to 2.4 instead of 5.5 Gbit/s; seen). Returns when. */
static int64_t next_look(struct tcp_lane *lane, int64_t now_ns)
{
    if (lane->ins_whole == lane->in_count)
        return CLOCK_NEVER;
    if (lane->most_read > LOOK_MANY_BYTES)
        lane->look_ns /= 2;
    else if (lane->most_read < LOOK_FEW_BYTES)
        lane->look_ns *= 2;
    if (lane->look_ns < READ_LOOK_LEAST_NS)
        lane->look_ns = READ_LOOK_LEAST_NS;
    if (lane->look_ns > READ_LOOK_MOST_NS)
        lane->look_ns = READ_LOOK_MOST_NS;
    return now_ns + (lane->more ? 0 : lane->look_ns);
}

int64_t tcp_stream_poll(struct tcp_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;
    int64_t probe_ns = lane->probes != NULL ? tcp_probes_poll(lane, now_ns) : CLOCK_NEVER;
    int64_t look_ns;
    int64_t send_ns;

    lane->most_read = 0;
    (void)tcp_take_events(lane, now_ns);
    if (now_ns < base->request.phase->start_ns)
        return base->request.phase->start_ns;
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    look_ns = next_look(lane, now_ns);
    look_ns = probe_ns < look_ns ? probe_ns : look_ns;
    send_ns = base->sent_all ? CLOCK_NEVER : work_outs(lane, now_ns);
    if (base->sent_all && base->stopped_ns == 0 && now_ns >= base->stop_ns)
        base->stopped_ns = now_ns;
    return send_ns < look_ns ? send_ns : look_ns;
}

int64_t tcp_lane_poll(struct lane *lane, int64_t now_ns)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;

    return lane->error.text[0] != '\0' ? CLOCK_NEVER : l->poll(l, now_ns);
}

/* A sleeping worker is woken by a message that comes back; a stream's bytes may gather. */
int tcp_lane_wake_fd(struct lane *lane)
{
    const struct tcp_lane *l = (const struct tcp_lane *)lane;

    if (l->pingpong != NULL || l->steps != NULL)
        return l->epoll;
    return l->probes != NULL ? tcp_probes_fd(l) : -1;
}
