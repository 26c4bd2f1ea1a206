/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Lane of frames (frame_lane.h) over a kernel socket, without the layout and the reception
 * of frames: the common part of the udp and packet transports.
 *
 * A sent frame is a head, followed behind its signature by a piece of the fill's table, which is
 * never copied.
 *
 * For a transport's one file, which defines the hooks below, rx_burst, rx_see, rx_unexpected and
 * rx_free (frame_hot.h), and its table. Its port begins with `struct socket_port`, its lane with
 * `struct socket_lane`.
 */
#ifndef ENGINE_KERNEL_SOCKET_LANE_H
#define ENGINE_KERNEL_SOCKET_LANE_H

#include "frame_lane.h"
#include "ip_port.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <sys/socket.h>

/** @brief Port of a kernel transport: one socket, through which all phases send and receive. */
struct socket_port {
    struct ip_port ip; /**< first member */
    uint32_t lanes;    /**< prepared lanes that are not destroyed */
    /** @brief Frame counts of a port, written by the worker and read after a phase. */
    uint64_t sent;            /**< frames that the kernel took */
    uint64_t received;        /**< frames that the kernel delivered */
    uint64_t forward_dropped; /**< forwarded frames for which there was no room */
};

/** @brief Address of a partner: a socket address for the kernel, or the headers of frames to it. */
struct socket_partner {
    union {
        struct sockaddr_storage name;
        uint8_t headers[ETH_HLEN];
    };
    socklen_t name_bytes; /**< 0: headers */
};

/** @brief Frame to be sent (`bytes` points to its first FRAME_TEMPLATE bytes), or received frame.
 */
struct socket_frame {
    uint8_t *bytes;
    uint32_t length;
    uint32_t place;                      /**< to be sent: index of the partner */
    const struct sockaddr_storage *from; /**< received: sender's address; NULL: in the frame */
};
typedef struct socket_frame *frame_t;

struct socket_lane {
    struct frame_lane frame; /**< first member */
    struct socket_port *port;
    bool announced;
    struct socket_frame inbox[FRAME_BURST_MAX];
    struct socket_frame outbox[FRAME_BURST_MAX];
    struct frame_template heads[FRAME_BURST_MAX];
    struct mmsghdr messages[FRAME_BURST_MAX];
    struct iovec pieces[FRAME_BURST_MAX * 2];
};

#include "frame_hot.h"

/* --- hooks of the transport --------------------------------------------------------------------*/

/** Store the address data of a partner (`resolve` in struct frame_ops). */
static int resolve(struct frame_lane *lane, uint32_t place, void *partner, uint64_t *line_bps,
                   struct err *err);
/** Return whether a frame has a partner's rank, but came from another address. */
static bool is_forged(const struct frame_lane *lane, uint16_t rank,
                      const struct socket_frame *frame);
/** Announce the port's address, so that switches learn it. */
static void announce(struct socket_lane *lane);

/* --- send --------------------------------------------------------------------------------------*/

static inline struct socket_lane *socket_of(struct frame_lane *lane)
{
    return (struct socket_lane *)lane;
}

static inline struct socket_partner *socket_partner(const struct frame_lane *lane, uint32_t place)
{
    return (struct socket_partner *)lane->partners + place;
}

/** Set the two pieces of a frame of `length` bytes: its head, and the fill behind it. */
static inline void socket_pieces(const struct frame_lane *lane, uint8_t *head, uint32_t length,
                                 struct iovec pieces[2])
{
    size_t front = lane->conf.offset + SIGNATURE_BYTES;

    pieces[0] = (struct iovec){head, front};
    pieces[1] = (struct iovec){(uint8_t *)(uintptr_t)fill_table()->bytes, length - front};
}

static inline struct msghdr socket_message(struct socket_partner *to, struct iovec *pieces,
                                           size_t count)
{
    return (struct msghdr){.msg_name = to->name_bytes > 0 ? &to->name : NULL,
                           .msg_namelen = to->name_bytes,
                           .msg_iov = pieces,
                           .msg_iovlen = count};
}

static inline int tx_take(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        frames[i] = &socket_of(lane)->outbox[i];
    return 0;
}

