/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport's table, its options, a lane from prepare to destroy, and the hot path:
 * messages into sockets and out of them.
 *
 * - A flow is `streams` connections to the partner's listener, opened and proved with the run's key
 *   in connect.
 * - A message takes exactly its size on the stream (message.h). Receivers verify every byte:
 *   payload_bytes are correct stream bytes in their place, without the end mark. Offered bytes are
 *   those that a socket accepted.
 * - A load at layer 1 becomes a payload rate by what a full segment costs on the line (1,448 of
 *   1,538 bytes at MTU 1500 on IPv4). A flow that fell behind may catch up one second: its
 *   congestion control spreads that.
 * - A schedule's message is a header, and the payload straight from and into the rank's memory: one
 *   system call each where the kernel has room and the bytes are there. Bytes that a partner has
 *   sent ahead wait in the kernel until their step begins. A rank reads the connections of few
 *   messages directly; among many, epoll reports those that are readable.
 * - At stop each stream finishes its message, sends an end mark and shuts down.
 *
 * Between phases there is nothing to do: the kernel answers the network.
 */
#include "tcp_lane.h"

#include "clock.h"
#include "schedule_executor.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h> /* its struct tcp_info is longer than the C library's */
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAMS_MAX 256
#define PROBE_LINE_BYTES 154.0      /* a latency probe at layer 1: IPv4, with timestamps */
#define REFILL_NS (200 * NS_PER_US) /* for an unknown line rate */
#define EVENTS 64
#define HANG_UPS ((uint32_t)EPOLLHUP | EPOLLRDHUP)
#define WRITE_BYTES (256u * 1024)
#define DRAIN_LOOK_NS (100 * NS_PER_US) /* interval of checks for unacknowledged bytes */
/* Min and max interval between two reads of a sleeping worker. Each read needs a wake-up; in 100 us
 * a 100 Gbit/s line delivers 1.25 MB, which a receive buffer holds. */
#define READ_LOOK_LEAST_NS (100 * NS_PER_US)
#define READ_LOOK_MOST_NS (500 * NS_PER_US)
#define LOOK_FEW_BYTES (16u * 1024)
#define LOOK_MANY_BYTES (32u * 1024)
/* Schedules: maximum number of messages that are read without epoll; polls between two checks for
 * dead partners; bytes of one write, after which the rank reads. */
#define FEW 2u
#define EVENTS_TURNS 64u
#define STEP_WRITE_BYTES (512u * 1024)
/* Time for which a waiting rank polls before it sleeps: LOOKS_NS in general, PARTNERS_LOOKS_NS
 * where its partner waits as well and no other thread needs the core. A poll shorter than
 * ALONE_LOOK_NS shows that no other thread needs the core: a poll takes half a microsecond, or
 * three with two waiting ranks on the core. On two cores an allreduce of 8 bytes among four ranks
 * took 36 us with LOOKS_NS, and 54 without. A virtual machine whose cores all sleep gets them back
 * only when its host schedules them: without PARTNERS_LOOKS_NS, 500 allreduces of 4 KiB at 100
 * Mbit/s took 747 us each instead of 716, and up to 1900. A rank that only receives would delay the
 * sender: a broadcast with PARTNERS_LOOKS_NS took a fifth longer.
 */
#define LOOKS_NS (20 * NS_PER_US)
#define PARTNERS_LOOKS_NS (400 * NS_PER_US)
#define ALONE_LOOK_NS 1500
#define KEEP_IDLE_S 10 /* seconds without data before the first keepalive probe */
#define KEEP_EVERY_S 5 /* seconds between probes */
#define KEEP_COUNT 4   /* unanswered probes that end a connection */
#define FRAME_BYTES 38 /* preamble and delimiter 8, Ethernet 14, FCS 4, gap 12 */
#define TCP_HEADER 20
#define TIMESTAMPS 12       /* the option with its padding, RFC 7323 */
#define SEGMENT_BYTES 1448u /* of IPv4 at MTU 1500, with timestamps */

