/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: the frames that are due go to the kernel by one call. With several flows each gets an
 * equal part of them, in turn. Frames of one flow and size make one message, which the device (or
 * the kernel before it) cuts into datagrams: UDP_SEGMENT. The fill is never copied here. A frame
 * that the kernel does not take never was: its sequence number is used again.
 */
#include "fill.h"
#include "lane.h"

#include <errno.h>
#include <string.h>

#define MESSAGE_BYTES 65000u      /* of one message, with all its frames */
#define AGAIN_NS (20 * NS_PER_US) /* when a full socket is tried again */

/* One frame, behind the last message's or in one of its own. */
static void add_frame(struct udp_lane *lane, struct udp_stream *stream, const struct udp_size *size,
                      const struct signature_time *time)
{
    struct udp_batch *batch = lane->batch;
    struct signature *signature = &batch->signatures[batch->frames];
    struct iovec *pieces = &batch->pieces[2 * (size_t)batch->frames];
    uint32_t last = batch->count - 1;

    if (batch->count == 0 || !lane->segments || batch->of[last].stream != stream ||
        batch->of[last].payload != size->payload || batch->of[last].frames == UDP_SEGMENTS_MAX ||
        (batch->of[last].frames + 1) * size->payload > MESSAGE_BYTES) {
        last = batch->count++;
        batch->of[last].stream = stream;
        batch->of[last].payload = size->payload;
        batch->of[last].frames = 0;
        batch->messages[last].msg_hdr = (struct msghdr){
            .msg_name = &stream->to,
            .msg_namelen = udp_address_bytes(&stream->to),
            .msg_iov = pieces,
        };
    }
    *signature = stream->signature;
    signature_stamp(signature, (uint32_t)stream->sequence++, time,
                    signature_base(signature) + time->sum);
    pieces[0] = (struct iovec){signature, SIGNATURE_BYTES};
    pieces[1] =
        (struct iovec){(uint8_t *)(uintptr_t)fill_table()->bytes, size->payload - SIGNATURE_BYTES};
    batch->messages[last].msg_hdr.msg_iovlen += 2;
    batch->of[last].frames++;
    batch->frames++;
}

/* Frames of the size whose turn it is, or of those that a forwarder got. */
static void add_frames(struct udp_lane *lane, struct udp_stream *stream, uint32_t count,
                       const struct signature_time *time)
{
    for (uint32_t i = 0; i < count; i++) {
        if (lane->forwards) {
            uint8_t place = lane->queue[lane->head++ % UDP_FORWARD_QUEUE];

            add_frame(lane, stream, &lane->sizes[place], time);
            continue;
        }
        add_frame(lane, stream, &lane->sizes[lane->order[stream->turn]], time);
        stream->turn = (uint16_t)(stream->turn + 1u < lane->order_count ? stream->turn + 1 : 0);
    }
    stream->left -= stream->left != UINT64_MAX ? count : 0;
}

/* Who has a turn, and how many turns there are. */
static struct udp_stream *stream_at(const struct udp_lane *lane, uint32_t at)
{
    return &lane->streams[lane->turns.flow != NULL ? lane->turns.flow[at] : at];
}

static uint32_t turn_count(const struct udp_lane *lane)
{
    return lane->turns.flow != NULL ? lane->turns.count : lane->lane.request.send_count;
}

/* Shares out the frames that are due: one flow's lie together, unless shares are unequal. */
static void compose(struct udp_lane *lane, uint32_t due, int64_t now_ns)
{
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    uint32_t turns = turn_count(lane);
    uint32_t train = due > turns && lane->turns.flow == NULL ? due / turns : 1;

    lane->batch->count = lane->batch->frames = 0;
    for (uint32_t tried = 0; due > 0 && tried < 2 * turns; tried++) {
        struct udp_stream *stream = stream_at(lane, lane->at);
        uint32_t count = train < due ? train : due;

        if (count > stream->left)
            count = (uint32_t)stream->left;
        add_frames(lane, stream, count, &time);
        due -= count;
        lane->at = lane->at + 1 < turns ? lane->at + 1 : 0;
    }
}

static void set_segment(struct udp_batch *batch, uint32_t i)
{
    struct msghdr *message = &batch->messages[i].msg_hdr;
    struct cmsghdr *header = &batch->controls[i].header;
    uint16_t payload = (uint16_t)batch->of[i].payload;

    *header = (struct cmsghdr){
        .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof payload)};
    memcpy(CMSG_DATA(header), &payload, sizeof payload);
    message->msg_control = header;
    message->msg_controllen = sizeof batch->controls[i];
}

