/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over tcp (doc/schedules.md, ../stepper.h). A message is a header of 16 bytes, and the
 * payload straight from and into the rank's memory: one system call each where the kernel has room
 * and the bytes are there. First is written what is to be sent, then is read what is expected, and
 * no more: what a partner has sent ahead waits in the kernel until its step has come.
 *
 * Few messages are looked for by reading; among many the kernel says which are there.
 */
#include "clock.h"
#include "lane.h"
#include "schedule_executor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FEW 2u                    /* messages that are looked for by reading */
#define TURNS 64u                 /* in one poll */
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
#define MEETING 0x80u  /* in a header's stream: a barrier's message, with its bits */

/* A message on its way. */
struct transit {
    struct tcp_block_header header;
    uint64_t moved; /* of header and payload */
};

struct tcp_steps {
    struct stepper *stepper;
    struct transit *sends; /* of the present step, as the stepper's */
    struct transit *receives;
    bool *readable;   /* by connection in, as far as is known */
    int64_t moved_ns; /* when it last got further, or looked who is there */
    bool rests;       /* the worker comes by way of tcp_steps_rest */
    unsigned polls;
};

/* --- preparation --- */

int tcp_steps_check(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    const char *port = request->port->ip.conf->name;

    if (phase->traffic != TRAFFIC_SCHEDULE)
        return 0;
    if (phase->tcp.streams > 1)
        return err_set(err, -EINVAL,
                       "%s: a step's message goes by one stream, not %u: leave streams_per_flow "
                       "out",
                       port, phase->tcp.streams);
    if (phase->tcp.zero_copy)
        return err_set(err, -EINVAL, "%s: messages of steps are copied: leave zero_copy out", port);
    return 0;
}

static void mark_readable(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns)
{
    (void)now_ns;
    lane->steps->readable[in - lane->ins] = true;
}

int tcp_steps_make(struct tcp_lane *lane)
{
    struct tcp_steps *steps = calloc(1, sizeof *steps);

    if (steps == NULL)
        return -ENOMEM;
    lane->steps = steps;
    lane->poll = tcp_steps_poll;
    lane->receive = mark_readable;
    steps->stepper = lane->lane.request.stepper;
    steps->sends = calloc((size_t)steps->stepper->most_sends + 1, sizeof *steps->sends);
    steps->receives = calloc((size_t)steps->stepper->most_receives + 1, sizeof *steps->receives);
    steps->readable = calloc((size_t)lane->in_count + 1, sizeof *steps->readable);
    return steps->sends == NULL || steps->receives == NULL || steps->readable == NULL ? -ENOMEM : 0;
}

void tcp_steps_free(struct tcp_lane *lane)
{
    if (lane->steps == NULL)
        return;
    free(lane->steps->sends);
    free(lane->steps->receives);
    free(lane->steps->readable);
    free(lane->steps);
}

/* A partner's process that dies closes its connections. Of a host or a way that is gone only the
 * kernel can tell, if it is told to ask: within half a minute. Whoever receives from such a rank,
 * and of each rank somebody does, ends then, and so do those who wait for it. */
void tcp_steps_start(struct tcp_lane *lane)
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

static struct tcp_block_header make_header(const struct tcp_lane *lane,
                                           const struct stepper_message *message,
                                           const struct tcp_script *script, uint64_t sequence)
{
    const struct stepper *stepper = lane->steps->stepper;

    return (struct tcp_block_header){
        .kind = TCP_KIND_BLOCK,
        .stream = stepper->meeting ? (uint8_t)(MEETING | stepper->bits) : 0,
        .tag = htons(script->tag),
        .sequence = htonl((uint32_t)sequence),
        .length = htonl((uint32_t)message->bytes),
        .src = htons(script->src),
        .dst = htons(script->dst),
    };
}

/* What is left of a message, `most` bytes of its payload at most. Returns how many bytes that is.
 */