#define MEMBER(type, key, member) OPTION(type, tcp_options, key, member)

/* Options of the tcp transport. Rules that depend on the kernel are checked when a phase is
 * prepared. */
static const struct option options[] = {
    {MEMBER(OPTION_NUMBER, "streams", streams), .min = 1, .max = STREAMS_MAX, .initial = 1},
    {MEMBER(OPTION_NUMBER, "send_buffer", send_buffer), .max = UINT32_MAX},
    {MEMBER(OPTION_NUMBER, "receive_buffer", receive_buffer), .max = UINT32_MAX},
    {MEMBER(OPTION_TEXT, "congestion", congestion)},
    {.key = NULL},
};

static const struct option_table option_table = {options, sizeof(struct tcp_options)};

/* --- the lane --- */

static struct tcp_lane *lane_of(const struct message_end *end)
{
    return (struct tcp_lane *)(void *)end->lane;
}

/* Set the lane's error for a failed connection; `why` is an errno, or 0 if the partner closed the
 * connection early. */
static void fault(const struct tcp_end *end, int why)
{
    struct tcp_names names = tcp_end_names(&end->base);

    err_set(&end->base.lane->lane.error, -EPIPE,
            "the connection between %s and %s (rank %u) broke: %s", names.here, names.there,
            names.rank, why != 0 ? strerror(why) : "the partner closed it before its last message");
}

/* Return how many bytes a full segment occupies at layer 1 in addition to its payload. */
static double segment_overhead(int fd, const struct tcp_info *info)
{
    int domain = AF_INET;
    socklen_t size = sizeof domain;

    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return FRAME_BYTES + (domain == AF_INET6 ? 40 : 20) + TCP_HEADER +
           (info->tcpi_options & TCPI_OPT_TIMESTAMPS ? TIMESTAMPS : 0);
}

/* --- sending --- */

/* Send a batch. Return the bytes that the kernel accepted: 0 when the connection is full (it is not
 * open then) or has failed (the lane's error is set then). */
static size_t send_batch(struct tcp_end *out)
{
    struct tcp_batch *batch = &lane_of(&out->base)->batch;
    const struct msghdr message = {.msg_iov = batch->iov, .msg_iovlen = batch->count};
    ssize_t sent = sendmsg(out->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent < 0 && errno == EINTR)
        return 0;
    out->open = sent == (ssize_t)batch->bytes;
    if (sent < 0 && errno != EAGAIN)
        fault(out, errno);
    return sent < 0 ? 0 : (size_t)sent;
}

static void batch_add(struct tcp_batch *batch, const void *data, size_t bytes)
{
    /* iovec has no const; sendmsg only reads. */
    batch->iov[batch->count++] = (struct iovec){(void *)(uintptr_t)data, bytes};
    batch->bytes += bytes;
}

/* Fill the batch with the next bytes of the messages, at most `budget`. */
static void fill(struct tcp_batch *batch, const struct message_end *out, size_t budget)
{
    const struct message_script *script = &out->stream.script;
    struct message_cursor at = out->stream.at;

    batch->count = 0;
    batch->bytes = 0;
    while (batch->bytes < budget && batch->count < TCP_BATCH_IOVS && at.length > 0 &&
           !(out->stopping && at.position == 0)) {
        uint32_t head = message_cursor_head(&at);
        uint32_t bytes = (at.position < head ? head : at.length) - at.position;

        if (bytes > budget - batch->bytes)
            bytes = (uint32_t)(budget - batch->bytes);
        if (at.position < head) {
            struct message_header *header = &batch->headers[batch->count];

            *header = message_cursor_header(&at, script);
            batch_add(batch, (uint8_t *)header + at.position, bytes);
        } else if (out->memory != NULL) {
            batch_add(batch, out->memory + at.position - head, bytes);
        } else {
            bytes = bytes < MESSAGE_RUN ? bytes : MESSAGE_RUN;
            batch_add(batch, message_payload_at(&at, at.position), bytes);
        }
        at.position += bytes;
        if (at.position == at.length)
            message_cursor_next(&at, script);
    }
}

