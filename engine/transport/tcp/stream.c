/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hot path: messages into sockets and out of them.
 *
 * A schedule's message is a header, and the payload straight from and into the rank's memory: one
 * system call each where the kernel has room and the bytes are there. What a partner has sent ahead
 * waits in the kernel until its step has come. Few messages are looked for by reading; among many
 * the kernel says which are there.
 */
#include "tcp_lane.h"

#include "clock.h"
#include "schedule_executor.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <linux/tcp.h> /* struct tcp_info is longer than the C library's */
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define EVENTS 64
#define HANG_UPS ((uint32_t)EPOLLHUP | EPOLLRDHUP)
#define WRITE_BYTES (256u * 1024)
#define DRAIN_LOOK_NS (100 * NS_PER_US) /* between two looks whether all was acknowledged */
/* Between two looks at what came, of a worker that sleeps: each is a wake-up, and 100 us of a line
 * of 100 Gbit/s are 1.25 MB, which a receive buffer holds. */
#define READ_LOOK_LEAST_NS (100 * NS_PER_US)
#define READ_LOOK_MOST_NS (500 * NS_PER_US)
#define LOOK_FEW_BYTES (16u * 1024)
#define LOOK_MANY_BYTES (32u * 1024)
/* Schedules: messages that are looked for by reading, polls after which a dead partner is looked
 * for, too, and one write: then what comes is read. */
#define FEW 2u
#define EVENTS_TURNS 64u
#define STEP_WRITE_BYTES (512u * 1024)
/* How long a rank that waits looks before it sleeps: in general; and where it has a partner that
 * waits as well and nobody else wants the core, which a look's own time tells (half a microsecond;
 * among two that wait, three). On two cores an allreduce of 8 bytes among four ranks took 36 us
 * with the first, and 54 without. A guest whose cores all sleep gets them back when its host finds
 * the time: without the second, 500 allreduces of 4 KiB at 100 Mbit/s took 747 us each instead of
 * 716, and up to 1900. Who only receives is in the sender's way: with it a broadcast took a fifth
 * longer.
 */
#define LOOKS_NS (20 * NS_PER_US)
#define PARTNERS_LOOKS_NS (400 * NS_PER_US)
#define ALONE_LOOK_NS 1500
#define KEEP_IDLE_S 10 /* a connection without data is tried after so long ... */
#define KEEP_EVERY_S 5 /* ... and again, if nobody answers ... */
#define KEEP_COUNT 4   /* ... so often */
#define FRAME_BYTES 38 /* preamble and delimiter 8, Ethernet 14, FCS 4, gap 12 */
#define TCP_HEADER 20
#define TIMESTAMPS 12       /* the option with its padding, RFC 7323 */
#define SEGMENT_BYTES 1448u /* of IPv4 at MTU 1500, with timestamps */

static struct tcp_lane *lane_of(struct message_lane *lane)
{
    return (struct tcp_lane *)(void *)lane;
}

/* A connection has failed: sets the lane's error; `why` 0: it ended early. */
static void fault(struct message_lane *base, const struct lane_flow *flow, int why)
{
    struct tcp_ends ends = tcp_port_ends(lane_of(base)->port, flow);

    err_set(&base->lane.error, -EPIPE, "the connection between %s and %s (rank %u) broke: %s",
            ends.here, ends.there, flow->src == base->lane.request.rank ? flow->dst : flow->src,
            why != 0 ? strerror(why) : "the partner closed it too early");
}

/* --- what the kernel knows of a connection --- */

bool tcp_info_read(int fd, struct tcp_info *info)
{
    socklen_t size = sizeof *info;

    memset(info, 0, sizeof *info);
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0;
}

double tcp_segment_overhead(int fd, const struct tcp_info *info)
{
    int domain = AF_INET;
    socklen_t size = sizeof domain;

    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return FRAME_BYTES + (domain == AF_INET6 ? 40 : 20) + TCP_HEADER +
           (info->tcpi_options & TCPI_OPT_TIMESTAMPS ? TIMESTAMPS : 0);
}

