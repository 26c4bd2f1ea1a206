/* SPDX-License-Identifier: BSD-3-Clause */
#include "rally.h"

#include "clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define EVENTS 64

/* The way back is a script of its own: the ranks change places, so that bytes which were merely
 * reflected do not pass for an answer. */
static struct tcp_script way_back(const struct tcp_script *there)
{
    struct tcp_script back = *there;

    back.src = there->dst;
    back.dst = there->src;
    return back;
}

void tcp_rally_out(struct tcp_rally *rally, struct tcp_out *out)
{
    rally->out = out;
    rally->source = &out->source;
    rally->sent = out->flow->flow->side;
    rally->sink = &rally->back_sink;
    rally->sink->script = way_back(&out->source.script);
    rally->sink->side = &rally->back;
    tcp_cursor_start(&rally->sink->at, &rally->sink->script);
}

void tcp_rally_in(struct tcp_rally *rally, struct tcp_in *in)
{
    rally->in = in;
    rally->source = &rally->back_source;
    rally->source->script = way_back(&in->sink.script);
    rally->sent = &rally->back;
    rally->sink = &in->sink;
    tcp_cursor_start(&rally->source->at, &rally->source->script);
}

void tcp_rally_events(struct tcp_rally *rallies, int epoll)
{
    struct epoll_event events[EVENTS];
    int count;

    do {
        count = epoll_wait(epoll, events, EVENTS, 0);
        for (int i = 0; i < count; i++) {
            struct tcp_rally *rally = &rallies[events[i].data.u32];

            rally->writable = rally->writable || (events[i].events & EPOLLOUT) != 0;
            rally->readable = rally->readable || (events[i].events & ~(uint32_t)EPOLLOUT) != 0;
        }
    } while (count == EVENTS);
}

static int fd_of(const struct tcp_rally *rally)
{
    return rally->out != NULL ? rally->out->fd : rally->in->fd;
}

static void fault(struct tcp_lane *lane, const struct tcp_rally *rally, int why)
{
    if (rally->out != NULL)
        tcp_fault_out(lane, rally->out, why);
    else
        tcp_fault_in(lane, rally->in, why);
}

void tcp_rally_push(struct tcp_lane *lane, struct tcp_rally *rally)
{
    const struct tcp_cursor *at = &rally->source->at;
    uint64_t sequence = at->sequence;

    while (rally->writable && at->sequence == sequence) {
        struct msghdr message = {.msg_iov = lane->batch.iov};
        ssize_t sent;

        tcp_source_fill(rally->source, &lane->batch, at->length - at->position);
        message.msg_iovlen = lane->batch.count;
        sent = sendmsg(fd_of(rally), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            fault(lane, rally, errno);
        rally->writable = sent == (ssize_t)lane->batch.bytes;
        if (sent > 0)
            tcp_source_sent(rally->source, (size_t)sent, rally->sent);
    }
}

int64_t tcp_rally_pull(struct tcp_lane *lane, struct tcp_rally *rally, uint64_t messages)
{
    int64_t at_ns = 0;

    while (rally->readable && rally->sink->at.sequence < messages) {
        ssize_t got = recv(fd_of(rally), lane->buffer, TCP_READ_BYTES, MSG_DONTWAIT);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            rally->readable = false;
        } else if (got <= 0) {
            rally->readable = false;
            if (!rally->sink->ended)
                fault(lane, rally, got < 0 ? errno : 0);
        } else {
            at_ns = clock_now();
            tcp_sink_feed(rally->sink, lane->buffer, (size_t)got);
        }
    }
    return at_ns;
}

int64_t tcp_rally_answer(struct tcp_lane *lane, struct tcp_rally *rally)
{
    int64_t at_ns = tcp_rally_pull(lane, rally, UINT64_MAX);

    while (rally->writable && rally->source->at.sequence < rally->sink->at.sequence)
        tcp_rally_push(lane, rally);
    return at_ns;
}
