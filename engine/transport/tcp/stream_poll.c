/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "lane.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

/* --- receiving --- */

void tcp_received(struct tcp_lane *lane, struct tcp_in *in, uint8_t *data, ssize_t got,
                  int64_t now_ns)
{
    bool ended = in->sink.ended;
    int one = 1;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        int why = got < 0 ? errno : 0;

        epoll_ctl(lane->epoll, EPOLL_CTL_DEL, in->fd, NULL);
        if (!ended && (why != 0 || !tcp_lane_is_probe(lane))) {
            tcp_fault_in(lane, in, why);
        } else if (!ended) {
            /* A forwarder that its own source can't reach has no probe to send on: the next rank
             * misses it. */
            in->sink.ended = true;
            lane->ins_whole++;
            tcp_in_read(lane, in, true);
        }
        return;
    }
    if ((size_t)got > lane->most_read)
        lane->most_read = (size_t)got;
    lane->more |= got == TCP_READ_BYTES;
    tcp_sink_feed(&in->sink, data, (size_t)got);
    /* The sender is done when its last byte and its end are acknowledged: an acknowledgement that
     * waits for data to go with would hold up the whole phase (40 ms, or until a probe for lost
     * tails asks). */
    if (!ended && in->sink.ended)
        setsockopt(in->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
    tcp_in_read(lane, in, ended);
    tcp_side_time(in->flow->side, now_ns);
    lane->lane.arrived_ns = now_ns;
}

static void receive(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns)
{
    ssize_t got = recv(in->fd, lane->buffer, TCP_READ_BYTES, MSG_DONTWAIT);

    tcp_received(lane, in, lane->buffer, got, now_ns);
}

/* --- what the kernel says --- */

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
            lane->mode->receive(lane, &lane->ins[index - lane->out_count], now_ns);
    }
    return count;
}

bool tcp_drained(const struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->out_count; i++)
        if (unacknowledged(lane->outs[i].fd))
            return false;
    return true;
}

/* --- the worker's calls --- */

/* What there is to send; returns when to look again. */
static int64_t work_outs(struct tcp_lane *lane, int64_t now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    if (lane->outs_ended < lane->out_count)
        wake_ns = lane->mode->send(lane, now_ns);
    if (lane->outs_ended < lane->out_count)
        return wake_ns;
    if (lane->lane.stopped_ns == 0)
        lane->lane.stopped_ns = now_ns;
    lane->lane.tx_done = tcp_drained(lane);
    return lane->lane.tx_done ? CLOCK_NEVER : now_ns + DRAIN_LOOK_NS;
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
    send_ns = base->tx_done ? CLOCK_NEVER : work_outs(lane, now_ns);
    if (base->tx_done && base->stopped_ns == 0 && now_ns >= base->stop_ns)
        base->stopped_ns = now_ns;
    return send_ns < look_ns ? send_ns : look_ns;
}

static int make(struct tcp_lane *lane)
{
    return lane->stride > lane->streams ? tcp_probes_make(lane) : 0;
}

const struct tcp_mode tcp_stream_mode = {
    .make = make,
    .free = tcp_probes_free,
    .start = tcp_probes_start,
    .poll = tcp_stream_poll,
    .receive = receive,
    .send = tcp_generate,
};

/* --- every mode's --- */

void tcp_lane_start(struct lane *lane, int64_t now_ns)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;

    (void)now_ns;
    lane->stop_ns = lane->request.phase->stop_ns;
    lane->tx_done = l->out_count == 0;
    lane->rx_done = l->ins_whole == l->in_count; /* those of a probe may all be lost */
    for (uint32_t i = 0; i < lane->request.send_count; i++)
        tcp_set_pace(l, &l->flows[i]);
    if (l->mode->start != NULL)
        l->mode->start(l);
}

int64_t tcp_lane_poll(struct lane *lane, int64_t now_ns)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;

    return tcp_lane_has_failed(l) ? CLOCK_NEVER : l->mode->poll(l, now_ns);
}