/* Chooses a flow's segment, and its payload among the bytes that a full one takes at layer 1. */
static void choose_segment(struct message_flow *flow, int fd)
{
    struct tcp_info info;

    flow->segment = SEGMENT_BYTES;
    flow->payload_share = SEGMENT_BYTES / 1538.0;
    if (!tcp_info_read(fd, &info) || info.tcpi_snd_mss == 0)
        return;
    flow->segment = info.tcpi_snd_mss;
    flow->payload_share = flow->segment / (flow->segment + tcp_segment_overhead(fd, &info));
}

/* --- sending --- */

/* Reads the completions of zero-copy sends, which would otherwise use up the socket's memory. */
static void reap_zero_copy(int fd)
{
    uint8_t control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};

    while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
        message.msg_controllen = sizeof control;
}

/* Sends what a batch holds; returns the bytes that were taken: 0 when the connection is full
 * (writable is false then) or has failed (the lane's error is set then). */
static size_t send_batch(struct tcp_out *out, int how)
{
    struct tcp_batch *batch = &lane_of(out->base.lane)->batch;
    const struct msghdr message = {.msg_iov = batch->iov, .msg_iovlen = batch->count};
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    ssize_t sent = sendmsg(out->fd, &message, flags | how);

    /* Too many unread completions, or more locked memory than this user may have. */
    if (sent < 0 && errno == ENOBUFS && how == MSG_ZEROCOPY) {
        reap_zero_copy(out->fd);
        sent = sendmsg(out->fd, &message, flags);
    }
    if (sent < 0 && errno == EINTR)
        return 0;
    out->writable = sent == (ssize_t)batch->bytes;
    if (sent < 0 && errno != EAGAIN)
        fault(out->base.lane, out->base.flow, errno);
    return sent < 0 ? 0 : (size_t)sent;
}

/* The batch is these bytes, and no others. */
static void batch_begin(struct tcp_batch *batch)
{
    batch->count = 0;
    batch->bytes = 0;
}

static void batch_add(struct tcp_batch *batch, const void *data, uint32_t bytes)
{
    /* iovec has no const; sendmsg only reads. */
    batch->iov[batch->count++] = (struct iovec){(void *)(uintptr_t)data, bytes};
    batch->bytes += bytes;
}

/* `bytes` of messages were sent. */
static void account_sent(struct message_out *out, size_t bytes)
{
    struct message_cursor *at = &out->at;

    out->side->live.payload_bytes += bytes;
    while (bytes >= at->length - at->position && at->length > 0) {
        bytes -= at->length - at->position;
        message_cursor_next(at, &out->script);
        out->side->live.messages++;
    }
    at->position += (uint32_t)bytes;
}

/* The next bytes of the messages, in `most` pieces and `budget` bytes at most but for what
 * completes a header. */
static void fill(struct tcp_batch *batch, const struct message_out *out, size_t budget,
                 unsigned most)
{
    struct message_cursor at = out->at;

    batch_begin(batch);
    while (batch->bytes < budget && batch->count < most && at.length > 0 &&
           !(out->stopping && at.position == 0)) {
        uint32_t head = message_cursor_head(&at);
        uint32_t bytes = at.length - at.position;

        if (at.position < head) {
            struct message_header *header = &batch->headers[batch->count];

            *header = message_cursor_header(&at, &out->script);
            bytes = head - at.position;
            batch_add(batch, (uint8_t *)header + at.position, bytes);
        } else {
            bytes = bytes < MESSAGE_RUN ? bytes : MESSAGE_RUN;
            if (bytes > budget - batch->bytes)
                bytes = (uint32_t)(budget - batch->bytes);
            batch_add(batch, message_payload_at(&at, at.position), bytes);
        }
        at.position += bytes;
        if (at.position == at.length)
            message_cursor_next(&at, &out->script);
    }
}

/* Sends up to `budget` bytes of messages, in one call; without copying, in one of each piece:
 * headers are copied, because they change; the payload never does, so that nobody has to wait until
 * the kernel has let go of it. */