static inline uint8_t *tx_data(frame_t frame)
{
    return frame->bytes;
}

static inline void tx_set(struct frame_lane *lane, frame_t frame,
                          const struct sender_stream *stream, const struct frame_size *size,
                          uint64_t sequence)
{
    (void)lane;
    (void)sequence;
    frame->place = stream->place;
    frame->length = size->length;
}

static inline frame_t pass_frame(struct frame_lane *lane, const struct forward_entry *entry,
                                 uint32_t i, const struct sender_stream *stream)
{
    frame_t frame = &socket_of(lane)->outbox[i];

    frame->place = stream->place;
    frame->length = entry->length;
    return frame;
}

static inline uint8_t *pass_data(frame_t frame)
{
    return frame->bytes;
}

static inline void tx_put_back(struct frame_lane *lane, frame_t *frames, uint32_t count)
{
    (void)lane;
    (void)frames;
    (void)count;
}

/** Set the lane's error after a failed send, unless the kernel only lacked room or, at present, a
 * route. */
static void handle_send_error(struct socket_lane *lane, int code)
{
    if (code == EMSGSIZE || code == EINVAL || code == EPERM || code == EACCES || code == ENXIO)
        err_set(&lane->frame.lane.error, -code, "%s: the kernel does not send: %s",
                lane->frame.conf.name, strerror(code));
}

static inline uint32_t tx_burst(struct frame_lane *base, frame_t *frames, uint32_t count, bool pass)
{
    struct socket_lane *lane = socket_of(base);
    int taken;

    (void)pass;
    if (base->lane.error.text[0] != '\0')
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        struct iovec *pieces = &lane->pieces[(size_t)2 * i];

        socket_pieces(base, frames[i]->bytes, frames[i]->length, pieces);
        lane->messages[i].msg_hdr =
            socket_message(socket_partner(base, frames[i]->place), pieces, 2);
    }
    taken = sendmmsg(lane->port->ip.socket, lane->messages, count, MSG_DONTWAIT);
    if (taken < 0)
        handle_send_error(lane, errno);
    count = taken > 0 ? (uint32_t)taken : 0;
    lane->port->sent += count;
    return count;
}

/** Send one frame that is not part of a burst (`send_single` in struct frame_ops). */
static bool socket_send(struct frame_lane *lane, uint32_t place, struct frame_template *head,
                        uint32_t length)
{
    struct socket_port *port = socket_of(lane)->port;
    struct iovec pieces[2];
    struct msghdr message = socket_message(socket_partner(lane, place), pieces, 2);

    socket_pieces(lane, head->bytes, length, pieces);
    if (sendmsg(port->ip.socket, &message, MSG_DONTWAIT) < 0)
        return false;
    port->sent++;
    return true;
}

/* --- receive -----------------------------------------------------------------------------------*/

static inline void rx_prefetch(frame_t frame)
{
    (void)frame;
}

static inline bool is_filled(const struct frame_lane *lane, const struct signature *signature,
                             uint32_t length)
{
    uint32_t front = lane->conf.offset + SIGNATURE_BYTES;

    return length >= front && length - front <= FILL_BYTES &&
           memcmp(signature + 1, fill_table()->bytes, length - front) == 0;
}

static bool is_sound(const struct frame_lane *lane, const struct frame_seen *seen)
{
    return signature_sound(seen->signature) && is_filled(lane, seen->signature, seen->length);
}

HOT_INLINE bool rx_classify(struct frame_lane *lane, frame_t frame, unsigned kind,
                            enum hot_receive how, struct received *ours)
{
    const struct receiver *receiver = &lane->receiver;
    const struct signature *signature =
        (const struct signature *)(frame->bytes + lane->conf.offset);
    uint32_t flow;

    (void)kind;
    (void)how;
    if (frame->length > FILL_BYTES || lane->size_of_length[frame->length] == FRAME_NO_SIZE ||
        signature->tag != receiver->tag || signature->dst != receiver->rank ||
        !signature_sound(signature) || !is_filled(lane, signature, frame->length))
        return false;
    flow = receiver->flow_of[be16toh(signature->src)];
    if (flow == 0 || is_forged(lane, be16toh(signature->src), frame))
        return false;
    ours->signature = signature;
    ours->stream = &receiver->streams[flow - 1];
    ours->length = frame->length;
    return true;
}

