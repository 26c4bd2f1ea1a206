/* SPDX-License-Identifier: BSD-3-Clause */
#include "echo_connection.h"

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

void tcp_echo_out(struct tcp_echo *echo, struct tcp_out *out)
{
    echo->out = out;
    echo->source = &out->source;
    echo->sent = out->flow->flow->side;
    echo->sink = &echo->back_sink;
    echo->sink->script = way_back(&out->source.script);
    echo->sink->side = &echo->back;
    tcp_cursor_start(&echo->sink->at, &echo->sink->script);
}

void tcp_echo_in(struct tcp_echo *echo, struct tcp_in *in)
{
    echo->in = in;
    echo->source = &echo->back_source;
    echo->source->script = way_back(&in->sink.script);
    echo->sent = &echo->back;
    echo->sink = &in->sink;
    tcp_cursor_start(&echo->source->at, &echo->source->script);
}

void tcp_echo_events(struct tcp_echo *echoes, int epoll)
{
    struct epoll_event events[EVENTS];
    int count;

    do {
        count = epoll_wait(epoll, events, EVENTS, 0);
        for (int i = 0; i < count; i++) {
            struct tcp_echo *echo = &echoes[events[i].data.u32];

            echo->writable = echo->writable || (events[i].events & EPOLLOUT) != 0;
            echo->readable = echo->readable || (events[i].events & ~(uint32_t)EPOLLOUT) != 0;
        }
    } while (count == EVENTS);
}

static int fd_of(const struct tcp_echo *echo)
{
    return echo->out != NULL ? echo->out->fd : echo->in->fd;
}

static void fault(struct tcp_lane *lane, const struct tcp_echo *echo, int why)
{
    if (echo->out != NULL)
        tcp_fault_out(lane, echo->out, why);
    else
        tcp_fault_in(lane, echo->in, why);
}

void tcp_echo_push(struct tcp_lane *lane, struct tcp_echo *echo)
{
    const struct tcp_cursor *at = &echo->source->at;
    uint64_t sequence = at->sequence;

    while (echo->writable && at->sequence == sequence) {
        struct msghdr message = {.msg_iov = lane->batch.iov};
        ssize_t sent;

        tcp_source_fill(echo->source, &lane->batch, at->length - at->position);
        message.msg_iovlen = lane->batch.count;
        sent = sendmsg(fd_of(echo), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            fault(lane, echo, errno);
        echo->writable = sent == (ssize_t)lane->batch.bytes;
        if (sent > 0)
            tcp_source_sent(echo->source, (size_t)sent, echo->sent);
    }
}

int64_t tcp_echo_pull(struct tcp_lane *lane, struct tcp_echo *echo, uint64_t messages)
{
    int64_t at_ns = 0;

    while (echo->readable && echo->sink->at.sequence < messages) {
        ssize_t got = recv(fd_of(echo), lane->buffer, TCP_READ_BYTES, MSG_DONTWAIT);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            echo->readable = false;
        } else if (got <= 0) {
            echo->readable = false;
            if (!echo->sink->ended)
                fault(lane, echo, got < 0 ? errno : 0);
        } else {
            at_ns = clock_now();
            tcp_sink_feed(echo->sink, lane->buffer, (size_t)got);
        }
    }
    return at_ns;
}

int64_t tcp_echo_reply(struct tcp_lane *lane, struct tcp_echo *echo)
{
    bool ended = echo->in->sink.ended;
    int64_t at_ns = tcp_echo_pull(lane, echo, UINT64_MAX);

    tcp_in_read(lane, echo->in, ended);
    while (echo->writable && echo->source->at.sequence < echo->sink->at.sequence)
        tcp_echo_push(lane, echo);
    return at_ns;
}
