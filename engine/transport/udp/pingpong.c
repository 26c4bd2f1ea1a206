/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages there and back (../../traffic/pingpong.h): each is one datagram, of a signature and the
 * message's bytes, which the destination verifies and sends back with a tag of its own. One that is
 * larger than a frame goes by the kernel's fragments, as an application's would.
 */
#include "fill.h"
#include "lane.h"

#include <errno.h>
#include <string.h>

#define MESSAGE_MOST 65000u
#define PIECES (2 + MESSAGE_MOST / FILL_BYTES)

int udp_pingpong_make(struct udp_lane *lane, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    uint32_t most = phase->pingpong.max_size;

    for (uint32_t i = 0; most == 0 && i < phase->size_count; i++)
        if (phase->sizes[i] == 0 || phase->sizes[i] > MESSAGE_MOST)
            most = UINT32_MAX;
    if (most > MESSAGE_MOST)
        return err_set(err, -EINVAL, "%s: a message of udp is one datagram: 1 to %u bytes",
                       lane->port->ip.conf->name, MESSAGE_MOST);
    lane->plays = true;
    lane->lane.pingpong = &lane->game;
    return pingpong_make(&lane->game, &lane->lane);
}

/* A datagram of so many bytes of the message; whether the kernel took it. */
static bool send_message(struct udp_lane *lane, const struct sockaddr_storage *to,
                         struct signature *signature, uint32_t bytes)
{
    struct iovec pieces[PIECES] = {{signature, SIGNATURE_BYTES}};
    struct sockaddr_storage address = *to;
    struct msghdr message = {.msg_name = &address,
                             .msg_namelen = udp_address_bytes(to),
                             .msg_iov = pieces,
                             .msg_iovlen = 1};

    for (uint32_t left = bytes; left > 0; left -= (uint32_t)pieces[message.msg_iovlen++].iov_len)
        pieces[message.msg_iovlen] = (struct iovec){(uint8_t *)(uintptr_t)fill_table()->bytes,
                                                    left < FILL_BYTES ? left : FILL_BYTES};
    if (sendmsg(lane->port->ip.socket, &message, MSG_DONTWAIT) < 0) {
        lane->lane.request.count->send_refused++;
        return false;
    }
    lane->port->sent++;
    return true;
}

static bool filled(const uint8_t *at, uint32_t bytes)
{
    for (; bytes > FILL_BYTES; at += FILL_BYTES, bytes -= FILL_BYTES)
        if (memcmp(at, fill_table()->bytes, FILL_BYTES) != 0)
            return false;
    return memcmp(at, fill_table()->bytes, bytes) == 0;
}

/* Accounts a message, in as many frames as the interface's MTU makes of its datagram. */
static void account(const struct udp_lane *lane, struct flow_side *side, uint32_t bytes)
{
    uint32_t ip = lane->port->headers - UDP_HEADER;
    uint32_t length = UDP_HEADER + SIGNATURE_BYTES + bytes, room = lane->port->mtu - ip;
    uint32_t frames = length <= room ? 1 : (length + room / 8 * 8 - 1) / (room / 8 * 8);

    side->live.frames += frames;
    side->live.frame_bytes += length + (uint64_t)frames * (ip + UDP_ETHERNET + FRAME_FCS);
    side->live.payload_bytes += bytes;
    side->live.messages++;
}

/* --- the source's end --- */

static bool begin(struct lane *base, const struct pingpong_turn *turn, int64_t now_ns)
{
    struct udp_lane *lane = (struct udp_lane *)base;
    struct udp_stream *stream = &lane->streams[turn->flow];
    struct signature_time time = signature_time(turn->begun_ns - lane->start_ns);
    uint32_t bytes = pingpong_bytes(&lane->game, turn);
    struct signature signature = stream->signature;

    (void)now_ns;
    signature_stamp(&signature, (uint32_t)lane->game.flows[turn->flow].begun - 1, &time,
                    signature_base(&signature) + time.sum);
    if (send_message(lane, &stream->to, &signature, bytes))
        account(lane, stream->side, bytes);
    stream->side->intended = stream->side->live.frames;
    return false;
}

