/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A chain's middle rank: sends on what it receives, as it receives it (Dolly). Each connection in
 * has one out. When the next hop is slow the ring fills, nothing more is read, and TCP slows the
 * rank before. Corrupted bytes are counted here and sent on as they are.
 */
#include "clock.h"
#include "lane.h"

#include <errno.h>
#include <sys/socket.h>

/* A relay has no schedule of its own; what fills its ring sooner is looked after at once. */
#define LOOK_NS (200 * NS_PER_US)
#define BUSY_BYTES (TCP_READ_BYTES / 4)

static uint64_t held(const struct tcp_relay *relay)
{
    return relay->in - relay->out;
}

/* The bytes from `place` to the ring's edge, at most `most`. */
static size_t contiguous(uint64_t place, uint64_t most)
{
    uint64_t edge = TCP_READ_BYTES - place % TCP_READ_BYTES;

    return (size_t)(most < edge ? most : edge);
}

void tcp_relay_receive(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns)
{
    struct tcp_relay *relay = &in->relay;
    size_t room = contiguous(relay->in, TCP_READ_BYTES - held(relay));
    uint8_t *data = relay->ring + relay->in % TCP_READ_BYTES;
    ssize_t got;

    if (room == 0)
        return;
    got = recv(in->fd, data, room, MSG_DONTWAIT);
    tcp_received(lane, in, data, got, now_ns);
    if (got > 0)
        relay->in += (uint64_t)got;
}

/* The end mark passes through the ring like all else, but is no payload. */
static void account_sent(struct tcp_out *out, const struct tcp_sink *sink, size_t bytes)
{
    uint64_t left = sink->at.before + (sink->ending ? 0 : sink->at.position) -
                    tcp_cursor_bytes(&out->source.at);

    tcp_source_sent(&out->source, bytes < left ? bytes : (size_t)left, out->flow->flow->side);
}

/* What can be sent on: in the middle of a block whole segments, for more is sure to come. */
static uint64_t ready_bytes(const struct tcp_in *in)
{
    uint64_t bytes = held(&in->relay);

    if (in->sink.at.position > 0 && !in->sink.ended)
        bytes -= bytes % in->relay.segment;
    return bytes;
}

static void forward(struct tcp_lane *lane, struct tcp_in *in, struct tcp_out *out)
{
    struct tcp_relay *relay = &in->relay;
    uint64_t ready;

    while ((ready = ready_bytes(in)) > 0 && out->writable) {
        size_t bytes = contiguous(relay->out, ready);
        int more = bytes < ready ? MSG_MORE : 0;
        ssize_t sent = send(out->fd, relay->ring + relay->out % TCP_READ_BYTES, bytes,
                            MSG_DONTWAIT | MSG_NOSIGNAL | more);
        size_t taken = tcp_push_result(lane, out, sent, bytes);

        if (taken == 0)
            return;
        relay->out += taken;
        account_sent(out, &in->sink, taken);
    }
    if (in->sink.ended && held(relay) == 0) {
        shutdown(out->fd, SHUT_WR);
        out->ended = true;
        out->flow->open--;
        lane->outs_ended++;
    }
}

int64_t tcp_relay_send(struct tcp_lane *lane, int64_t now_ns)
{
    struct flow_side *side = lane->flows[0].flow->side;
    const struct flow_side *from = lane->ins[0].flow->side;
    uint64_t before = side->live.payload_bytes;

    for (unsigned i = 0; i < lane->out_count; i++)
        if (!lane->outs[i].ended)
            forward(lane, &lane->ins[i], &lane->outs[i]);
    side->intended = from->live.payload_bytes + from->corrupted;
    if (side->live.payload_bytes > 0) {
        side->first_ns = side->first_ns ? side->first_ns : now_ns;
        side->last_ns = now_ns;
    }
    return now_ns + (side->live.payload_bytes - before > BUSY_BYTES ? 0 : LOOK_NS);
}
