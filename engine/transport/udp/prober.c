/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Round trips beside the load (frame_prober.h): the destination sends a probe back with the ranks
 * exchanged, and the source measures by its own stamp.
 */
#include "lane.h"

struct signature udp_sign(uint16_t tag, const struct signature *like, uint32_t sequence,
                          int64_t stamp_ns)
{
    struct signature signature = *like;
    struct signature_time time = signature_time(stamp_ns);

    signature.tag = htobe16(tag);
    signature_stamp(&signature, sequence, &time, signature_base(&signature) + time.sum);
    return signature;
}

int64_t udp_prober_turn(struct udp_lane *lane, int64_t now_ns)
{
    struct frame_prober *prober = &lane->prober;
    struct udp_stream *stream = &lane->streams[prober->at];
    const struct lane_flow *flow;
    const struct udp_size *size;
    struct signature signature;
    int64_t stamp_ns;
    uint32_t number;

    if (lane->state == UDP_WAITS)
        return CLOCK_NEVER;
    if (!frame_prober_is_due(prober, &lane->lane, lane->state == UDP_SENDS, now_ns))
        return prober->next_ns;
    flow = &lane->lane.request.sends[prober->at];
    number = frame_prober_number(prober, flow);
    size = &lane->sizes[lane->order[number % lane->order_count]];
    stamp_ns = clock_now() - lane->start_ns;
    signature = udp_sign(be16toh(prober->tags[0]), &stream->signature, number, stamp_ns);
    frame_prober_leaves(prober, flow, stamp_ns);
    if (udp_send_one(lane, &stream->to, &signature, size))
        lane->lane.request.count->probes_sent++;
    else
        frame_prober_stays(prober, flow);
    frame_prober_next(prober, &lane->lane, now_ns);
    return prober->next_ns;
}

static void answer(struct udp_lane *lane, const struct signature *probe,
                   const struct udp_size *size)
{
    uint16_t source = lane->source_of[be16toh(probe->src)];
    struct signature back = {.src = probe->dst, .dst = probe->src};

    if (source == 0)
        return;
    back = udp_sign(be16toh(lane->prober.tags[1]), &back, be32toh(probe->sequence),
                    (int64_t)signature_ns(probe));
    lane->lane.request.count->probes_sent +=
        udp_send_one(lane, &lane->sources[source - 1].from, &back, size);
}

bool udp_prober_take(struct udp_lane *lane, const struct signature *signature,
                     const struct udp_size *size)
{
    if (signature->tag == lane->prober.tags[1])
        return frame_prober_measure(&lane->prober, signature, clock_now() - lane->start_ns);
    answer(lane, signature, size);
    return true;
}