static size_t fill(const struct stepper *stepper, struct msghdr *call, struct transit *transit,
                   const struct stepper_message *message, size_t most)
{
    struct iovec *iov = call->msg_iov;
    bool headed = transit->moved >= TCP_HEADER_BYTES;
    size_t head = headed ? 0 : TCP_HEADER_BYTES - transit->moved;
    uint64_t payload = headed ? transit->moved - TCP_HEADER_BYTES : 0;
    uint64_t left = message->bytes - payload;

    if (left > most)
        left = most;
    call->msg_iovlen = 0;
    if (head > 0)
        iov[call->msg_iovlen++] =
            (struct iovec){(uint8_t *)&transit->header + transit->moved, head};
    if (left > 0)
        iov[call->msg_iovlen++] = (struct iovec){stepper_at(stepper, message) + payload, left};
    return head + left;
}

/* Bytes of payload among those that moved a message on. */
static uint64_t advance(struct transit *transit, size_t bytes)
{
    uint64_t before = transit->moved;

    transit->moved += bytes;
    if (before >= TCP_HEADER_BYTES)
        return bytes;
    return transit->moved > TCP_HEADER_BYTES ? transit->moved - TCP_HEADER_BYTES : 0;
}

static bool is_through(const struct transit *transit, const struct stepper_message *message)
{
    return transit->moved == TCP_HEADER_BYTES + message->bytes;
}

/* A message waits for the one before it on the same connection. */
static bool waits(const struct stepper_message *messages, const struct transit *transits,
                  uint32_t place)
{
    uint32_t after = messages[place].after;

    return after != STEPPER_NONE && !is_through(&transits[after], &messages[after]);
}

/* Its place in the stream of the connection, which the end mark tells. */
static void next_place(struct tcp_cursor *at, const struct stepper_message *message)
{
    at->before += TCP_HEADER_BYTES + message->bytes;
    at->sequence++;
}

/* Whether something was written. */
static bool push(struct tcp_lane *lane, uint32_t place, int64_t now_ns)
{
    struct tcp_steps *steps = lane->steps;
    const struct stepper_message *message = &steps->stepper->sends[place];
    struct tcp_out *out = &lane->outs[message->flow];
    struct transit *transit = &steps->sends[place];
    struct flow_side *side = out->flow->flow->side;
    struct iovec iov[2];
    struct msghdr call = {.msg_iov = iov};
    size_t asked, taken;
    uint64_t payload;

    if (transit->moved == 0)
        transit->header = make_header(lane, message, &out->source.script, out->source.at.sequence);
    asked = fill(steps->stepper, &call, transit, message, WRITE_BYTES);
    taken = tcp_push_result(lane, out, sendmsg(out->fd, &call, MSG_DONTWAIT | MSG_NOSIGNAL), asked);
    if (taken == 0)
        return false;
    payload = advance(transit, taken);
    stepper_account(steps->stepper, side, payload, is_through(transit, message));
    side->intended = side->live.payload_bytes;
    stepper_note_time(side, now_ns);
    if (is_through(transit, message)) {
        next_place(&out->source.at, message);
        steps->stepper->sends_left--;
    }
    return true;
}

