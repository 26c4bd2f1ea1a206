/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hot path of packet. A frame to be sent is its head and a piece of the table of fill, which is
 * never copied here. Received ones are read where the kernel put them, and their slots of the ring
 * are given back behind each burst.
 */
#include "packet_lane.h"
#include "socket_hot.h"
#include "socket_options.h"

#include <errno.h>
#include <linux/if_packet.h>

/* --- send --------------------------------------------------------------------------------------*/

static void write_head(const struct packet_lane *lane, uint32_t place, uint16_t tag, uint8_t *head)
{
    const uint16_t type = htobe16(PACKET_TYPE);
    const struct packet_partner *partner =
        (const struct packet_partner *)lane->frame.partners + place;
    const struct signature signature = {
        .tag = tag, .src = lane->frame.receiver.own, .dst = htobe16(partner->rank)};

    memcpy(head, partner->mac, ETH_ALEN);
    memcpy(head + ETH_ALEN, lane->port->mac, ETH_ALEN);
    memcpy(head + 2 * ETH_ALEN, &type, sizeof type);
    memcpy(head + ETH_HLEN, &signature, sizeof signature);
}

static inline frame_t outbox_frames(struct frame_lane *lane)
{
    return ((struct packet_lane *)lane)->outbox;
}

/* That the device has no room, or no carrier just now, is no fault. */
static inline uint32_t tx_burst(struct frame_lane *base, frame_t *frames, uint32_t count, bool pass)
{
    struct packet_lane *lane = (struct packet_lane *)base;
    struct mmsghdr messages[FRAME_BURST_MAX];
    struct iovec pieces[FRAME_BURST_MAX][2];
    int taken;

    (void)pass;
    if (base->lane.error.text[0] != '\0')
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        socket_pieces(base, frames[i]->bytes, frames[i]->length, pieces[i]);
        messages[i].msg_hdr = (struct msghdr){.msg_iov = pieces[i], .msg_iovlen = 2};
    }
    taken = sendmmsg(lane->port->ip.socket, messages, count, MSG_DONTWAIT);
    if (taken < 0 && (errno == EMSGSIZE || errno == EINVAL || errno == EPERM || errno == ENXIO))
        err_set(&base->lane.error, -errno, "%s: the kernel does not send on '%s': %s",
                base->conf.name, lane->port->ip.iface, strerror(errno));
    count = taken > 0 ? (uint32_t)taken : 0;
    lane->port->sent += count;
    return count;
}

static bool send_head(struct packet_lane *lane, uint8_t head[PACKET_HEAD], uint32_t length)
{
    struct iovec pieces[2];
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};

    socket_pieces(&lane->frame, head, length, pieces);
    if (sendmsg(lane->port->ip.socket, &message, MSG_DONTWAIT) < 0)
        return false;
    lane->port->sent++;
    return true;
}

static bool send_single(struct frame_lane *base, const struct frame_single *single)
{
    struct packet_lane *lane = (struct packet_lane *)base;
    uint8_t head[PACKET_HEAD];
    struct signature *signature = (struct signature *)(head + ETH_HLEN);
    struct signature_time time = signature_time(single->stamp_ns);

    write_head(lane, single->place, htobe16(single->tag), head);
    signature_stamp(signature, single->sequence, &time, signature_base(signature) + time.sum);
    if (send_head(lane, head, single->frame_bytes - FRAME_FCS))
        return true;
    base->lane.request.count->send_refused++;
    return false;
}

void packet_announce(struct packet_lane *lane)
{
    uint8_t head[PACKET_HEAD];

    write_head(lane, 0, 0, head);
    memset(head, 0xff, ETH_ALEN);
    memset(head + ETH_HLEN, 0, SIGNATURE_BYTES);
    if (send_head(lane, head, lane->frame.conf.least - FRAME_FCS))
        lane->frame.lane.request.count->arp_nd_sent++;
}

/* --- receive -----------------------------------------------------------------------------------*/

static inline struct tpacket2_hdr *slot_of(const struct packet_ring *ring, uint32_t number)
{
    return (struct tpacket2_hdr *)(void *)(ring->slots + number % ring->count * ring->slot_bytes);
}

/* A frame to this port that came with a VLAN tag. The kernel takes the tag away before this socket
 * sees the frame, but says that it is another host's. */
