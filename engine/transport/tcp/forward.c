/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A chain's middle rank: sends on what it receives, as it receives it (Dolly). Each connection in
 * has one out. When the next hop is slow the ring fills, nothing more is read, and TCP slows the
 * rank before. Corrupted bytes are counted here and sent on as they are.
 */
#include "clock.h"
#include "lane.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* A forwarder has no schedule of its own; what fills its ring sooner is looked after at once. */
#define LOOK_NS (200 * NS_PER_US)
#define BUSY_BYTES (TCP_READ_BYTES / 4)

static uint64_t held(const struct tcp_forward *ring)
{
    return ring->in - ring->out;
}

/* The bytes from `place` to the ring's edge, at most `most`. */
static size_t contiguous(uint64_t place, uint64_t most)
{
    uint64_t edge = TCP_READ_BYTES - place % TCP_READ_BYTES;

    return (size_t)(most < edge ? most : edge);
}

static void receive(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns)
{
    struct tcp_forward *ring = &in->forward;
    size_t room = contiguous(ring->in, TCP_READ_BYTES - held(ring));
    uint8_t *data = ring->ring + ring->in % TCP_READ_BYTES;
    ssize_t got;

    if (room == 0)
        return;
    got = recv(in->fd, data, room, MSG_DONTWAIT);
    tcp_received(lane, in, data, got, now_ns);
    if (got > 0)
        ring->in += (uint64_t)got;
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
    uint64_t bytes = held(&in->forward);

    if (in->sink.at.position > 0 && !in->sink.ended)
        bytes -= bytes % in->forward.segment;
    return bytes;
}

static void forward(struct tcp_lane *lane, struct tcp_in *in, struct tcp_out *out)
{
    struct tcp_forward *ring = &in->forward;
    uint64_t ready;

    while ((ready = ready_bytes(in)) > 0 && out->writable) {
        size_t bytes = contiguous(ring->out, ready);
        int more = bytes < ready ? MSG_MORE : 0;
        ssize_t sent = send(out->fd, ring->ring + ring->out % TCP_READ_BYTES, bytes,
                            MSG_DONTWAIT | MSG_NOSIGNAL | more);
        size_t taken = tcp_push_result(lane, out, sent, bytes);

        if (taken == 0)
            return;
        ring->out += taken;
        account_sent(out, &in->sink, taken);
    }
    if (in->sink.ended && held(ring) == 0) {
        shutdown(out->fd, SHUT_WR);
        tcp_out_ended(lane, out);
    }
}

static int64_t send_on(struct tcp_lane *lane, int64_t now_ns)
{
    struct flow_side *side = lane->flows[0].flow->side;
    const struct flow_side *from = lane->ins[0].flow->side;
    uint64_t before = side->live.payload_bytes;

    for (unsigned i = 0; i < lane->out_count; i++)
        if (!lane->outs[i].ended)
            forward(lane, &lane->ins[i], &lane->outs[i]);
    side->intended = from->live.payload_bytes + from->corrupted;
    if (side->live.payload_bytes > 0)
        tcp_side_time(side, now_ns);
    return now_ns + (side->live.payload_bytes - before > BUSY_BYTES ? 0 : LOOK_NS);
}

/* --- the mode --- */

static int make(struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->in_count; i++) {
        lane->ins[i].sink.onward = &lane->outs[i].source.script;
        lane->ins[i].forward.ring = malloc(TCP_READ_BYTES);
        if (lane->ins[i].forward.ring == NULL)
            return -ENOMEM;
    }
    return 0;
}

static void free_rings(struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->in_count; i++)
        free(lane->ins[i].forward.ring);
}

static void start(struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->in_count; i++)
        lane->ins[i].forward.segment = tcp_segment_bytes(lane->outs[i].fd);
}

const struct tcp_mode tcp_forward_mode = {
    .make = make,
    .free = free_rings,
    .start = start,
    .poll = tcp_stream_poll,
    .receive = receive,
    .send = send_on,
};