/* A whole header has come: is it the message that is due? */
static bool judge(struct tcp_lane *lane, const struct tcp_in *in,
                  const struct stepper_message *message, const struct tcp_block_header *header)
{
    struct stepper *stepper = lane->steps->stepper;
    struct tcp_block_header due =
        make_header(lane, message, &in->sink.script, in->sink.at.sequence);

    if (stepper->meeting && (header->stream & MEETING) != 0) {
        stepper_hear(stepper, header->stream & (uint8_t)~MEETING);
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

static void took(struct tcp_lane *lane, uint32_t place, size_t bytes)
{
    struct tcp_steps *steps = lane->steps;
    const struct stepper_message *message = &steps->stepper->receives[place];
    struct tcp_in *in = &lane->ins[message->flow];
    struct transit *transit = &steps->receives[place];
    bool headed = transit->moved >= TCP_HEADER_BYTES;
    uint64_t payload = advance(transit, bytes);

    if (!headed && transit->moved >= TCP_HEADER_BYTES &&
        !judge(lane, in, message, &transit->header))
        return;
    stepper_account(steps->stepper, in->flow->side, payload, is_through(transit, message));
    if (!is_through(transit, message))
        return;
    next_place(&in->sink.at, message);
    steps->stepper->receives_left--;
}

/* Whether something was read. */
static bool pull(struct tcp_lane *lane, uint32_t place, int64_t now_ns)
{
    struct tcp_steps *steps = lane->steps;
    const struct stepper_message *message = &steps->stepper->receives[place];
    struct tcp_in *in = &lane->ins[message->flow];
    struct iovec iov[2];
    struct msghdr call = {.msg_iov = iov};
    ssize_t got;

    fill(steps->stepper, &call, &steps->receives[place], message, SIZE_MAX);
    got = recvmsg(in->fd, &call, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        steps->readable[message->flow] = errno == EINTR;
        return false;
    }
    if (got <= 0) {
        tcp_fault_in(lane, in, got < 0 ? errno : 0);
        return false;
    }
    stepper_note_time(in->flow->side, now_ns);
    lane->lane.arrived_ns = now_ns;
    took(lane, place, (size_t)got);
    return true;
}

/* --- a step --- */

static bool push_all(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_steps *steps = lane->steps;
    const struct stepper_message *messages = steps->stepper->sends;
    bool moved = false;

    for (uint32_t i = 0; steps->stepper->sends_left > 0 && i < steps->stepper->send_count; i++)
        if (lane->outs[messages[i].flow].writable && !is_through(&steps->sends[i], &messages[i]) &&
            !waits(messages, steps->sends, i))
            moved = push(lane, i, now_ns) || moved;
    return moved;
}

static bool pull_all(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_steps *steps = lane->steps;
    const struct stepper_message *messages = steps->stepper->receives;
    bool few = steps->stepper->receives_left <= FEW;
    bool moved = false;

    for (uint32_t i = 0; steps->stepper->receives_left > 0 && i < steps->stepper->receive_count;
         i++)
        if ((few || steps->readable[messages[i].flow]) &&
            !is_through(&steps->receives[i], &messages[i]) && !waits(messages, steps->receives, i))
            moved = pull(lane, i, now_ns) || moved;
    return moved;
}

static void open_step(struct tcp_steps *steps)
{
    const struct stepper *stepper = steps->stepper;

    for (uint32_t i = 0; i < stepper->send_count; i++)
        steps->sends[i].moved = 0;
    for (uint32_t i = 0; i < stepper->receive_count; i++)
        steps->receives[i].moved = 0;
}

/* All that was open is through. */
static void go_on(struct tcp_lane *lane)
{
    struct tcp_steps *steps = lane->steps;
    enum stepper_state state = stepper_next(steps->stepper);

    if (state == STEPPER_OPEN)
        open_step(steps);
    if (state == STEPPER_WRONG)
        lane->lane.error = steps->stepper->error;
}

static bool is_broken(const struct tcp_lane *lane)
{
    return lane->lane.error.text[0] != '\0';
}

/* Of a wait that lasts: connections that have broken, whether or not a step reads them now. */
static void look_at_partners(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_steps *steps = lane->steps;
    uint8_t byte;

    if (now_ns - steps->moved_ns < PARTNERS_NS)
        return;
    steps->moved_ns = now_ns;
    for (unsigned i = 0; i < lane->in_count && !is_broken(lane); i++) {
        ssize_t got = recv(lane->ins[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            tcp_fault_in(lane, &lane->ins[i], got < 0 ? errno : 0);
    }
}

/* As far as it gets; true: further at once. */
static bool run_steps(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_steps *steps = lane->steps;

    for (unsigned turn = 0; turn < TURNS; turn++) {
        bool pushed, pulled;

        if (is_broken(lane)) /* of a wrong result nothing follows */
            return false;
        if (stepper_is_through(steps->stepper))
            go_on(lane);
        steps->moved_ns = steps->stepper->busy ? now_ns : steps->moved_ns;
        if (steps->stepper->busy)
            return true;
        if (steps->stepper->ended || is_broken(lane))
            return false;
        pushed = push_all(lane, now_ns);
        pulled = pull_all(lane, now_ns);
        if (pushed || pulled)
            steps->moved_ns = now_ns;
        if (is_broken(lane))
            return false;
        if (!pushed && !pulled && !stepper_is_through(steps->stepper))
            return false;
    }
    return true;
}

/* --- the end --- */

/* Behind the last barrier comes nothing but the partner's goodbye. */
static void read_end(struct tcp_lane *lane, unsigned place)
{
    struct tcp_in *in = &lane->ins[place];
    struct tcp_end_mark mark;
    ssize_t got = recv(in->fd, &mark, sizeof mark, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        lane->steps->readable[place] = false;
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
        if (!lane->ins[i].sink.ended && lane->steps->readable[i] && !is_broken(lane))
            read_end(lane, i);
    base->received_all = lane->ins_whole == lane->in_count;
    base->sent_all = lane->outs_ended == lane->out_count && tcp_drained(lane);
    return lane->outs_ended == lane->out_count && !base->sent_all ? now_ns + DRAIN_LOOK_NS
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
static bool needs_events(struct tcp_steps *steps, const struct tcp_lane *lane)
{
    if (lane->lane.request.sleeps)
        return !steps->rests;
    return steps->stepper->sends_left > 0 || steps->stepper->receives_left > FEW ||
           ++steps->polls % EVENTS_TURNS == 0;
}

int64_t tcp_steps_poll(struct tcp_lane *lane, int64_t now_ns)
{
    struct tcp_steps *steps = lane->steps;
    struct lane *base = &lane->lane;
    bool further = false;
    int64_t wake_ns = CLOCK_NEVER;

    if (now_ns < base->request.phase->start_ns)
        return base->request.phase->start_ns;
    base->patient = !steps->stepper->ended;
    if (base->started_ns == 0) {
        base->started_ns = steps->moved_ns = now_ns;
        stepper_begin(steps->stepper);
        open_step(steps);
    }
    if (!steps->stepper->ended)
        further = run_steps(lane, now_ns);
    if (!further && !is_broken(lane) && !steps->stepper->ended && needs_events(steps, lane)) {
        (void)tcp_take_events(lane, now_ns);
        further = run_steps(lane, now_ns);
    }
    if (!further && !is_broken(lane) && !steps->stepper->ended)
        look_at_partners(lane, now_ns);
    if (steps->stepper->ended)
        wake_ns = say_goodbye(lane, now_ns);
    if (is_broken(lane))
        hang_up(lane);
    return further ? now_ns : wake_ns;
}

/* Gives the core to whoever wants it and looks again, for a short while: to be woken costs more. */
static bool yielding_finds(struct tcp_lane *lane, int64_t now_ns, int64_t left_ns)
{
    const struct stepper *stepper = lane->steps->stepper;
    bool exchanges = stepper->send_count > 0 && stepper->receive_count > 0;
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

bool tcp_steps_rest(struct lane *lane, int64_t until_ns)
{
    struct tcp_lane *l = (struct tcp_lane *)lane;
    int64_t now_ns, left_ns;

    /* The beginning and the end go by the clock, whose turns are shorter than epoll's. */
    if (l->steps == NULL || lane->started_ns == 0 || l->steps->stepper->ended || is_broken(l))
        return false;
    now_ns = clock_now();
    left_ns = until_ns - now_ns;
    l->steps->rests = true;
    if (yielding_finds(l, now_ns, left_ns))
        return true;
    if (left_ns > 0)
        (void)tcp_await_events(l, now_ns, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
    return true;
}