static bool was_tagged(const struct packet_lane *lane, const struct tpacket2_hdr *slot)
{
    const struct sockaddr_ll *from =
        (const void *)((const uint8_t *)slot + TPACKET_ALIGN(sizeof *slot));

    return from->sll_pkttype == PACKET_OTHERHOST &&
           memcmp((const uint8_t *)slot + slot->tp_mac, lane->port->mac, ETH_ALEN) == 0;
}

/* A frame with a VLAN tag is not ours: its length is 0 here. */
static inline uint32_t rx_burst(struct frame_lane *base, frame_t *frames)
{
    struct packet_lane *lane = (struct packet_lane *)base;
    struct packet_ring *ring = &lane->port->ring;
    uint32_t count = 0;

    while (count < base->conf.receive_burst) {
        struct tpacket2_hdr *slot = slot_of(ring, ring->next);
        uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);

        if ((status & TP_STATUS_USER) == 0)
            break;
        lane->inbox[count] = (struct socket_frame){
            .bytes = (uint8_t *)slot + slot->tp_mac,
            .length = was_tagged(lane, slot) ? 0 : slot->tp_snaplen,
        };
        frames[count] = &lane->inbox[count];
        count++;
        ring->next = (ring->next + 1) % ring->count;
    }
    ring->held = count;
    lane->port->received += count;
    return count;
}

/* The slots of the burst are given back. */
static inline void rx_read(struct frame_lane *lane)
{
    struct packet_ring *ring = &((struct packet_lane *)lane)->port->ring;

    for (; ring->held > 0; ring->held--)
        __atomic_store_n(&slot_of(ring, ring->next + ring->count - ring->held)->tp_status,
                         TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

static bool is_forged(const struct frame_lane *lane, uint16_t rank,
                      const struct socket_frame *frame)
{
    (void)lane;
    (void)rank;
    (void)frame;
    return false; /* as dpdk, which takes a sound signature's word */
}

/* A frame whose signature is damaged is of the flow with its sender's address. */
static bool rx_see(const struct frame_lane *base, frame_t frame, struct frame_seen *seen)
{
    const struct packet_lane *lane = (const struct packet_lane *)base;
    const struct lane_request *request = &base->lane.request;
    const struct packet_partner *sources =
        (const struct packet_partner *)base->partners + request->send_count;

    *seen = (struct frame_seen){
        .signature = (const struct signature *)(frame->bytes + ETH_HLEN),
        .length = frame->length,
    };
    if (frame->length < PACKET_HEAD)
        return false;
    seen->ours = memcmp(frame->bytes, lane->port->mac, ETH_ALEN) == 0;
    for (uint32_t i = 0;
         !signature_sound(seen->signature) && seen->damaged == 0 && i < request->receive_count; i++)
        if (memcmp(sources[i].mac, frame->bytes + ETH_ALEN, ETH_ALEN) == 0)
            seen->damaged = i + 1;
    return true;
}

/* A frame to all is an announcement. */
static void rx_unexpected(struct frame_lane *lane, frame_t frame, int64_t now_ns)
{
    static const uint8_t all[ETH_ALEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct frame_seen seen;

    if (!rx_see(lane, frame, &seen))
        lane->lane.request.count->foreign++;
    else if (memcmp(frame->bytes, all, sizeof all) == 0)
        lane->lane.request.count->arp_nd_received++;
    else
        frame_lane_unexpected(lane, &seen, now_ns);
}

/* --- hooks of frame_lane.h --------------------------------------------------------------------*/

static void write_template(const struct frame_lane *lane, uint32_t place, uint16_t source,
                           const struct frame_size *size, struct frame_template *template)
{
    (void)source;
    (void)size; /* the fill is not written by the frame */
    write_head((const struct packet_lane *)lane, place, lane->receiver.tag, template->bytes);
}

static const char *send_name(const struct frame_lane *lane)
{
    (void)lane;
    return "by sendmmsg";
}

const struct frame_ops packet_ops = {
    .check_size = socket_check_size,
    .resolve = packet_resolve,
    .write_template = write_template,
    .choose_send = socket_choose_send,
    .choose_receive = socket_choose_receive,
    .send_name = send_name,
    .send_single = send_single,
    .is_sound = socket_is_sound,
};