/* Advance the cursor of an end by `bytes` sent bytes, and count them. */
static void account_sent(struct message_end *out, size_t bytes)
{
    struct message_stream *stream = &out->stream;
    struct message_cursor *at = &stream->at;

    stream->side->live.payload_bytes += bytes;
    while (bytes >= at->length - at->position && at->length > 0) {
        bytes -= at->length - at->position;
        message_cursor_next(at, &stream->script);
        stream->side->live.messages++;
    }
    at->position += (uint32_t)bytes;
}

/* Send the next messages of an end, in one system call; return the number of sent bytes. */
static uint64_t post(struct message_end *base, uint64_t budget, int64_t now_ns)
{
    struct tcp_end *out = (struct tcp_end *)(void *)base;
    const struct message_lane *lane = base->lane;
    uint64_t most = lane->schedules ? STEP_WRITE_BYTES : WRITE_BYTES;
    size_t taken;

    (void)now_ns;
    if (!out->open)
        return 0;
    if (base->use == MESSAGE_LOAD && !lane->schedules) /* whole segments */
        most -= most % lane->flows[base->flow - lane->lane.request.flows].segment;
    fill(&lane_of(base)->batch, base, budget < most ? budget : most);
    taken = send_batch(out);
    if (lane->schedules)
        base->stream.at.position += (uint32_t)taken;
    else
        account_sent(base, taken);
    return taken;
}

static void finish(struct message_end *base, int64_t now_ns)
{
    struct tcp_end *out = (struct tcp_end *)(void *)base;
    const struct message_stream *stream = &base->stream;
    struct message_header mark =
        message_header_make(MESSAGE_END, &stream->script, stream->at.sequence, stream->at.before);
    struct tcp_batch *batch = &lane_of(base)->batch;

    (void)now_ns;
    if (!out->open)
        return;
    batch->count = 0;
    batch->bytes = 0;
    batch_add(batch, (const uint8_t *)&mark + out->mark_sent, sizeof mark - out->mark_sent);
    out->mark_sent += (uint32_t)send_batch(out);
    if (out->mark_sent < sizeof mark)
        return;
    shutdown(out->fd, SHUT_WR);
    message_end_over(base);
}

/* --- receiving --- */

/* Return the number of bytes that a read returned; 0 if there were none, or the connection has
 * ended. In a connectivity check the end of the connection is no error: a forwarder whose source is
 * unreachable has no probe to forward, and the next rank reports the missing probe. */
static size_t pull_result(struct tcp_lane *lane, struct tcp_end *in, ssize_t got)
{
    int why = got < 0 ? errno : 0;

    if (got > 0)
        return (size_t)got;
    if (why == EAGAIN || why == EINTR) {
        in->open = why == EINTR;
        return 0;
    }
    epoll_ctl(lane->epoll, EPOLL_CTL_DEL, in->fd, NULL);
    if (lane->wakes >= 0)
        epoll_ctl(lane->wakes, EPOLL_CTL_DEL, in->fd, NULL);
    if (in->base.stream.ended)
        return 0;
    if (why != 0 || !message_lane_checks(&lane->base))
        fault(in, why);
    else
        message_end_over(&in->base);
    return 0;
}

/* Read received bytes of a stream. A forwarder reads no more than it can send on, so that TCP slows
 * down the rank before it.
 */
