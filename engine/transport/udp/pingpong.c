/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping-pong (frame_pingpong.h): a message is one datagram, of a signature and the message's bytes.
 */
#include "fill.h"
#include "lane.h"

#include <string.h>

static bool send_frame(struct lane *base, const struct pingpong_frame *frame)
{
    struct udp_lane *lane = (struct udp_lane *)base;
    uint16_t tag = base->request.phase->tag, partner = (uint16_t)frame->flow->dst;
    const struct udp_size size = {.payload = SIGNATURE_BYTES + frame->bytes};
    struct signature signature = {.src = htobe16((uint16_t)base->request.rank)};

    if (frame->back) {
        tag = probe_answer_tag(tag);
        partner = (uint16_t)frame->flow->src;
    }
    signature.dst = htobe16(partner);
    signature = udp_sign(tag, &signature, frame->number, frame->stamp_ns);
    return udp_send_one(
        lane, frame->back ? &lane->sources[frame->place].from : &lane->streams[frame->place].to,
        &signature, &size);
}

int udp_pingpong_make(struct udp_lane *lane)
{
    lane->plays = true;
    lane->game.send = send_frame;
    lane->game.around = UDP_ETHERNET + FRAME_FCS + lane->port->headers + SIGNATURE_BYTES;
    lane->game.least = UDP_FRAME_LEAST;
    return frame_pingpong_make(&lane->game, &lane->lane);
}

void udp_pingpong_take(struct udp_lane *lane, const uint8_t *datagram, uint32_t length,
                       int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;
    uint32_t bytes = length - SIGNATURE_BYTES;
    uint32_t size = frame_pingpong_size(lane->game.around, lane->game.least, bytes);
    struct signature signature;
    struct udp_source *source;
    uint16_t place, tag;
    uint64_t number;
    bool whole, here;

    memcpy(&signature, datagram, sizeof signature);
    place = lane->source_of[be16toh(signature.src)];
    tag = be16toh(signature.tag);
    here = be16toh(signature.dst) == request->rank;
    whole = signature_sound(&signature) && bytes <= FILL_BYTES &&
            memcmp(datagram + SIGNATURE_BYTES, fill_table()->bytes, bytes) == 0;
    if (here && tag == probe_answer_tag(request->phase->tag) && whole) {
        frame_pingpong_take_answer(&lane->game, &signature, size);
        return;
    }
    if (!here || tag != request->phase->tag || place == 0) {
        request->count->foreign++;
        return;
    }
    source = &lane->sources[place - 1];
    number = sequence_unwrap(source->sequence.next, be32toh(signature.sequence));
    if (!whole || !frame_pingpong_fits(&lane->game, place - 1, number, size)) {
        source->side->corrupted++;
        return;
    }
    lane->lane.arrived_ns = now_ns;
    if (udp_judge(lane, source, &signature, now_ns))
        frame_pingpong_reply(&lane->game, place - 1, number, &signature, now_ns);
}