static uint64_t push(struct tcp_out *out, size_t budget, bool zero_copy)
{
    const struct message_cursor *at = &out->base.at;
    size_t done = 0, taken;

    do {
        int how = 0;

        if (zero_copy && at->position >= message_cursor_head(at))
            how = MSG_ZEROCOPY;
        else if (zero_copy && at->length > MESSAGE_HEADER_BYTES)
            how = MSG_MORE;
        fill(&lane_of(out->base.lane)->batch, &out->base, budget - done,
             zero_copy ? 1 : TCP_BATCH_IOVS);
        taken = send_batch(out, how);
        account_sent(&out->base, taken);
        done += taken;
    } while (zero_copy && taken > 0 && done < budget && out->writable && at->length > 0 &&
             !(out->base.stopping && at->position == 0));
    return done;
}

/* The bytes from `place` to the ring's edge, at most `most`. */
static size_t contiguous(uint64_t place, uint64_t most)
{
    uint64_t edge = TCP_READ_BYTES - place % TCP_READ_BYTES;

    return (size_t)(most < edge ? most : edge);
}

static uint64_t sent_bytes(const struct message_out *out)
{
    return out->at.before + out->at.position;
}

/* A chain's middle rank sends on what it receives, as it receives it (Dolly). When the next hop is
 * slow the ring fills, nothing more is read, and TCP slows the rank before. Corrupted bytes are
 * counted here and sent on as they are. In the middle of a message whole segments are sent, for
 * more is sure to come. */
static uint64_t push_forward(struct tcp_out *out)
{
    const struct tcp_in *in = (const struct tcp_in *)(void *)out->base.pair;
    const struct message_sink *sink = &in->base.sink;
    struct tcp_batch *batch = &lane_of(out->base.lane)->batch;
    uint64_t end = sink->at.before + (sink->ending ? 0 : sink->at.position);
    uint64_t place = sent_bytes(&out->base), begin = place;

    if (sink->at.position > 0 && !sink->ending)
        end -= (end - place) % lane_of(out->base.lane)->segment;
    while (place < end && out->writable) {
        size_t bytes = contiguous(place, end - place), taken;

        batch_begin(batch);
        batch_add(batch, in->ring + place % TCP_READ_BYTES, (uint32_t)bytes);
        taken = send_batch(out, bytes < end - place ? MSG_MORE : 0);
        if (taken == 0)
            break;
        account_sent(&out->base, taken);
        place += taken;
    }
    return place - begin;
}

static uint64_t post(struct message_out *base, uint64_t budget, int64_t now_ns)
{
    struct tcp_out *out = (struct tcp_out *)(void *)base;
    const struct message_lane *lane = base->lane;
    uint64_t most = WRITE_BYTES;

    (void)now_ns;
    if (!out->writable)
        return 0;
    if (lane->forwards)
        return push_forward(out);
    if (base->use == MESSAGE_LOAD) /* whole segments */
        most -= most % lane->flows[base->flow - lane->lane.request.sends].segment;
    return push(out, budget < most ? budget : most,
                tcp_options(lane->lane.request.phase)->zero_copy);
}

static void finish(struct message_out *base, int64_t now_ns)
{
    struct tcp_out *out = (struct tcp_out *)(void *)base;
    struct message_header mark =
        message_header_make(MESSAGE_END, &base->script, base->at.sequence, base->at.before);
    struct tcp_batch *batch = &lane_of(base->lane)->batch;

    (void)now_ns;
    if (!out->writable)
        return;
    batch_begin(batch);
    batch_add(batch, (const uint8_t *)&mark + out->mark_sent,
              (uint32_t)sizeof mark - out->mark_sent);
    out->mark_sent += (uint32_t)send_batch(out, 0);
    if (out->mark_sent < sizeof mark)
        return;
    shutdown(out->fd, SHUT_WR);
    message_out_ended(base);
}

/* --- receiving --- */

/* The connection has ended. A forwarder that its own source can't reach has no check's message to
 * send on: the next rank misses it. */
static void closed(struct tcp_lane *lane, struct tcp_in *in, int why)
{
    epoll_ctl(lane->epoll, EPOLL_CTL_DEL, in->fd, NULL);
    if (lane->wakes >= 0)
        epoll_ctl(lane->wakes, EPOLL_CTL_DEL, in->fd, NULL);
    if (in->base.sink.ended)
        return;
    if (why != 0 || !message_lane_checks(&lane->base))
        fault(&lane->base, in->base.flow, why);
    else
        message_in_ended(&in->base);
}