static inline void rx_release(void *frame)
{
    (void)frame;
}

/* --- variants ----------------------------------------------------------------------------------*/

static int64_t send_due(struct frame_lane *lane, int64_t now_ns)
{
    return hot_send(lane, now_ns, HOT_MIXED);
}

static frame_send choose_send(const struct frame_lane *lane, const char **name)
{
    *name = lane->forwarder.queue != NULL ? "received ones" : "by sendmmsg";
    return lane->forwarder.queue != NULL ? hot_forward : send_due;
}

#define VARIANT(name, bits)                                                                        \
    static uint32_t name(struct frame_lane *lane, int64_t now_ns)                                  \
    {                                                                                              \
        return hot_receive(lane, now_ns, 0, (enum hot_receive)(bits));                             \
    }
VARIANT(receive, 0)
VARIANT(receive_timed, HOT_TIMED)
VARIANT(forward, HOT_FORWARD)
VARIANT(forward_timed, HOT_TIMED | HOT_FORWARD)

static frame_receive choose_receive(const struct frame_lane *lane)
{
    if (lane->prober.pingpong)
        return hot_receive_pingpong;
    if (lane->forwarder.queue != NULL)
        return lane->timing ? forward_timed : forward;
    return lane->timing ? receive_timed : receive;
}

/* --- a lane's life -----------------------------------------------------------------------------*/

static void write_headers(const struct frame_lane *lane, const struct frame_single *single,
                          struct frame_template *head)
{
    memcpy(head->bytes, socket_partner(lane, single->place)->headers, lane->conf.offset);
}

static const struct frame_ops socket_ops = {
    .resolve = resolve,
    .write_headers = write_headers,
    .choose_send = choose_send,
    .choose_receive = choose_receive,
    .send_single = socket_send,
    .is_sound = is_sound,
};

static void socket_destroy(struct lane *base)
{
    struct socket_lane *lane = (struct socket_lane *)base;

    lane->port->forward_dropped += lane->frame.forwarder.tail - lane->frame.forwarder.head;
    lane->port->lanes--;
    frame_lane_free(&lane->frame);
}

/** Complete the configuration `conf`, in which the transport has set frame sizes and header, and
 * make the lane. */
static int socket_make(struct socket_lane *lane, struct frame_conf *conf, struct err *err)
{
    struct socket_port *port = (struct socket_port *)lane->frame.lane.request.port;
    int rc;

    conf->ops = &socket_ops;
    conf->name = port->ip.conf->name;
    conf->partner_bytes = sizeof(struct socket_partner);
    conf->receive_burst = FRAME_BURST_MAX;
    conf->queues = 1;
    conf->every_max = UINT32_MAX;
    lane->frame.lane.wake_fd = port->ip.socket;
    lane->frame.forwarder.dropped = &port->forward_dropped;
    lane->port = port;
    lane->port->lanes++;
    for (uint32_t i = 0; i < FRAME_BURST_MAX; i++)
        lane->outbox[i].bytes = lane->heads[i].bytes;
    rc = frame_lane_make(&lane->frame, conf, err);
    if (rc == 0)
        frame_lane_build(&lane->frame);
    return rc;
}

#define SOCKET_DRAIN_BURSTS 1024 /* maximum, before a phase */

/* Discard received frames of earlier phases, unless another lane still uses the socket; then
 * announce the port. */
static int socket_connect(struct lane *base, int64_t now_ns, struct err *err)
{
    struct socket_lane *lane = (struct socket_lane *)base;
    int left = lane->port->lanes == 1 ? SOCKET_DRAIN_BURSTS : 0;

    (void)err;
    while (left-- > 0 && lane->frame.receive(&lane->frame, now_ns) > 0)
        ;
    if (!lane->announced)
        announce(lane);
    lane->announced = true;
    return 0;
}

#endif
