/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hot path of udp. Frames of one flow and size that follow each other make one message, which
 * the device (or the kernel before it) cuts into datagrams: UDP_SEGMENT. What comes is cut into the
 * datagrams that the kernel had put together: UDP_GRO. The fill is never copied here.
 *
 * A datagram with a partner's rank counts only if it came from the partner's socket. What is
 * damaged on its way has a wrong UDP checksum as a rule: the kernel drops it, and the port counts
 * it as an error.
 */
#include "socket_hot.h"
#include "udp_lane.h"

#include <errno.h>

#define MESSAGE_BYTES 65000u /* of one message, with all its frames */
#define SEGMENTS_MAX 64u     /* frames of one; the kernel's limit before Linux 6.9 */

static inline struct udp_lane *udp_of(struct frame_lane *lane)
{
    return (struct udp_lane *)lane;
}

/* --- send --------------------------------------------------------------------------------------*/

static inline frame_t outbox_frames(struct frame_lane *lane)
{
    return udp_of(lane)->outbox->frames;
}

/* Has the message cut into frames of so many bytes. */
static void set_segment(struct msghdr *message, union udp_control *control, uint32_t length)
{
    uint16_t payload = (uint16_t)length;

    control->header = (struct cmsghdr){
        .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof payload)};
    memcpy(CMSG_DATA(&control->header), &payload, sizeof payload);
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(sizeof payload);
}

/* The message of frames[0] and of those behind it that can go with it; returns how many. */
static uint32_t compose(struct udp_lane *lane, frame_t *frames, uint32_t count, uint32_t number)
{
    struct udp_outbox *outbox = lane->outbox;
    struct sockaddr_storage *to = udp_partner(&lane->frame, frames[0]->place);
    struct msghdr *message = &outbox->messages[number].msg_hdr;
    struct iovec *pieces = &outbox->pieces[2 * (size_t)(frames[0] - outbox->frames)];
    uint32_t length = frames[0]->length;
    uint32_t most = lane->segments ? MESSAGE_BYTES / length : 1, together = 0;

    most = most < SEGMENTS_MAX ? most : SEGMENTS_MAX;
    while (together < count && (together == 0 || together < most) &&
           frames[together]->place == frames[0]->place && frames[together]->length == length) {
        socket_pieces(&lane->frame, frames[together]->bytes, length, &pieces[(size_t)2 * together]);
        together++;
    }
    *message = (struct msghdr){.msg_name = to,
                               .msg_namelen = udp_address_bytes(to),
                               .msg_iov = pieces,
                               .msg_iovlen = 2 * (size_t)together};
    if (together > 1)
        set_segment(message, &outbox->controls[number], length);
    return together;
}

/* What the kernel says when it takes nothing: that it has no room, or no way just now, is no fault.
 */
static void handle_send_error(struct udp_lane *lane, int code)
{
    if ((code == EIO || code == EINVAL) && lane->segments)
        lane->segments = false; /* this device's driver, or something on the way out, can't */
    else if (code == EMSGSIZE || code == EINVAL || code == EPERM || code == EACCES)
        err_set(&lane->frame.lane.error, -code, "%s: the kernel does not send: %s",
                lane->port->ip.conf->name, strerror(code));
}

static inline uint32_t tx_burst(struct frame_lane *base, frame_t *frames, uint32_t count, bool pass)
{
    struct udp_lane *lane = udp_of(base);
    uint32_t ends[FRAME_BURST_MAX]; /* frames up to the end of each message */
    uint32_t messages = 0;
    int taken;

    (void)pass;
    if (base->lane.error.text[0] != '\0')
        return 0;
    for (uint32_t at = 0; at < count; ends[messages++] = at)
        at += compose(lane, frames + at, count - at, messages);
    taken = sendmmsg(lane->port->ip.socket, lane->outbox->messages, messages, MSG_DONTWAIT);
    if (taken < 0)
        handle_send_error(lane, errno);
    count = taken > 0 ? ends[taken - 1] : 0;
    lane->port->sent += count;
    return count;
}

