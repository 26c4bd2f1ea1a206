/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: messages are taken by one call, each cut into the datagrams that the kernel had put
 * together (UDP_GRO), and each of these verified, judged by its sequence and accounted.
 *
 * A datagram with a partner's rank counts only if it came from the partner's socket. It counts
 * once: delivered (in order or reordered), duplicated, late, corrupted,
 * misdelivered, a probe, an announcement, or foreign. What is damaged on its way has a wrong UDP
 * checksum as a rule: the kernel drops it, and the port counts it as an error.
 */
#include "fill.h"
#include "lane.h"

#include <string.h>

/* The size of a datagram of this phase whose fill is whole; NULL: it is none. */
static const struct udp_size *whole(const struct udp_lane *lane, const uint8_t *bytes,
                                    uint32_t length)
{
    for (uint32_t i = 0; i < lane->size_count; i++)
        if (lane->sizes[i].payload == length)
            return memcmp(bytes + SIGNATURE_BYTES, fill_table()->bytes, length - SIGNATURE_BYTES) ==
                           0
                       ? &lane->sizes[i]
                       : NULL;
    return NULL;
}

bool udp_judge(const struct udp_lane *lane, struct udp_source *source,
               const struct signature *signature, int64_t now_ns)
{
    struct flow_side *side = source->side;
    uint64_t next = source->sequence.next;
    uint32_t wire = be32toh(signature->sequence);
    int32_t ahead = (int32_t)(wire - (uint32_t)next);
    struct reordered_frame frame = {.number = sequence_unwrap(next, wire),
                                    .arrival = side->live.frames + 1};
    int64_t stamp_ns;

    if (sequence_follows(&source->sequence, wire))
        return true;
    stamp_ns =
        sequence_limit_stamp(&lane->limit, signature_ns(signature), source->stamp_ns, now_ns);
    if (ahead > 0 && !sequence_limit_allows(&lane->limit, ahead, stamp_ns - source->stamp_ns,
                                            side->last_ns, now_ns)) {
        side->forged++;
        return false;
    }
    switch (sequence_judge(&source->sequence, &source->past, wire)) {
    case SEQUENCE_FRESH:
        source->stamp_ns = stamp_ns;
        if (frame.number > next)
            reordering_gap(&source->reordering, &source->missing, &source->sequence, next,
                           frame.arrival);
        return true;
    case SEQUENCE_REORDERED:
        side->reordered++;
        reordering_add(&source->reordering, &source->missing, &frame, &side->reordering);
        return true;
    case SEQUENCE_DUPLICATE:
        side->duplicated++;
        return false;
    default:
        side->late++;
        return false;
    }
}

/* Delivered frames are the forwarder's, too. */
static void forward(struct udp_lane *lane, const struct udp_size *size)
{
    lane->streams[0].side->intended++;
    if (lane->tail - lane->head == UDP_FORWARD_QUEUE)
        lane->port->forward_dropped++;
    else
        lane->queue[lane->tail++ % UDP_FORWARD_QUEUE] = (uint8_t)(size - lane->sizes);
}

static void account(struct udp_lane *lane, struct udp_source *source,
                    const struct signature *signature, const struct udp_size *size, int64_t now_ns)
{
    struct flow_side *side = source->side;
    uint32_t wire = be32toh(signature->sequence);
    int32_t ahead = (int32_t)(wire - (uint32_t)source->sequence.next);

    lane->lane.arrived_ns = now_ns;
    if (!udp_judge(lane, source, signature, now_ns))
        return;
    if (lane->timing)
        delay_stats_add(&source->delay_stats, lane->buckets,
                        delay_stats_delay(now_ns - lane->start_ns, signature_ns(signature)), ahead);
    side->live.frames++;
    side->live.frame_bytes += size->frame_bytes;
    side->live.payload_bytes += size->payload;
    side->last_ns = now_ns;
    if (side->first_ns == 0)
        side->first_ns = now_ns;
    lane->left -= lane->left != UINT64_MAX && lane->left > 0;
    if (lane->forwards)
        forward(lane, size);
}

