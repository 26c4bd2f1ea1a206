/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over tcp (doc/developer/schedules.md, ../schedule_executor.h). A message is a header of
 * 16 bytes, and the payload straight from and into the rank's memory: one system call each where
 * the kernel has room and the bytes are there. First is written what is to be sent, then is read
 * what is expected, and no more: what a partner has sent ahead waits in the kernel until its step
 * has come.
 *
 * Few messages are looked for by reading; among many the kernel says which are there.
 */
#include "clock.h"
#include "lane.h"
#include "schedule_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FEW 2u                    /* messages that are looked for by reading */
#define EVENTS_TURNS 64u          /* polls after which a dead partner is looked for, too */
#define WRITE_BYTES (512u * 1024) /* one write: then what comes is read */
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
#define DRAIN_LOOK_NS (100 * NS_PER_US)
#define PARTNERS_NS (5 * NS_PER_S)
#define KEEP_IDLE_S 10 /* a connection without data is tried after so long ... */
#define KEEP_EVERY_S 5 /* ... and again, if nobody answers ... */
#define KEEP_COUNT 4   /* ... so often */
#define BARRIER 0x80u  /* in a header's stream: a barrier's message, with its bits */

/* What a connection has of the message that moves on it. */
struct message_header {
    struct tcp_block_header block;
    uint32_t moved; /* bytes */
};

struct tcp_schedule {
    struct schedule_loop loop;
    struct message_header *headers; /* by connection: out, then in */
    bool *readable;                 /* by connection in, as far as is known */
    int64_t moved_ns;               /* when it last got further, or looked who is there */
    bool waits;                     /* the worker comes by way of tcp_schedule_wait */
    unsigned polls;
};

/* --- preparation --- */

static void mark_readable(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns)
{
    (void)now_ns;
    lane->schedule->readable[in - lane->ins] = true;
}

static bool push(struct lane *base, uint32_t place, int64_t now_ns);
static bool pull(struct lane *base, uint32_t place, int64_t now_ns);

static int make(struct tcp_lane *lane)
{
    static const struct schedule_hooks hooks = {.send = push, .receive = pull};
    struct tcp_schedule *schedule = calloc(1, sizeof *schedule);

    if (schedule == NULL)
        return -ENOMEM;
    lane->schedule = schedule;
    schedule->headers =
        calloc((size_t)lane->out_count + lane->in_count + 1, sizeof *schedule->headers);
    schedule->readable = calloc((size_t)lane->in_count + 1, sizeof *schedule->readable);
    return schedule->headers == NULL || schedule->readable == NULL
               ? -ENOMEM
               : schedule_loop_make(&schedule->loop, &lane->lane, &hooks);
}

static void free_schedule(struct tcp_lane *lane)
{
    if (lane->schedule == NULL)
        return;
    schedule_loop_free(&lane->schedule->loop);
    free(lane->schedule->headers);
    free(lane->schedule->readable);
    free(lane->schedule);
}

/* A partner's process that dies closes its connections. Of a host or a way that is gone only the
 * kernel can tell, if it is told to ask: within half a minute. Whoever receives from such a rank,
 * and of each rank somebody does, ends then, and so do those who wait for it. */