static void receive(struct tcp_lane *lane, struct tcp_end *in, int64_t now_ns)
{
    struct message_stream *stream = &in->base.stream;
    bool ended = stream->ended, loads = in->base.use == MESSAGE_LOAD;
    uint64_t sequence = stream->at.sequence;
    size_t room = TCP_READ_BYTES, got;
    int one = 1;

    if (lane->base.forwards)
        room -= message_end_ahead(in->base.pair);
    if (room == 0)
        return;
    got = pull_result(lane, in, recv(in->fd, lane->buffer, room, MSG_DONTWAIT));
    if (got == 0)
        return;
    if (!loads)
        now_ns = clock_now();
    else if (got > lane->most_read)
        lane->most_read = got;
    lane->more |= got == TCP_READ_BYTES;
    message_stream_feed(stream, lane->buffer, got);
    if (stream->at.sequence > sequence)
        in->base.came_ns = now_ns;
    /* The sender is done when its last byte and its end are acknowledged: a delayed
     * acknowledgement would hold up the whole phase (40 ms, or until a tail loss probe). */
    if (!ended && stream->ended)
        setsockopt(in->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
    if (stream->whole)
        message_end_over(&in->base);
    flow_side_time(stream->side, now_ns);
    if (in->base.use != MESSAGE_ANSWER)
        lane->base.lane.arrived_ns = now_ns;
}

/* Receive the rest of a schedule's message piece: of its header, and of the payload behind it. */
static void take(struct message_end *base)
{
    struct tcp_end *in = (struct tcp_end *)(void *)base;
    struct message_cursor *at = &base->stream.at;
    struct tcp_lane *lane = lane_of(base);
    uint32_t head = at->position < MESSAGE_HEADER_BYTES ? at->position : MESSAGE_HEADER_BYTES;
    uint32_t paid = at->position - head;
    struct iovec iov[] = {
        {(uint8_t *)&base->stream.header + head, MESSAGE_HEADER_BYTES - head},
        {base->memory + paid, at->length - MESSAGE_HEADER_BYTES - paid},
    };
    struct msghdr call = {.msg_iov = iov, .msg_iovlen = 2};

    if (in->open || base->lane->lane.request.executor->receives_left <= FEW)
        at->position += (uint32_t)pull_result(lane, in, recvmsg(in->fd, &call, MSG_DONTWAIT));
}

/* --- events --- */

/* Return whether sent bytes are not acknowledged yet. The FIN is excepted: it takes a sequence
 * number, too, and may be acknowledged late. After a reset the result stays true. */
static bool unacknowledged(int fd)
{
    int queued = 0;

    return ioctl(fd, SIOCOUTQ, &queued) == 0 && queued > 1;
}

/* Handle an epoll event of a sending end: the socket has room to write, or the partner has closed
 * the connection. */
static void out_event(struct tcp_end *out, uint32_t events)
{
    int why = 0;
    socklen_t size = sizeof why;

    if (events & EPOLLOUT)
        out->open = true;
    if (!(events & (EPOLLERR | HANG_UPS)))
        return;
    getsockopt(out->fd, SOL_SOCKET, SO_ERROR, &why, &size);
    /* After the end mark the partner may close first, but must have acknowledged all. */
    if (out->base.ended ? why != 0 && unacknowledged(out->fd) : why || (events & HANG_UPS))
        fault(out, why);
}

/* Wait up to `most_ms` for events of the connections and handle them. Return their number. */
static int take_events(struct tcp_lane *lane, int epoll, int64_t now_ns, int most_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, EVENTS, most_ms);

    lane->more |= count == EVENTS;
    for (int i = 0; i < count; i++) {
        struct tcp_end *end = tcp_lane_end(lane, events[i].data.u32);
        uint8_t byte;

        if (end->base.sends) {
            out_event(end, events[i].events);
        } else if (!lane->base.schedules) {
            receive(lane, end, now_ns);
        } else { /* readable or broken, whether or not a step reads it now */
            end->open = true;
            if (events[i].events & (EPOLLERR | HANG_UPS))
                (void)pull_result(lane, end, recv(end->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));
        }
    }
    return count;
}

static bool drained(struct message_lane *base)
{
    for (unsigned i = 0; i < base->out_count; i++)
        if (unacknowledged(((const struct tcp_end *)(void *)message_lane_end(base, i))->fd))
            return false;
    return true;
}