bool udp_send_single(struct frame_lane *base, const struct frame_single *single)
{
    struct udp_lane *lane = udp_of(base);
    struct signature signature = {.tag = htobe16(single->tag),
                                  .src = base->receiver.own,
                                  .dst =
                                      htobe16((uint16_t)frame_partner_rank(base, single->place))};
    struct signature_time time = signature_time(single->stamp_ns);
    struct sockaddr_storage *to = udp_partner(base, single->place);
    struct iovec pieces[2];
    struct msghdr message = {
        .msg_name = to, .msg_namelen = udp_address_bytes(to), .msg_iov = pieces, .msg_iovlen = 2};

    signature_stamp(&signature, single->sequence, &time, signature_base(&signature) + time.sum);
    socket_pieces(base, (uint8_t *)&signature, single->frame_bytes - base->conf.outside, pieces);
    if (sendmsg(lane->port->ip.socket, &message, MSG_DONTWAIT) < 0) {
        base->lane.request.count->send_refused++;
        return false;
    }
    lane->port->sent++;
    return true;
}

/* --- receive -----------------------------------------------------------------------------------*/

/* The length of each of a message's datagrams, but for the last, which may be shorter. */
static uint32_t segment_of(struct msghdr *message, uint32_t length)
{
    int segment = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
            memcpy(&segment, CMSG_DATA(c), sizeof segment);
    return segment > 0 ? (uint32_t)segment : length;
}

static void take_messages(struct udp_lane *lane, uint32_t most)
{
    struct udp_inbox *inbox = lane->inbox;
    int count;

    for (uint32_t i = 0; i < most; i++) {
        inbox->messages[i].msg_hdr.msg_namelen = sizeof inbox->from[i];
        inbox->messages[i].msg_hdr.msg_controllen = sizeof inbox->controls[i];
    }
    count = recvmmsg(lane->port->ip.socket, inbox->messages, most, MSG_DONTWAIT, NULL);
    inbox->count = count > 0 ? (uint32_t)count : 0;
    inbox->next = inbox->at = 0;
}

static inline uint32_t rx_burst(struct frame_lane *base, frame_t *frames)
{
    struct udp_lane *lane = udp_of(base);
    struct udp_inbox *inbox = lane->inbox;
    uint32_t count = 0;

    if (inbox->next == inbox->count)
        take_messages(lane, base->conf.receive_burst);
    while (inbox->next < inbox->count && count < base->conf.receive_burst) {
        uint32_t i = inbox->next, length = inbox->messages[i].msg_len;
        uint32_t segment = segment_of(&inbox->messages[i].msg_hdr, length);
        uint32_t part = length - inbox->at < segment ? length - inbox->at : segment;

        inbox->frames[count] =
            (struct socket_frame){inbox->bytes[i] + inbox->at, part, 0, &inbox->from[i]};
        frames[count] = &inbox->frames[count];
        count++;
        inbox->at += part;
        if (inbox->at < length)
            continue;
        inbox->at = 0;
        inbox->next++;
    }
    lane->port->received += count;
    return count;
}

static bool same_socket(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
    const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
    const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return a6->sin6_port == b6->sin6_port &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

/* Whether a datagram names a partner's rank, but came from another socket. */
static bool is_forged(const struct frame_lane *base, uint16_t rank,
                      const struct socket_frame *frame)
{
    uint32_t source = base->receiver.flow_of[rank], destination = base->sender.flow_of[rank];

    if (source > 0)
        return !same_socket(udp_partner(base, base->lane.request.send_count + source - 1),
                            frame->from);
    return destination > 0 && !same_socket(udp_partner(base, destination - 1), frame->from);
}

static bool rx_see(const struct frame_lane *lane, frame_t frame, struct frame_seen *seen)
{
    const struct signature *signature = (const struct signature *)frame->bytes;

    if (frame->length < SIGNATURE_BYTES)
        return false;
    *seen = (struct frame_seen){
        .signature = signature,
        .length = frame->length,
        .ours = !is_forged(lane, be16toh(signature->src), frame),
    };
    return true;
}

/* An empty datagram is an announcement. */
static void rx_unexpected(struct frame_lane *lane, frame_t frame, int64_t now_ns)
{
    struct port_count *count = lane->lane.request.count;
    struct frame_seen seen;

    if (rx_see(lane, frame, &seen) && seen.ours) {
        frame_lane_unexpected(lane, &seen, now_ns);
        return;
    }
    count->arp_nd_received += frame->length == 0;
    count->foreign += frame->length > 0;
}

static inline void rx_read(struct frame_lane *lane)
{
    (void)lane;
}

/* --- hooks of frame_lane.h --------------------------------------------------------------------*/

bool udp_is_sound(const struct frame_lane *lane, const struct frame_seen *seen)
{
    return socket_is_sound(lane, seen);
}

frame_send udp_choose_send(const struct frame_lane *lane)
{
    return socket_choose_send(lane);
}

frame_receive udp_choose_receive(const struct frame_lane *lane)
{
    return socket_choose_receive(lane);
}