static void start(struct tcp_lane *lane)
{
    static const int values[][2] = {
        {TCP_KEEPIDLE, KEEP_IDLE_S}, {TCP_KEEPINTVL, KEEP_EVERY_S}, {TCP_KEEPCNT, KEEP_COUNT}};
    int yes = 1;

    for (unsigned i = 0; i < lane->in_count; i++) {
        for (unsigned j = 0; j < sizeof values / sizeof values[0]; j++)
            setsockopt(lane->ins[i].fd, IPPROTO_TCP, values[j][0], &values[j][1], sizeof(int));
        setsockopt(lane->ins[i].fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    }
}

/* --- a message --- */

static struct tcp_block_header make_header(const struct schedule_executor *executor,
                                           const struct step_message *message,
                                           const struct tcp_script *script, uint64_t sequence)
{
    return (struct tcp_block_header){
        .kind = TCP_KIND_BLOCK,
        .stream = executor->in_barrier ? (uint8_t)(BARRIER | executor->bits) : 0,
        .tag = htons(script->tag),
        .sequence = htonl((uint32_t)sequence),
        .length = htonl((uint32_t)message->bytes),
        .src = htons(script->src),
        .dst = htons(script->dst),
    };
}

/* What is left of the header, and of `bytes` of payload. */
static void fill(struct msghdr *call, struct message_header *header, uint8_t *payload,
                 uint64_t bytes)
{
    struct iovec *iov = call->msg_iov;

    if (header->moved < TCP_HEADER_BYTES)
        iov[call->msg_iovlen++] = (struct iovec){(uint8_t *)&header->block + header->moved,
                                                 TCP_HEADER_BYTES - header->moved};
    if (bytes > 0)
        iov[call->msg_iovlen++] = (struct iovec){payload, bytes};
}

/* Moves the header on; returns the bytes behind it. */
static uint64_t skip_header(struct message_header *header, size_t bytes)
{
    uint32_t left = TCP_HEADER_BYTES - header->moved;
    uint32_t part = bytes < left ? (uint32_t)bytes : left;

    header->moved += part;
    return bytes - part;
}

/* The message is through: the end mark tells its place in the connection's stream. */
static void end_message(struct message_header *header, struct tcp_cursor *at,
                        const struct step_message *message)
{
    header->moved = 0;
    at->before += TCP_HEADER_BYTES + message->bytes;
    at->sequence++;
}

static bool push(struct lane *base, uint32_t place, int64_t now_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)base;
    struct schedule_loop *loop = &lane->schedule->loop;
    const struct step_message *message = &loop->executor->sends[place];
    uint64_t moved = loop->sends[place].moved, left = message->bytes - moved;
    struct message_header *header = &lane->schedule->headers[message->flow];
    struct tcp_out *out = &lane->outs[message->flow];
    struct iovec iov[2];
    struct msghdr call = {.msg_iov = iov};
    size_t asked, taken;
    uint64_t payload;
    bool all;

    if (!out->writable)
        return false;
    if (header->moved == 0)
        header->block =
            make_header(loop->executor, message, &out->source.script, out->source.at.sequence);
    left = left < WRITE_BYTES ? left : WRITE_BYTES;
    asked = TCP_HEADER_BYTES - header->moved + left;
    fill(&call, header, executor_address(loop->executor, message) + moved, left);
    taken = tcp_push_result(lane, out, sendmsg(out->fd, &call, MSG_DONTWAIT | MSG_NOSIGNAL), asked);
    if (taken == 0)
        return false;
    payload = skip_header(header, taken);
    all = header->moved == TCP_HEADER_BYTES && moved + payload == message->bytes;
    schedule_sent(loop, place, out->flow->flow->side, payload, all, now_ns);
    if (all) {
        end_message(header, &out->source.at, message);
        schedule_handed_over(loop, place);
    }
    return true;
}

/* A whole header has come: is it the message that is due? */
static bool verify_header(struct tcp_lane *lane, const struct tcp_in *in,
                          const struct step_message *message, const struct tcp_block_header *header)
{
    struct schedule_executor *executor = lane->schedule->loop.executor;
    struct tcp_block_header due =
        make_header(executor, message, &in->sink.script, in->sink.at.sequence);

    if (executor->in_barrier && (header->stream & BARRIER) != 0) {
        executor_merge_bits(executor, header->stream & (uint8_t)~BARRIER);
        due.stream = header->stream;
    }
    if (memcmp(&due, header, sizeof due) == 0)
        return true;
    in->flow->side->corrupted++;
    err_set(&lane->lane.error, -EBADMSG,
            "rank %u sent message %u of %u bytes (kind %02x, %02x) where message %u of %u bytes "
            "was due",
            in->flow->src, ntohl(header->sequence), ntohl(header->length), header->kind,
            header->stream, ntohl(due.sequence), ntohl(due.length));
    return false;
}