/* One whose signature is sound, but that is not of the load for this rank. */
static void take_other(struct udp_lane *lane, const struct signature *signature,
                       const struct udp_size *size)
{
    struct port_count *count = lane->lane.request.count;
    const struct frame_prober *prober = &lane->prober;
    bool probe =
        prober->answers && (signature->tag == prober->tags[0] || signature->tag == prober->tags[1]);
    struct misdelivered_flow flow = {1, be16toh(signature->src), be16toh(signature->dst)};

    if (probe && size != NULL && flow.dst == lane->lane.request.rank &&
        !udp_prober_take(lane, signature, size)) {
        count->foreign++;
    } else if (probe) {
        count->probes_received++;
    } else if (be16toh(signature->tag) == lane->lane.request.phase->tag &&
               flow.dst != lane->lane.request.rank) {
        count->misdelivered++;
        misdelivered_add(&count->misdelivered_flows, &flow);
    } else {
        count->foreign++;
    }
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
static bool is_forged(const struct udp_lane *lane, uint16_t rank,
                      const struct sockaddr_storage *from)
{
    if (lane->source_of[rank] > 0)
        return !same_socket(&lane->sources[lane->source_of[rank] - 1].from, from);
    return lane->stream_of[rank] > 0 &&
           !same_socket(&lane->streams[lane->stream_of[rank] - 1].to, from);
}

static void take(struct udp_lane *lane, const uint8_t *bytes, uint32_t length,
                 const struct sockaddr_storage *from, int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;
    struct port_count *count = request->count;
    struct signature signature;
    const struct udp_size *size;
    struct udp_source *source;
    bool sound, ours;

    lane->port->received++;
    if (length < SIGNATURE_BYTES) {
        count->arp_nd_received += length == 0;
        count->foreign += length > 0;
        return;
    }
    memcpy(&signature, bytes, sizeof signature);
    if (is_forged(lane, be16toh(signature.src), from)) {
        count->foreign++;
        return;
    }
    if (lane->plays) {
        udp_pingpong_take(lane, bytes, length, now_ns);
        return;
    }
    size = whole(lane, bytes, length);
    sound = signature_sound(&signature);
    ours = be16toh(signature.tag) == request->phase->tag && be16toh(signature.dst) == request->rank;
    source = lane->source_of[be16toh(signature.src)] == 0
                 ? NULL
                 : &lane->sources[lane->source_of[be16toh(signature.src)] - 1];
    if (sound && ours && source != NULL && size != NULL) {
        account(lane, source, &signature, size, now_ns);
    } else if (ours && source != NULL) {
        source->side->corrupted++;
        lane->lane.arrived_ns = now_ns;
    } else if (sound) {
        take_other(lane, &signature, size);
    } else {
        count->foreign++;
    }
}

/* The length of each of a message's datagrams, but for the last, which may be shorter. */
static uint32_t segment_of(struct msghdr *message, uint32_t length)
{
    int segment = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
            memcpy(&segment, CMSG_DATA(c), sizeof segment);
    return segment > 0 ? (uint32_t)segment : length;
}

uint32_t udp_receive(struct udp_lane *lane, int64_t now_ns)
{
    struct udp_inbox *inbox = lane->inbox;
    int count;

    for (uint32_t i = 0; i < UDP_MESSAGES; i++) {
        inbox->messages[i].msg_hdr.msg_namelen = sizeof inbox->from[i];
        inbox->messages[i].msg_hdr.msg_controllen = sizeof inbox->controls[i];
    }
    count = recvmmsg(lane->port->ip.socket, inbox->messages, UDP_MESSAGES, MSG_DONTWAIT, NULL);
    if (count <= 0)
        return 0;
    if (lane->timing)
        now_ns = clock_now();
    for (int i = 0; i < count; i++) {
        uint32_t length = inbox->messages[i].msg_len, at = 0;
        uint32_t segment = segment_of(&inbox->messages[i].msg_hdr, length);

        do {
            uint32_t part = length - at < segment ? length - at : segment;

            take(lane, inbox->bytes[i] + at, part, &inbox->from[i], now_ns);
            at += part;
        } while (at < length);
    }
    return (uint32_t)count;
}