static bool reap(struct message_lane *base, int64_t now_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    const struct schedule_executor *executor = base->lane.request.executor;

    lane->most_read = 0;
    lane->more = false;
    base->lane.own_partner_timeout = base->stepping && now_ns >= base->opens_ns;
    if (lane->wakes >= 0)
        (void)take_events(lane, lane->wakes, now_ns, 0);
    /* For room to write, for many readable connections, and now and then for a partner that has
     * gone. */
    if (!base->stepping || executor->sends_left > 0 || executor->receives_left > FEW ||
        ++lane->polls % EVENTS_TURNS == 0)
        (void)take_events(lane, lane->epoll, now_ns, 0);
    /* After the last barrier only the partner's end mark arrives. */
    for (unsigned i = base->out_count;
         base->schedules && !base->stepping && i < message_lane_ends(base); i++)
        if (!tcp_lane_end(lane, i)->base.stream.ended && tcp_lane_end(lane, i)->open)
            receive(lane, tcp_lane_end(lane, i), now_ns);
    return lane->most_read > 0;
}

/* Return when the lane must be polled again: as late as possible, but before a new connection's
 * whole receive window (64 KB) is full. Otherwise the partner waits, the kernel does not open the
 * window, and it stays small (1.3 to 2.4 instead of 5.5 Gbit/s were measured). */