static bool pull(struct lane *base, uint32_t place, int64_t now_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)base;
    struct tcp_schedule *schedule = lane->schedule;
    struct schedule_loop *loop = &schedule->loop;
    const struct step_message *message = &loop->executor->receives[place];
    uint64_t moved = loop->receives[place].moved;
    struct message_header *header = &schedule->headers[lane->out_count + message->flow];
    struct tcp_in *in = &lane->ins[message->flow];
    bool headed = header->moved == TCP_HEADER_BYTES;
    struct iovec iov[2];
    struct msghdr call = {.msg_iov = iov};
    uint64_t payload;
    ssize_t got;
    bool all;

    if (!schedule->readable[message->flow] && loop->executor->receives_left > FEW)
        return false;
    fill(&call, header, executor_address(loop->executor, message) + moved, message->bytes - moved);
    got = recvmsg(in->fd, &call, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        schedule->readable[message->flow] = errno == EINTR;
        return false;
    }
    if (got <= 0) {
        tcp_fault_in(lane, in, got < 0 ? errno : 0);
        return false;
    }
    payload = skip_header(header, (size_t)got);
    if (!headed && header->moved == TCP_HEADER_BYTES &&
        !verify_header(lane, in, message, &header->block))
        return true;
    all = header->moved == TCP_HEADER_BYTES && moved + payload == message->bytes;
    schedule_received(loop, place, in->flow->side, payload, all, now_ns);
    if (all)
        end_message(header, &in->sink.at, message);
    return true;
}

