/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include "payload.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/socket.h>

size_t tcp_push_result(struct tcp_lane *lane, struct tcp_out *out, ssize_t sent, size_t asked)
{
    if (sent < 0 && errno == EINTR)
        return 0;
    if (sent < 0 && errno != EAGAIN) {
        tcp_fault_out(lane, out, errno);
        return 0;
    }
    out->writable = sent == (ssize_t)asked;
    return sent < 0 ? 0 : (size_t)sent;
}

static size_t send_batch(struct tcp_lane *lane, struct tcp_out *out)
{
    struct tcp_batch *batch = &lane->batch;
    struct msghdr message = {.msg_iov = batch->iov, .msg_iovlen = batch->count};
    ssize_t sent = sendmsg(out->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    size_t taken = tcp_push_result(lane, out, sent, batch->bytes);

    tcp_source_sent(&out->source, taken, out->flow->flow->side);
    return taken;
}

size_t tcp_push_copy(struct tcp_lane *lane, struct tcp_out *out, size_t budget)
{
    size_t taken;

    tcp_source_fill(&out->source, &lane->batch, budget);
    taken = send_batch(lane, out);
    /* A header is never cut by the budget, so that a little more may have been sent. */
    return taken < budget ? taken : budget;
}

/* --- zero copy --- */

void tcp_zero_copy_reap(int fd)
{
    uint8_t control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};

    while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
        message.msg_controllen = sizeof control;
}

/* Headers are copied, because they change; the payload never does, so that nobody has to wait
 * until the kernel has let go of it. */
static size_t push_header(struct tcp_lane *lane, struct tcp_out *out)
{
    struct tcp_source *source = &out->source;
    struct tcp_block_header header = tcp_cursor_header(&source->at, &source->script);
    size_t bytes = tcp_cursor_header_bytes(&source->at) - source->at.position;
    int more = source->at.length > TCP_HEADER_BYTES ? MSG_MORE : 0;
    ssize_t sent = send(out->fd, (const uint8_t *)&header + source->at.position, bytes,
                        MSG_DONTWAIT | MSG_NOSIGNAL | more);
    size_t taken = tcp_push_result(lane, out, sent, bytes);

    tcp_source_sent(source, taken, out->flow->flow->side);
    return taken;
}

static size_t push_payload(struct tcp_lane *lane, struct tcp_out *out, size_t budget)
{
    const struct tcp_source *source = &out->source;
    const struct tcp_cursor *at = &source->at;
    const uint8_t *payload = tcp_payload_at(at->sequence, source->script.stream, at->position);
    size_t bytes = at->length - at->position;
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    ssize_t sent;
    size_t taken;

    if (bytes > budget)
        bytes = budget;
    if (bytes > TCP_PAYLOAD_RUN)
        bytes = TCP_PAYLOAD_RUN;
    sent = send(out->fd, payload, bytes, flags | MSG_ZEROCOPY);
    /* Too many unread completions, or more locked memory than this user may have. */
    if (sent < 0 && errno == ENOBUFS) {
        tcp_zero_copy_reap(out->fd);
        sent = send(out->fd, payload, bytes, flags);
    }
    taken = tcp_push_result(lane, out, sent, bytes);
    tcp_source_sent(&out->source, taken, out->flow->flow->side);
    return taken;
}

size_t tcp_push_zero_copy(struct tcp_lane *lane, struct tcp_out *out, size_t budget)
{
    size_t done = 0;

    while (done < budget && out->writable && !tcp_source_at_end(&out->source)) {
        bool header = out->source.at.position < tcp_cursor_header_bytes(&out->source.at);
        size_t taken = header ? push_header(lane, out) : push_payload(lane, out, budget - done);

        if (taken == 0)
            break;
        done += taken;
    }
    return done < budget ? done : budget;
}

/* --- the end --- */

void tcp_push_end(struct tcp_lane *lane, struct tcp_out *out)
{
    struct tcp_end_mark mark = tcp_source_end_mark(&out->source);
    struct tcp_source *source = &out->source;
    size_t left = sizeof mark - source->mark_sent;
    ssize_t sent = send(out->fd, (const uint8_t *)&mark + source->mark_sent, left,
                        MSG_DONTWAIT | MSG_NOSIGNAL);

    source->mark_sent += (uint32_t)tcp_push_result(lane, out, sent, left);
    if (source->mark_sent < sizeof mark)
        return;
    shutdown(out->fd, SHUT_WR);
    out->ended = true;
    out->flow->open--;
    lane->outs_ended++;
}