static int64_t next(struct message_lane *base, bool moved, int64_t due_ns, int64_t now_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    int64_t look_ns = CLOCK_NEVER;

    (void)moved;
    if (base->outs_ended == base->out_count && !base->lane.tx_done) {
        look_ns = now_ns + DRAIN_LOOK_NS;
    } else if (base->lane.request.receive_count > 0 && !base->lane.rx_done && !base->schedules &&
               !base->prober.pingpong) {
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

/* --- the worker's calls --- */

/* Begin the phase. For a schedule, set socket options by which the kernel detects a lost host or
 * path within half a minute. (A process that dies closes its connections by itself.) Ranks that
 * receive from a lost rank then end, and so do ranks that wait for these. */
static void begin(struct message_lane *base)
{
    static const int keepalive[][3] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                                       {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
                                       {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S},
                                       {IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT}};
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;

    for (uint32_t i = 0; i < base->lane.request.send_count; i++) {
        int fd = tcp_lane_end(lane, i * base->stride)->fd;
        struct message_flow *flow = &base->flows[i];
        struct tcp_info info;

        flow->segment = SEGMENT_BYTES;
        flow->payload_share = SEGMENT_BYTES / 1538.0;
        if (!tcp_info_read(fd, &info) || info.tcpi_snd_mss == 0)
            continue;
        flow->segment = info.tcpi_snd_mss; /* and of a full one at layer 1: */
        flow->payload_share = flow->segment / (flow->segment + segment_overhead(fd, &info));
    }
    for (unsigned i = base->out_count; base->schedules && i < message_lane_ends(base); i++)
        for (unsigned k = 0; k < sizeof keepalive / sizeof keepalive[0]; k++)
            setsockopt(tcp_lane_end(lane, i)->fd, keepalive[k][0], keepalive[k][1],
                       &keepalive[k][2], sizeof(int));
}

static const struct message_hooks hooks = {
    .out_bytes = sizeof(struct tcp_end),
    .in_bytes = sizeof(struct tcp_end),
    .begin = begin,
    .post = post,
    .finish = finish,
    .reap = reap,
    .drained = drained,
    .next = next,
    .take = take,
};

static int64_t poll_lane(struct lane *base, int64_t now_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    int64_t due_ns;

    if (message_lane_failed(&lane->base))
        return CLOCK_NEVER;
    due_ns = message_lane_poll(base, now_ns);
    /* Ranks that wait for this one learn of the failure at once. */
    if (lane->base.schedules && message_lane_failed(&lane->base))
        for (unsigned i = 0; i < message_lane_ends(&lane->base); i++)
            shutdown(tcp_lane_end(lane, i)->fd, SHUT_RDWR);
    return due_ns;
}

/* Poll for events for a short time, and yield the core between two polls; this costs less than a
 * sleep with a wake-up. Return whether there was an event. */
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

static bool wait_lane(struct lane *base, int64_t until_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    int64_t now_ns, left_ns;

    /* Begin and end follow the clock, which is finer than epoll's timeout. */
    if (!lane->base.stepping || base->started_ns == 0 || message_lane_failed(&lane->base))
        return false;
    now_ns = clock_now();
    left_ns = until_ns - now_ns;
    if (!yielding_finds(lane, now_ns, left_ns) && left_ns > 0)
        (void)take_events(lane, lane->epoll, now_ns, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
    return true;
}

/* --- life of a lane --- */

static void destroy(struct lane *base)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    struct linger reset = {.l_onoff = 1};

    /* A reset frees both ends at once, without TIME_WAIT: by now all bytes have arrived, or the
     * phase was given up. */
    for (unsigned i = 0; lane->buffer != NULL && i < message_lane_ends(&lane->base); i++) {
        int fd = tcp_lane_end(lane, i)->fd;

        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    tcp_lane_hang_up(lane);
    if (lane->epoll >= 0)
        close(lane->epoll);
    if (lane->wakes >= 0)
        close(lane->wakes);
    message_lane_free(&lane->base);
    free(lane->buffer);
    free(lane);
}

/* Make the parts of a lane that message_lane_make() does not make: buffer, epoll descriptors and
 * the state of each end. */
static int make_rest(struct tcp_lane *lane)
{
    const struct lane_request *request = &lane->base.lane.request;
    int64_t refill_ns = REFILL_NS;

    if (request->line_rate_bps > 0)
        refill_ns = (int64_t)(tcp_unsent_most(request) / 4.0 * 8 * NS_PER_S /
                              (double)request->line_rate_bps);
    lane->base.refill_ns = refill_ns < NS_PER_MS ? refill_ns : NS_PER_MS;
    for (unsigned i = 0; i < message_lane_ends(&lane->base); i++) {
        struct tcp_end *end = tcp_lane_end(lane, i);
        const struct lane_flow *flow = end->base.flow;

        end->fd = -1;
        end->is_passive =
            end->base.sends &&
            (end->base.use == MESSAGE_ANSWER ||
             (lane->base.schedules && end->base.pair != NULL && flow->src > flow->dst));
    }
    if ((lane->buffer = malloc(TCP_READ_BYTES)) == NULL)
        return -ENOMEM;
    if ((lane->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (lane->base.probe_fps > 0 && (lane->wakes = epoll_create1(EPOLL_CLOEXEC)) < 0))
        return -errno;
    lane->base.lane.wait = wait_lane;
    lane->base.lane.wake_fd =
        lane->base.prober.pingpong || lane->base.schedules ? lane->epoll : lane->wakes;
    return 0;
}

static int prepare(struct lane *base, struct err *err)
{
    struct tcp_lane *lane = (struct tcp_lane *)(void *)base;
    const struct lane_request *request = &base->request;
    struct transport_port *port = request->port;
    const struct message_plan plan = {
        .transport = "tcp",
        .label = port->ip.conf->name,
        .streams_key = "streams_per_flow",
        .streams = tcp_options(request->phase)->streams,
        .check_bytes = MESSAGE_CHECK_BYTES,
        .probe_fps = prober_rate(request, PROBE_LINE_BYTES),
    };
    int rc;

    tcp_key_derive(port->key, request->secret);
    lane->port = port;
    lane->epoll = lane->wakes = -1;
    rc = message_lane_make(&lane->base, &hooks, &plan, err);
    if (rc == 0 && (rc = make_rest(lane)) < 0)
        err_set(err, rc, "%s: can't make the state of a phase's streams: %s", plan.label,
                strerror(-rc));
    return rc == 0 ? tcp_lane_check(lane, err) : rc;
}

enum { OF_SENDER = 1, OF_RECEIVER = 2 };

/* Read the TCP metrics of a flow, summed over its streams. */
static void read_flow(struct lane *base, const struct lane_flow *flow, struct flow_reading *reading)
{
    const struct tcp_lane *lane = (const struct tcp_lane *)(void *)base;
    bool sends = flow->src == base->request.rank;
    size_t first = (size_t)(flow - base->request.flows) - (sends ? 0 : base->request.send_count);
    double retransmitted = 0, sent = 0, received = 0, out_of_order = 0, delivery = 0, rtt = 0;
    double least_rtt = 0, mss = 0, overhead = 0;
    unsigned streams = 0;
    int buffer = 0;
    socklen_t size = sizeof buffer;

    message_lane_read_flow(base, flow, reading);
    for (size_t i = first * lane->base.stride; i < first * lane->base.stride + lane->base.streams;
         i++) {
        int fd = tcp_lane_end(lane, (unsigned)i + (sends ? 0 : lane->base.out_count))->fd;
        struct tcp_info info;

        if (!tcp_info_read(fd, &info))
            continue;
        retransmitted += info.tcpi_total_retrans;
        sent += info.tcpi_segs_out;
        received += info.tcpi_segs_in;
        out_of_order += info.tcpi_rcv_ooopack;
        delivery += 8.0 * (double)info.tcpi_delivery_rate;
        rtt += info.tcpi_rtt;
        if (streams++ == 0 || info.tcpi_min_rtt < least_rtt)
            least_rtt = info.tcpi_min_rtt;
        mss = sends ? info.tcpi_snd_mss : info.tcpi_rcv_mss;
        overhead = segment_overhead(fd, &info);
        getsockopt(fd, SOL_SOCKET, sends ? SO_SNDBUF : SO_RCVBUF, &buffer, &size);
    }
    const struct {
        struct flow_metric metric;
        unsigned side;
    } all[] = {
        {{"retransmitted_segments", retransmitted}, OF_SENDER},
        {{"rtt_us", rtt / streams}, OF_SENDER},
        {{"min_rtt_us", least_rtt}, OF_SENDER},
        {{"segments_sent", sent}, OF_SENDER | OF_RECEIVER},
        {{"segments_received", received}, OF_SENDER | OF_RECEIVER},
        {{"out_of_order_segments", out_of_order}, OF_RECEIVER},
        {{"delivery_rate_bps", delivery}, OF_SENDER},
        {{"mss_bytes", mss}, OF_SENDER | OF_RECEIVER},
        {{"segment_overhead_bytes", overhead}, OF_SENDER | OF_RECEIVER},
        {{"send_buffer_bytes", buffer}, OF_SENDER},
        {{"receive_buffer_bytes", buffer}, OF_RECEIVER},
        {{"streams", streams}, OF_SENDER | OF_RECEIVER},
    };

    reading->metric_count = 0;
    for (size_t i = 0; streams > 0 && i < sizeof all / sizeof all[0]; i++)
        if (all[i].side & (sends ? OF_SENDER : OF_RECEIVER))
            reading->metrics[reading->metric_count++] = all[i].metric;
}

extern const struct transport transport_tcp;

const struct transport transport_tcp = {
    .name = "tcp",
    .capabilities = TRANSPORT_KNOWS_END | TRANSPORT_NEEDS_IFACE,
    .options = &option_table,
    .port_bytes = sizeof(struct transport_port),
    .lane_bytes = sizeof(struct tcp_lane),
    .open = tcp_port_open,
    .facts = tcp_port_facts,
    .prepare = prepare,
    .connect = tcp_lane_connect,
    .poll = poll_lane,
    .read_flow = read_flow,
    .destroy = destroy,
    .close = tcp_port_close,
};