/* Of a wait that lasts: connections that have broken, whether or not a step reads them now. */
static void look_at_partners(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_schedule *schedule = lane->schedule;
    uint8_t byte;

    if (now_ns - schedule->moved_ns < PARTNERS_NS)
        return;
    schedule->moved_ns = now_ns;
    for (unsigned i = 0; i < lane->in_count && !schedule_loop_failed(&schedule->loop); i++) {
        ssize_t got = recv(lane->ins[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            tcp_fault_in(lane, &lane->ins[i], got < 0 ? errno : 0);
    }
}

/* --- the end --- */

/* Behind the last barrier comes nothing but the partner's goodbye. */
static void read_end(struct tcp_lane *lane, unsigned place)
{
    struct tcp_in *in = &lane->ins[place];
    struct tcp_end_mark mark;
    ssize_t got = recv(in->fd, &mark, sizeof mark, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        lane->schedule->readable[place] = false;
        return;
    }
    if (got > 0)
        tcp_sink_feed(&in->sink, (uint8_t *)&mark, (size_t)got);
    if (got > 0 && !in->sink.ended)
        return;
    if (got <= 0 || !in->sink.whole)
        tcp_fault_in(lane, in, got < 0 ? errno : 0);
    lane->ins_whole++;
}

static int64_t say_goodbye(struct tcp_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;

    if (base->stopped_ns == 0)
        base->stopped_ns = now_ns;
    (void)tcp_take_events(lane, now_ns);
    for (unsigned i = 0; i < lane->out_count; i++)
        if (!lane->outs[i].ended && lane->outs[i].writable)
            tcp_push_end(lane, &lane->outs[i]);
    for (unsigned i = 0; i < lane->in_count; i++)
        if (!lane->ins[i].sink.ended && lane->schedule->readable[i] &&
            !schedule_loop_failed(&lane->schedule->loop))
            read_end(lane, i);
    base->rx_done = lane->ins_whole == lane->in_count;
    base->tx_done = lane->outs_ended == lane->out_count && tcp_drained(lane);
    return lane->outs_ended == lane->out_count && !base->tx_done ? now_ns + DRAIN_LOOK_NS
                                                                 : CLOCK_NEVER;
}

/* Whoever waits for this rank, or for one that waits for it, is told at once. */
static void hang_up(const struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->out_count; i++)
        shutdown(lane->outs[i].fd, SHUT_RDWR);
    for (unsigned i = 0; i < lane->in_count; i++)
        shutdown(lane->ins[i].fd, SHUT_RDWR);
}

/* --- the worker's calls --- */

/* Room to write, many to be read, or a partner that has gone: only the kernel knows. */
static bool needs_events(struct tcp_schedule *schedule)
{
    const struct schedule_executor *executor = schedule->loop.executor;

    if (schedule->loop.lane->request.sleeps)
        return !schedule->waits;
    return executor->sends_left > 0 || executor->receives_left > FEW ||
           ++schedule->polls % EVENTS_TURNS == 0;
}

/* True: there is more to do at once. */
static bool run_steps(struct tcp_schedule *schedule, int64_t now_ns)
{
    enum schedule_progress progress = schedule_loop_run(&schedule->loop, now_ns);

    if (progress != SCHEDULE_WAITS)
        schedule->moved_ns = now_ns;
    return progress == SCHEDULE_BUSY;
}

static bool is_over(const struct schedule_loop *loop)
{
    return loop->executor->ended || schedule_loop_failed(loop);
}

static int64_t poll_schedule(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_schedule *schedule = lane->schedule;
    const struct schedule_executor *executor = schedule->loop.executor;
    struct lane *base = &lane->lane;
    bool further = false;
    int64_t wake_ns = CLOCK_NEVER;

    if (now_ns < base->request.phase->start_ns)
        return base->request.phase->start_ns;
    base->own_partner_timeout = !executor->ended;
    if (base->started_ns == 0)
        base->started_ns = schedule->moved_ns = now_ns;
    if (!executor->ended)
        further = run_steps(schedule, now_ns);
    if (!further && !is_over(&schedule->loop) && needs_events(schedule)) {
        (void)tcp_take_events(lane, now_ns);
        further = run_steps(schedule, now_ns);
    }
    if (!further && !is_over(&schedule->loop))
        look_at_partners(lane, now_ns);
    if (executor->ended)
        wake_ns = say_goodbye(lane, now_ns);
    if (schedule_loop_failed(&schedule->loop))
        hang_up(lane);
    return further ? now_ns : wake_ns;
}

/* Gives the core to whoever wants it and looks again, for a short while: to be woken costs more. */
static bool yielding_finds(struct tcp_lane *lane, int64_t now_ns, int64_t left_ns)
{
    const struct schedule_executor *executor = lane->schedule->loop.executor;
    bool exchanges = executor->send_count > 0 && executor->receive_count > 0;
    int64_t most_ns = LOOKS_NS, look_ns;

    for (int64_t waited_ns = 0; waited_ns < most_ns && waited_ns < left_ns; waited_ns += look_ns) {
        sched_yield();
        if (tcp_take_events(lane, now_ns) > 0)
            return true;
        look_ns = clock_now() - now_ns;
        now_ns += look_ns;
        most_ns = exchanges && look_ns <= ALONE_LOOK_NS ? PARTNERS_LOOKS_NS : LOOKS_NS;
    }
    return false;
}

bool tcp_schedule_wait(struct lane *lane, int64_t until_ns)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;
    int64_t now_ns, left_ns;

    /* The beginning and the end go by the clock, whose turns are shorter than epoll's. */
    if (l->schedule == NULL || lane->started_ns == 0 || is_over(&l->schedule->loop))
        return false;
    now_ns = clock_now();
    left_ns = until_ns - now_ns;
    l->schedule->waits = true;
    if (yielding_finds(l, now_ns, left_ns))
        return true;
    if (left_ns > 0)
        (void)tcp_await_events(l, now_ns, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
    return true;
}

const struct tcp_mode tcp_schedule_mode = {
    .make = make,
    .free = free_schedule,
    .start = start,
    .poll = poll_schedule,
    .receive = mark_readable,
    .in_events = EPOLLET,
    .wakes = true,
};