/* What became of a receive: bytes, 0 when there is nothing, or the connection has ended. */
static size_t pull_result(struct tcp_lane *lane, struct tcp_in *in, ssize_t got)
{
    if (got > 0)
        return (size_t)got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        in->readable = errno == EINTR;
    else
        closed(lane, in, got < 0 ? errno : 0);
    return 0;
}

static void receive(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns)
{
    struct message_sink *sink = &in->base.sink;
    bool ended = sink->ended, loads = in->base.use == MESSAGE_LOAD;
    uint64_t sequence = sink->at.sequence;
    uint8_t *data = lane->buffer;
    size_t room = TCP_READ_BYTES, got;
    int one = 1;

    if (in->ring != NULL) {
        room =
            contiguous(in->received, TCP_READ_BYTES - (in->received - sent_bytes(in->base.pair)));
        data = in->ring + in->received % TCP_READ_BYTES;
    }
    if (room == 0)
        return;
    got = pull_result(lane, in, recv(in->fd, data, room, MSG_DONTWAIT));
    if (got == 0)
        return;
    if (!loads)
        now_ns = clock_now();
    in->received += got;
    if (loads && got > lane->most_read)
        lane->most_read = got;
    lane->more |= got == TCP_READ_BYTES;
    message_sink_feed(sink, data, got);
    if (sink->at.sequence > sequence)
        in->base.came_ns = now_ns;
    /* The sender is done when its last byte and its end are acknowledged: an acknowledgement that
     * waits for data to go with would hold up the whole phase (40 ms, or until a probe for lost
     * tails asks). */
    if (!ended && sink->ended)
        setsockopt(in->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
    if (sink->whole)
        message_in_ended(&in->base);
    message_side_time(sink->side, now_ns);
    if (in->base.use != MESSAGE_ANSWER)
        lane->base.lane.arrived_ns = now_ns;
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
static void out_event(struct tcp_out *out, uint32_t events)
{
    int why = 0;
    socklen_t size = sizeof why;

    if (events & EPOLLOUT)
        out->writable = true;
    if (!(events & (EPOLLERR | HANG_UPS)))
        return;
    /* Zero-copy completions come as errors, too. */
    if (events & EPOLLERR)
        reap_zero_copy(out->fd);
    getsockopt(out->fd, SOL_SOCKET, SO_ERROR, &why, &size);
    /* Behind the end mark the partner may close first: but it must have taken all. */
    if (out->base.ended ? why != 0 && unacknowledged(out->fd) : why || (events & HANG_UPS))
        fault(out->base.lane, out->base.flow, why);
}

/* A schedule's connection has something, or has broken, whether or not a step reads it now. */
static void step_event(struct tcp_lane *lane, struct tcp_in *in, uint32_t events)
{
    uint8_t byte;

    in->readable = true;
    if (events & (EPOLLERR | HANG_UPS))
        (void)pull_result(lane, in, recv(in->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));
}

/* Notes what the kernel says of the connections, after at most so long; how many it spoke of. */
static int take_events(struct tcp_lane *lane, int epoll, int64_t now_ns, int most_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, EVENTS, most_ms);

    lane->more |= count == EVENTS;
    for (int i = 0; i < count; i++) {
        unsigned index = events[i].data.u32;
        struct tcp_in *in = &lane->ins[index - lane->base.out_count];

        if (index < lane->base.out_count)
            out_event(&lane->outs[index], events[i].events);
        else if (lane->base.schedules)
            step_event(lane, in, events[i].events);
        else
            receive(lane, in, now_ns);
    }
    return count;
}

static bool drained(struct message_lane *base)
{
    const struct tcp_lane *lane = lane_of(base);

    for (unsigned i = 0; i < base->out_count; i++)
        if (unacknowledged(lane->outs[i].fd))
            return false;
    return true;
}

/* Room to write, many to be read, or a partner that has gone: only the kernel knows. */
static bool needs_events(struct tcp_lane *lane)
{
    const struct schedule_executor *executor = lane->base.lane.request.executor;

    return !lane->base.stepping || executor->sends_left > 0 || executor->receives_left > FEW ||
           ++lane->polls % EVENTS_TURNS == 0;
}

static bool reap(struct message_lane *base, int64_t now_ns)
{
    struct tcp_lane *lane = lane_of(base);

    lane->most_read = 0;
    lane->more = false;
    base->lane.own_partner_timeout = base->stepping && now_ns >= base->opens_ns;
    if (lane->wakes >= 0)
        (void)take_events(lane, lane->wakes, now_ns, 0);
    if (needs_events(lane))
        (void)take_events(lane, lane->epoll, now_ns, 0);
    /* Behind the last barrier comes nothing but the partner's end mark. */
    for (unsigned i = 0; base->schedules && !base->stepping && i < base->in_count; i++)
        if (!lane->ins[i].base.sink.ended && lane->ins[i].readable)
            receive(lane, &lane->ins[i], now_ns);
    return lane->most_read > 0;
}

/* Looks as rarely as possible, but so often that it never finds a new connection's whole receive
 * window (64 KB): then the partner would have waited for us, the kernel would see no reason to open
 * the window, and it would stay so (1.3 to 2.4 instead of 5.5 Gbit/s; seen). Returns when. */
static int64_t next(struct message_lane *base, bool moved, int64_t due_ns, int64_t now_ns)
{
    struct tcp_lane *lane = lane_of(base);
    int64_t look_ns = CLOCK_NEVER;

    (void)moved;
    if (base->outs_ended == base->out_count && !base->lane.tx_done) {
        look_ns = now_ns + DRAIN_LOOK_NS;
    } else if (base->lane.request.receive_count > 0 && !base->lane.rx_done && !base->schedules &&
               !base->prober.plays) {
        if (lane->most_read > LOOK_MANY_BYTES)
            lane->look_ns /= 2;
        else if (lane->most_read < LOOK_FEW_BYTES)
            lane->look_ns *= 2;
        if (lane->look_ns < READ_LOOK_LEAST_NS)
            lane->look_ns = READ_LOOK_LEAST_NS;
        if (lane->look_ns > READ_LOOK_MOST_NS)
            lane->look_ns = READ_LOOK_MOST_NS;
        look_ns = now_ns + (lane->more ? 0 : lane->look_ns);
    }
    return due_ns < look_ns ? due_ns : look_ns;
}

/* --- a schedule's messages --- */

/* What is left of the header, `position` bytes of which have moved, and the payload behind it. */
static void fill_piece(struct tcp_batch *batch, const void *header, uint32_t position,
                       const uint8_t *payload, uint32_t bytes)
{
    batch_begin(batch);
    if (position < MESSAGE_HEADER_BYTES)
        batch_add(batch, (const uint8_t *)header + position, MESSAGE_HEADER_BYTES - position);
    if (bytes > 0)
        batch_add(batch, payload, bytes);
}

/* `moved` bytes have: first the header's. */
static enum message_piece move_on(struct message_cursor *at, size_t moved, uint32_t bytes,
                                  uint32_t *payload)
{
    uint32_t left = MESSAGE_HEADER_BYTES - at->position;
    uint32_t part = moved < left ? (uint32_t)moved : left;

    if (moved == 0)
        return PIECE_NONE;
    at->position += part;
    *payload = (uint32_t)moved - part;
    return at->position == MESSAGE_HEADER_BYTES && *payload == bytes ? PIECE_MOVED : PIECE_PART;
}

static enum message_piece send_piece(struct message_out *base, const struct message_header *header,
                                     const uint8_t *payload, uint32_t bytes, uint32_t *moved)
{
    struct tcp_out *out = (struct tcp_out *)(void *)base;

    if (!out->writable)
        return PIECE_NONE;
    fill_piece(&lane_of(base->lane)->batch, header, base->at.position, payload,
               bytes < STEP_WRITE_BYTES ? bytes : STEP_WRITE_BYTES);
    return move_on(&base->at, send_batch(out, 0), bytes, moved);
}

static enum message_piece receive_piece(struct message_in *base, uint8_t *payload, uint32_t bytes,
                                        uint32_t *moved)
{
    struct tcp_in *in = (struct tcp_in *)(void *)base;
    struct message_cursor *at = &base->sink.at;
    struct tcp_lane *lane = lane_of(base->lane);
    struct msghdr call = {.msg_iov = lane->batch.iov};

    if (!in->readable && base->lane->lane.request.executor->receives_left > FEW)
        return PIECE_NONE;
    fill_piece(&lane->batch, &base->sink.header, at->position, payload, bytes);
    call.msg_iovlen = lane->batch.count;
    return move_on(at, pull_result(lane, in, recvmsg(in->fd, &call, MSG_DONTWAIT)), bytes, moved);
}

/* --- the worker's calls --- */

/* A partner's process that dies closes its connections. Of a host or a way that is gone only the
 * kernel can tell, if it is told to ask: within half a minute. Whoever receives from such a rank,
 * and of each rank somebody does, ends then, and so do those who wait for it. */
static void keep_alive(int fd)
{
    static const int values[][2] = {
        {TCP_KEEPIDLE, KEEP_IDLE_S}, {TCP_KEEPINTVL, KEEP_EVERY_S}, {TCP_KEEPCNT, KEEP_COUNT}};
    int yes = 1;

    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
        setsockopt(fd, IPPROTO_TCP, values[i][0], &values[i][1], sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

static void begin(struct message_lane *base)
{
    struct tcp_lane *lane = lane_of(base);

    for (uint32_t i = 0; i < base->lane.request.send_count; i++) {
        choose_segment(&lane->base.flows[i], lane->outs[i * lane->base.stride].fd);
        lane->segment = lane->base.flows[i].segment;
    }
    for (unsigned i = 0; lane->base.schedules && i < lane->base.in_count; i++)
        keep_alive(lane->ins[i].fd);
}

const struct message_hooks tcp_hooks = {
    .out_bytes = sizeof(struct tcp_out),
    .in_bytes = sizeof(struct tcp_in),
    .begin = begin,
    .post = post,
    .finish = finish,
    .reap = reap,
    .drained = drained,
    .next = next,
    .send_piece = send_piece,
    .receive_piece = receive_piece,
};

int64_t tcp_lane_poll(struct lane *base, int64_t now_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    int64_t due_ns;

    if (message_lane_failed(&lane->base))
        return CLOCK_NEVER;
    due_ns = message_lane_poll(base, now_ns);
    /* Whoever waits for this rank, or for one that waits for it, is told at once. */
    if (lane->base.schedules && message_lane_failed(&lane->base)) {
        for (unsigned i = 0; i < lane->base.out_count; i++)
            shutdown(lane->outs[i].fd, SHUT_RDWR);
        for (unsigned i = 0; i < lane->base.in_count; i++)
            shutdown(lane->ins[i].fd, SHUT_RDWR);
    }
    return due_ns;
}

/* Gives the core to whoever wants it and looks again, for a short while: to be woken costs more. */
static bool yielding_finds(struct tcp_lane *lane, int64_t now_ns, int64_t left_ns)
{
    const struct schedule_executor *executor = lane->base.lane.request.executor;
    bool exchanges =
        executor->messages > executor->first &&
        executor->ops[executor->first].action != executor->ops[executor->messages - 1].action;
    int64_t most_ns = LOOKS_NS, look_ns;

    for (int64_t waited_ns = 0; waited_ns < most_ns && waited_ns < left_ns; waited_ns += look_ns) {
        sched_yield();
        if (take_events(lane, lane->epoll, now_ns, 0) > 0)
            return true;
        look_ns = clock_now() - now_ns;
        now_ns += look_ns;
        most_ns = exchanges && look_ns <= ALONE_LOOK_NS ? PARTNERS_LOOKS_NS : LOOKS_NS;
    }
    return false;
}

bool tcp_lane_wait(struct lane *base, int64_t until_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    int64_t now_ns, left_ns;

    /* The beginning and the end go by the clock, whose turns are shorter than epoll's. */
    if (!lane->base.stepping || base->started_ns == 0 || message_lane_failed(&lane->base))
        return false;
    now_ns = clock_now();
    left_ns = until_ns - now_ns;
    if (!yielding_finds(lane, now_ns, left_ns) && left_ns > 0)
        (void)take_events(lane, lane->epoll, now_ns, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
    return true;
}