static void count_sent(struct udp_lane *lane, uint32_t i, int64_t now_ns)
{
    struct flow_side *side = lane->batch->of[i].stream->side;
    uint32_t frames = lane->batch->of[i].frames, payload = lane->batch->of[i].payload;
    uint32_t frame_bytes = payload + lane->port->headers + UDP_ETHERNET + FRAME_FCS;
    bool by_bits = lane->lane.request.phase->load.rate_bps > 0;

    lane->port->sent += frames;
    side->live.frames += frames;
    side->live.frame_bytes += (uint64_t)frames * frame_bytes;
    side->live.payload_bytes += (uint64_t)frames * payload;
    side->last_ns = now_ns;
    if (side->first_ns == 0)
        side->first_ns = now_ns;
    if (!lane->forwards)
        pace_spend(&lane->pace,
                   (uint64_t)frames * (by_bits ? 8 * (frame_bytes + FRAME_OVERHEAD_L1) : 1));
}

/* The messages from `first` on were not taken. */
static void take_back(struct udp_lane *lane, uint32_t first)
{
    struct udp_batch *batch = lane->batch;

    for (uint32_t i = batch->count; i-- > first;) {
        struct udp_stream *stream = batch->of[i].stream;
        uint32_t frames = batch->of[i].frames;

        lane->lane.request.count->send_refused += frames;
        stream->sequence -= frames;
        stream->left += stream->left != UINT64_MAX ? frames : 0;
        if (lane->forwards)
            lane->head -= frames;
        else
            stream->turn =
                (uint16_t)((stream->turn + lane->order_count - frames % lane->order_count) %
                           lane->order_count);
        if (lane->turns.flow == NULL)
            lane->at = (uint32_t)(stream - lane->streams);
        else /* a turn has one frame */
            lane->at =
                (lane->at + lane->turns.count - frames % lane->turns.count) % lane->turns.count;
    }
}

/* What the kernel says when it takes nothing: that it has no room, or no way just now, is no fault.
 */
static void heed(struct udp_lane *lane, int code)
{
    if ((code == EIO || code == EINVAL) && lane->segments)
        lane->segments = false; /* this device's driver, or something on the way out, can't */
    else if (code == EMSGSIZE || code == EINVAL || code == EPERM || code == EACCES)
        err_set(&lane->lane.error, -code, "%s: the kernel does not send: %s",
                lane->port->ip.conf->name, strerror(code));
}

static uint32_t allowed(struct udp_lane *lane, int64_t now_ns)
{
    uint32_t waiting = lane->tail - lane->head;

    if (lane->forwards)
        return waiting < lane->burst ? waiting : lane->burst;
    return pace_allow(&lane->pace, now_ns, lane->cost, lane->burst);
}

int64_t udp_send(struct udp_lane *lane, int64_t now_ns)
{
    struct udp_batch *batch = lane->batch;
    uint32_t due = allowed(lane, now_ns);
    uint32_t sent = 0;
    int got;

    if (due == 0)
        return lane->forwards ? CLOCK_NEVER : pace_wake(&lane->pace, lane->cost);
    compose(lane, due, now_ns);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->of[i].frames > 1)
            set_segment(batch, i);
    got = sendmmsg(lane->port->ip.socket, batch->messages, batch->count, MSG_DONTWAIT);
    for (sent = 0; got > 0 && sent < (uint32_t)got; sent++)
        count_sent(lane, sent, now_ns);
    take_back(lane, sent);
    if (got < 0)
        heed(lane, errno);
    if (sent < batch->count)
        return now_ns + AGAIN_NS;
    return lane->forwards ? now_ns : pace_wake(&lane->pace, lane->cost);
}

bool udp_send_one(struct udp_lane *lane, const struct sockaddr_storage *to,
                  const struct signature *signature, const struct udp_size *size)
{
    struct signature copy = *signature;
    struct iovec pieces[2] = {
        {&copy, sizeof copy},
        {(uint8_t *)(uintptr_t)fill_table()->bytes, size->payload - SIGNATURE_BYTES}};
    struct sockaddr_storage address = *to;
    struct msghdr message = {
        .msg_name = &address,
        .msg_namelen = udp_address_bytes(to),
        .msg_iov = pieces,
        .msg_iovlen = 2,
    };

    if (sendmsg(lane->port->ip.socket, &message, MSG_DONTWAIT) < 0) {
        lane->lane.request.count->send_refused++;
        return false;
    }
    lane->port->sent++;
    if (lane->state == UDP_SENDS && !lane->forwards)
        pace_spend(&lane->pace, frame_prober_displaced(&lane->prober, size->cost));
    return true;
}

void udp_send_intended(struct udp_lane *lane, int64_t end_ns)
{
    uint32_t flows = lane->lane.request.send_count, turns = turn_count(lane);
    const struct phase *phase = lane->lane.request.phase;
    bool stream =
        phase->traffic == TRAFFIC_STREAM && (lane->forwards || udp_window_frames(phase) == 0);
    uint64_t missing =
        stream ? lane->pace.given_up + pace_due(&lane->pace, end_ns - 1, lane->cost) : 0;

    for (uint32_t i = 0; i < flows; i++) {
        struct udp_stream *next = &lane->streams[i];

        next->side->intended = next->side->live.frames + (stream ? 0 : next->left);
    }
    for (uint32_t i = 0; i < turns; i++) /* as they would be sent */
        stream_at(lane, (lane->at + i) % turns)->side->intended +=
            missing / turns + (i < missing % turns);
}