/* What comes is taken as it comes: here a message is only lost. */
static enum pingpong_state await(struct lane *base, const struct pingpong_turn *turn,
                                 int64_t now_ns, int64_t *at_ns)
{
    const struct udp_lane *lane = (const struct udp_lane *)base;

    (void)at_ns;
    return now_ns < pingpong_due_ns(&lane->game, turn) ? PINGPONG_AWAITED : PINGPONG_LOST;
}

static void take_answer(struct udp_lane *lane, const struct signature *signature, uint32_t bytes)
{
    uint16_t flow = lane->stream_of[be16toh(signature->src)];
    struct pingpong_turn *turn;

    lane->lane.request.count->probes_received++;
    if (flow-- == 0)
        return;
    turn = &lane->game.turns[lane->game.turn_count < lane->lane.request.send_count ? 0 : flow];
    /* One that was given up may come yet: it is no answer to the next. */
    if (turn->in_flight && turn->flow == flow && bytes == pingpong_bytes(&lane->game, turn) &&
        (int64_t)signature_ns(signature) == turn->begun_ns - lane->start_ns &&
        be32toh(signature->sequence) == (uint32_t)lane->game.flows[flow].begun - 1)
        pingpong_back(&lane->game, turn, clock_now());
}

/* --- the destination's end --- */

static void answer(struct udp_lane *lane, struct udp_source *source, const struct signature *came,
                   uint32_t bytes, int64_t now_ns)
{
    struct signature back = {
        .tag = htobe16(probe_answer_tag(be16toh(came->tag))), .src = came->dst, .dst = came->src};
    struct signature_time time = signature_time((int64_t)signature_ns(came));

    lane->lane.arrived_ns = now_ns;
    if (!udp_judge(lane, source, came, now_ns))
        return;
    signature_stamp(&back, be32toh(came->sequence), &time, signature_base(&back) + time.sum);
    lane->lane.request.count->probes_sent += send_message(lane, &source->from, &back, bytes);
    account(lane, source->side, bytes);
    source->side->last_ns = now_ns;
    if (source->side->first_ns == 0)
        source->side->first_ns = now_ns;
}

void udp_pingpong_take(struct udp_lane *lane, const uint8_t *datagram, uint32_t length,
                       int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;
    uint32_t bytes = length - SIGNATURE_BYTES;
    struct signature signature;
    uint16_t source, tag;
    bool whole, here;

    memcpy(&signature, datagram, sizeof signature);
    source = lane->source_of[be16toh(signature.src)];
    tag = be16toh(signature.tag);
    here = be16toh(signature.dst) == request->rank;
    whole = signature_sound(&signature) && filled(datagram + SIGNATURE_BYTES, bytes);
    if (here && tag == probe_answer_tag(request->phase->tag) && whole)
        take_answer(lane, &signature, bytes);
    else if (!here || tag != request->phase->tag || source == 0)
        request->count->foreign++;
    else if (!whole)
        lane->sources[source - 1].side->corrupted++;
    else
        answer(lane, &lane->sources[source - 1], &signature, bytes, now_ns);
}

/* --- the worker's call --- */

int64_t udp_pingpong_poll(struct udp_lane *lane, int64_t now_ns)
{
    static const struct pingpong_hooks hooks = {.send = begin, .await = await};
    struct lane *base = &lane->lane;
    int64_t next_ns = CLOCK_NEVER;
    bool ended = true;

    if (now_ns < pingpong_opens_ns(base->request.phase) && base->stop_ns > now_ns)
        return pingpong_opens_ns(base->request.phase);
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    if (pingpong_run(&lane->game, &hooks, now_ns))
        next_ns = now_ns;
    for (uint32_t i = 0; i < lane->game.turn_count; i++)
        if (lane->game.turns[i].in_flight) {
            int64_t due_ns = pingpong_due_ns(&lane->game, &lane->game.turns[i]);

            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
    for (uint32_t i = 0; ended && i < base->request.send_count; i++)
        ended = pingpong_ended(&lane->game, i);
    base->tx_done = ended;
    if (ended && base->stopped_ns == 0)
        base->stopped_ns = now_ns;
    return next_ns;
}
