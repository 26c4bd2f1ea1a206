/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "lane.h"

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

static size_t push_copy(struct tcp_lane *lane, struct tcp_out *out, size_t budget)
{
    struct tcp_batch *batch = &lane->batch;
    struct msghdr message = {.msg_iov = batch->iov};
    size_t taken;

    tcp_source_fill(&out->source, batch, budget);
    message.msg_iovlen = batch->count;
    taken = tcp_push_result(lane, out, sendmsg(out->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL),
                            batch->bytes);
    tcp_source_sent(&out->source, taken, out->flow->flow->side);
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
static size_t push_piece(struct tcp_lane *lane, struct tcp_out *out, size_t budget)
{
    struct tcp_source *source = &out->source;
    const struct tcp_cursor *at = &source->at;
    struct tcp_block_header header = tcp_cursor_header(at, &source->script);
    uint32_t head = tcp_cursor_header_bytes(at);
    const uint8_t *data = (const uint8_t *)&header + at->position;
    size_t bytes = head - at->position, taken;
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL, more = at->length > head ? MSG_MORE : 0;
    ssize_t sent;

    if (at->position >= head) {
        data = tcp_payload_at(at->sequence, source->script.stream, at->position);
        bytes = at->length - at->position;
        bytes = bytes < budget ? bytes : budget;
        bytes = bytes < TCP_PAYLOAD_RUN ? bytes : TCP_PAYLOAD_RUN;
        more = MSG_ZEROCOPY;
    }
    sent = send(out->fd, data, bytes, flags | more);
    /* Too many unread completions, or more locked memory than this user may have. */
    if (sent < 0 && errno == ENOBUFS && more == MSG_ZEROCOPY) {
        tcp_zero_copy_reap(out->fd);
        sent = send(out->fd, data, bytes, flags);
    }
    taken = tcp_push_result(lane, out, sent, bytes);
    tcp_source_sent(source, taken, out->flow->flow->side);
    return taken;
}

static size_t push_zero_copy(struct tcp_lane *lane, struct tcp_out *out, size_t budget)
{
    size_t done = 0;

    while (done < budget && out->writable && !tcp_source_at_end(&out->source)) {
        size_t taken = push_piece(lane, out, budget - done);

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
    tcp_out_ended(lane, out);
}

/* --- what is due --- */

void tcp_set_pace(struct tcp_lane *lane, struct tcp_flow *flow)
{
    const struct phase *phase = lane->lane.request.phase;
    bool probe = tcp_lane_is_probe(lane);
    double share = tcp_payload_share(flow->outs[0].fd);
    double rate = flow_load_rate(&lane->lane.request, flow->flow, lane->sizes, share);
    double gather = rate * FLOW_LOAD_GATHER_NS / NS_PER_S;
    uint32_t segment = tcp_segment_bytes(flow->outs[0].fd);
    double least = probe || lane->sizes[0] < segment ? lane->sizes[0] : segment;

    /* A segment; or single bytes where a message may be shorter and nothing may hold it up. */
    flow->segment = probe ? 1 : segment;
    for (uint32_t i = 0; i < phase->size_count; i++)
        if (lane->sizes[i] < segment)
            flow->segment = 1;
    if (gather < least)
        gather = least + (flow->segment > 1); /* not a byte too few when times are rounded */
    if (gather > TCP_WRITE_BYTES)
        gather = TCP_WRITE_BYTES;
    /* One second of load: what a full socket or a taken core had kept it from. */
    flow_load_pace(&flow->pace, phase, rate, probe ? gather : rate + gather);
    flow->unpaced = rate <= 0;
    flow->gather_ns = (int64_t)((gather - 1) * flow->pace.ns_per_cost);
}

/* Writes what the flow's load allows now; returns when the next is due. */
static int64_t send_flow(struct tcp_lane *lane, struct tcp_flow *flow, int64_t now_ns)
{
    struct flow_side *side = flow->flow->side;
    bool stopping = now_ns >= lane->lane.stop_ns;
    int64_t due_ns = flow->pace.next_ns + flow->gather_ns;
    uint64_t before = side->live.payload_bytes;
    size_t write_most = TCP_WRITE_BYTES - TCP_WRITE_BYTES % flow->segment;
    size_t (*push)(struct tcp_lane *, struct tcp_out *, size_t) =
        tcp_options(lane->lane.request.phase)->zero_copy ? push_zero_copy : push_copy;
    size_t budget;

    if (now_ns < due_ns && !stopping)
        return due_ns;
    /* What is due, in whole segments: the rest would go as a small one, whose headers are load of
     * their own (at 95 % of 10 Mbit/s they filled the line). */
    budget = SIZE_MAX;
    if (!flow->unpaced && !stopping) {
        budget = pace_allow(&flow->pace, now_ns, 1, UINT32_MAX);
        budget -= budget % flow->segment;
    }
    for (unsigned i = 0; i < lane->streams && budget > 0; i++) {
        struct tcp_out *out = &flow->outs[(flow->turn + i) % lane->streams];
        size_t most = budget < write_most ? budget : write_most;

        out->source.stopping |= stopping;
        if (out->ended || !out->writable)
            continue;
        if (tcp_source_at_end(&out->source))
            tcp_push_end(lane, out);
        else
            budget -= push(lane, out, most);
    }
    flow->turn++;
    if (side->live.payload_bytes > before) {
        pace_spend(&flow->pace, side->live.payload_bytes - before);
        tcp_side_time(side, now_ns);
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
